"""Exploration: the packed search against the readable one, laws and what breaks them."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import KIP_584
from kipcheck.conformance.machines.plain_search import explore
from kipcheck.conformance.machines.product import (
    ContractViolation,
    Did,
    Law,
    ProductMachine,
    Sent,
    SimpleProduct,
    StepLaw,
    broken_laws,
    broken_step_laws,
)
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.group.laws import laws
from kipcheck.conformance.protocols.group.model.clients import CONFIG, Clients, Scope
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Beat, Error, GroupRecord, Heartbeat, Join, Sync
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.state import Member, Parked, State
from kipcheck.conformance.protocols.playables import PLAYABLES
from kipcheck.conformance.tests.support.locks import IN_TURN, NO_REST, ONE_HOLDER, Locks, Message, Move, Part

EVERYTHING = 10**9
NEWEST = Rules.of("4.4.0")


def searched(made: ProductMachine[Any, Any, Any]) -> Search[Any, Any, Any]:
    search = Search(made)
    assert search.run(EVERYTHING)
    return search


def counted(made: ProductMachine[Any, Any, Any]) -> tuple[int, int, int]:
    """States, transitions and depth, by the readable search, which also holds every law to every state and step."""
    whole = SimpleProduct(made)
    found = {whole.initial(): 0}
    transitions = 0
    for edge in explore(whole, lambda state: True):
        transitions += 1
        found.setdefault(edge.after, len(edge.path))
        assert not list(broken_laws(made, edge.after, resting=False))
        for step in whole.run_move(edge.before, edge.path[-1]) or ():
            assert not list(broken_step_laws(made, step))
    return len(found), transitions, max(found.values())


@pytest.mark.parametrize(
    "made",
    [
        Locks(2),
        Locks(3),
        Locks(4, crashes=0),
        PLAYABLES["features"].world(KIP_584, {"brokers": 1, "updates": 2}),
        Clients(Coordinator(NEWEST, CONFIG), Scope(1, 1, crashes=0), laws(Coordinator(NEWEST, CONFIG))),
        Clients(Coordinator(Rules.of("3.9.2"), CONFIG), Scope(1, 0, crashes=0, losses=1, failures=1)),
    ],
    ids=["locks 2", "locks 3", "locks 4", "features", "clients", "clients with failures"],
)
def test_the_packed_search_counts_what_the_readable_one_counts(made: ProductMachine[Any, Any, Any]) -> None:
    search = searched(made)
    assert search.complete
    assert (search.states, search.transitions, search.depth) == counted(made)


def shortest(made: ProductMachine[Any, Any, Any]) -> int:
    """How many events the readable search needs to break a law that does not wait for rest."""
    whole = SimpleProduct(made)
    paths = (
        edge.path
        for edge in explore(whole, lambda state: True)
        if any(broken_laws(made, edge.after, resting=False))
        or any(any(broken_step_laws(made, step)) for step in whole.run_move(edge.before, edge.path[-1]) or ())
    )
    return len(next(paths))


@pytest.mark.parametrize(("defect", "law"), [("early", ONE_HOLDER), ("lost", IN_TURN)])
@pytest.mark.parametrize("clients", [2, 3])
def test_a_counter_example_is_as_short_as_any(defect: str, law: Law[Part], clients: int) -> None:
    made = Locks(clients, defect=defect)
    breach = searched(made).breach
    assert breach is not None
    assert breach.law == law.id
    assert len(breach.path) == shortest(made)


def test_a_state_at_rest_may_break_a_law_of_its_own() -> None:
    breach = searched(Locks(2, defect="deaf", laws=(ONE_HOLDER, NO_REST))).breach
    assert breach is not None
    assert (breach.law, len(breach.path)) == ("no-rest", 4)  # both ask, both are heard, and that was all
    assert searched(Locks(2, laws=(NO_REST,))).complete


def test_a_step_is_held_against_its_part_only_where_the_hub_goes_along_with_it() -> None:
    """Each crash would be wrong, and the server takes none."""

    def crashes(index: int, before: Part, cause: Hashable, did: Did[Part, Message]) -> str | None:
        return "it crashes" if cause == Move("crash") else None

    law: StepLaw[Part, Move, Message] = StepLaw("no-crash", crashes)
    assert searched(Locks(2, crashes=0, laws=(law,))).complete
    found = searched(Locks(2, crashes=1, laws=(law,))).breach
    assert found is not None
    assert [each.move.verb for each in found.path] == ["ask", "deliver", "crash"]


def test_a_search_goes_on_where_it_stopped() -> None:
    search = Search(Locks(3))
    while not search.run(7):
        assert not search.complete
    assert (search.states, search.transitions) == (searched(Locks(3)).states, searched(Locks(3)).transitions)


class Chatty(Locks):
    """A client that answers at once, which only the hub may."""

    def take(self, index: int, part: Part, message: Message, /) -> Did[Part, Message] | None:
        did = super().take(index, part, message)
        return did if did is None or index == 0 else Did(did.part, (Sent(0, Message("release", index)),))


class Stubborn(Locks):
    """A client that does not take what it is told."""

    def take(self, index: int, part: Part, message: Message, /) -> Did[Part, Message] | None:
        return super().take(index, part, message) if index == 0 else None


@pytest.mark.parametrize("made", [Chatty(2), Stubborn(2)], ids=["chatty", "stubborn"])
def test_a_machine_that_does_not_keep_to_the_rules_of_composition_is_named(made: Locks) -> None:
    with pytest.raises(ContractViolation, match="only the hub may"):
        searched(made)
    with pytest.raises(ContractViolation, match="only the hub may"):
        counted(made)


# Planted defects of the coordinator, and the laws that they break


class ForgetsInstances(Coordinator):
    def join_without_id(self, state: State, join: Join, out: Out) -> State:
        return self.add_member(state, join, join.fresh, out)


class KeepsItsLeader(Coordinator):
    def led(self, state: State, candidates: tuple[Member, ...]) -> State:
        return state if state.leader is not None else super().led(state, candidates)

    def removed(self, state: State, member: Member, out: Out) -> State:
        return super().removed(state, member, out)._replace(leader=state.leader)


class HearsAnybody(Coordinator):
    def assigns(self, state: State, member: Member) -> bool:
        return True


class WritesWrongly(Coordinator):
    def group_record(self, state: State, *arguments: Any) -> GroupRecord:
        return replace(super().group_record(state, *arguments), generation=state.generation + 1)

    def still_awaited(self, state: State, record: GroupRecord) -> bool:
        return True


class LetsSyncsLie(Coordinator):
    def park_sync(self, state: State, member: Member, sync: Sync, out: Out) -> State:
        after = super().park_sync(state, member, sync, out)
        found = after.member(member.id)
        assert found is not None
        return after.placed(found._replace(sync=Parked(-1, sync.version)) if found.sync else found)


class CountsTwice(Coordinator):
    def bumped(self, generation: int) -> int:
        return generation + 2


class TakesAnyGeneration(Coordinator):
    def stale(self, state: State, generation: int) -> Error | None:
        return None


class FencesNobody(Coordinator):
    def identity_fault(self, state: State, join: Join) -> Error | None:
        found = super().identity_fault(state, join)
        return None if found is Error.FENCED_INSTANCE_ID else found


class BeatsTwice(Coordinator):
    def heartbeat(self, state: State, beat: Heartbeat, out: Out) -> State:
        out.append(Beat(beat.request, Error.NONE))
        return super().heartbeat(state, beat, out)


DEFECTS: dict[type[Coordinator], str] = {
    ForgetsInstances: "group/one-id-per-instance",
    KeepsItsLeader: "group/one-leader",
    HearsAnybody: "group/assignment-from-leader",
    WritesWrongly: "group/outlives-moves",
    LetsSyncsLie: "group/parked-answered",
    CountsTwice: "group/generation-grows",
    TakesAnyGeneration: "group/stale-never-wins",
    FencesNobody: "group/fenced-never-wins",
    BeatsTwice: "group/answered-once",
}
SCOPES = {
    ForgetsInstances: Scope(static=1, dynamic=0),
    TakesAnyGeneration: Scope(static=1, dynamic=1, crashes=0),
    FencesNobody: Scope(static=2, dynamic=0, crashes=0, twins=1),
}


@pytest.mark.parametrize("planted", DEFECTS, ids=lambda planted: planted.__name__)
def test_each_law_of_clients_is_broken_by_a_planted_defect(planted: type[Coordinator]) -> None:
    made = planted(NEWEST, CONFIG)
    scope = SCOPES.get(planted, Scope(static=0, dynamic=2, crashes=0))
    breach = searched(Clients(made, scope, tuple(law for law in laws(made) if law.id == DEFECTS[planted]))).breach
    assert breach is not None
    assert breach.law == DEFECTS[planted]


def test_each_law_of_clients_has_a_defect() -> None:
    assert {law.id for law in laws(Coordinator(NEWEST, CONFIG))} == set(DEFECTS.values())
