"""Upgrades of Streams groups explored: complete, and with planted defects that break the laws."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.explore.games import open_session
from kipcheck.conformance.machines.product import Event
from kipcheck.conformance.machines.search import Breach
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.playables import playable
from kipcheck.conformance.protocols.streams.model.group_model import StreamsMembers, streams_group_model
from kipcheck.conformance.protocols.streams.model.members import (
    NEVER,
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Blob,
    Fatal,
    Joining,
    Memory,
    Rejoin,
    Settings,
    Share,
)
from kipcheck.conformance.protocols.streams.model.product import Bounces, UpgradeProduct
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.ops import (
    OPERATIONS,
    Applied,
    Died,
    Event as Operation,
    ObservedEvent,
    Start,
)
from kipcheck.conformance.protocols.streams.play import streams_members, upgrade_product
from kipcheck.conformance.protocols.upgrade.ops import Crash, Move, Restart, Settle
from kipcheck.conformance.tests.machines.test_search import counted, searched

ALL = 9
"""More moves than a member can make while the others wait."""


def world(text: str, scope: str, made: StreamsMembers | None = None) -> UpgradeProduct:
    model, here = playable("streams"), edition(text)
    found = upgrade_product(made or streams_members(here), model.scope(scope, here))
    assert isinstance(found, UpgradeProduct)
    return found


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("kip-268", "members=1,partitions=1"),
        ("apache@3.9.2", "members=2,partitions=1,crashes=0,standbys=1"),
    ],
)
def test_the_packed_search_counts_what_the_readable_one_counts(text: str, scope: str) -> None:
    made = world(text, scope)
    search = searched(made)
    assert search.complete
    assert (search.states, search.transitions, search.depth) == counted(made)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("apache@2.3.1", "members=2,partitions=2,crashes=0"),
        ("apache@3.9.2", "members=2,partitions=2,crashes=0"),
        ("kip-268", "members=2,partitions=2,crashes=0"),
        ("apache@2.4.1", "members=2,partitions=1,crashes=0,from=2.3.1,to=own,upgrade-from=2.3,restarts=same"),
    ],
)
def test_every_order_of_bounces_ends_well(text: str, scope: str) -> None:
    search = searched(world(text, scope))
    assert search.breach is None
    assert search.complete


def broken(text: str, scope: str, made: StreamsMembers | None = None) -> Breach[Any]:
    breach = searched(world(text, scope, made)).breach
    assert breach is not None
    return breach


def operated(path: Sequence[Event[Any]], members: str, before: str, after: str) -> Iterator[Operation]:
    """What the operator does on the way, and what befalls the members."""
    yield from (Start(each, before) for each in members)
    for part, move in path:
        if isinstance(move, Bounces):
            yield Settle()
            yield Start(move.member, after)
            continue
        match getattr(move, "verb", ""):
            case "crashes":
                yield Crash(members[part - 1])
                yield Restart(members[part - 1])
            case "arrives" | "beats":
                yield Move(members[part - 1], ALL)
    yield Settle()


def played(operations: Sequence[Operation]) -> list[ObservedEvent]:
    """In a fleet, one after another."""
    machine = streams_group_model(streams_members(edition("apache")))
    state = machine.initial()
    seen: list[ObservedEvent] = []
    for each in operations:
        state, found = machine.step(state, each)
        seen += found
    return seen


def test_a_fleet_shows_what_was_found_of_members_that_follow_their_leader_blindly() -> None:
    """KAFKA-8649, from 2.0 to 2.1."""
    breach = broken("apache@2.1.1", "members=2,partitions=2,from=2.0.1,to=own,restarts=same")
    assert breach.law == "streams/used-within-own"
    operations = [*operated(breach.path, "ab", "2.0.1", "2.1.1")]
    reported = OPERATIONS.shorthand(map(OPERATIONS.step_of, operations))
    assert reported.startswith(
        "start a 2.0.1; start b 2.0.1; settle; start a 2.1.1; move a 9; stop b; restart b; move b 9"
    )
    seen = played(operations)
    assert any(isinstance(each, Applied) and each.used == 4 and each.before == 3 for each in seen)


def test_a_fleet_shows_what_was_found_of_a_leader_without_probing() -> None:
    breach = broken("apache@2.3.1", "members=2,crashes=0,from=1.1.1,to=own")
    assert breach.law == "streams/lives"
    seen = played([*operated(breach.path, "ab", "1.1.1", "2.3.1")])
    assert any(isinstance(each, Died) and each.during == "lead" for each in seen)


def test_an_old_leader_gives_away_what_a_cooperative_member_reads() -> None:
    """268-38: why one bounce from 2.3 to 2.4 is not enough."""
    breach = broken("apache@2.4.1", "members=3,partitions=2,crashes=0,from=2.3.1,to=own")
    assert breach.law == "streams/handed-over"


# Planted defects


class Wrong:
    """A member with something done to what it says."""

    def __init__(self, sound: Binary) -> None:
        self._sound = sound

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sound, name)

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        return self._sound.lead(memory, topics, members)

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        return self._sound.assigned(memory, share)


class Throws(Wrong):
    def lead(self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /) -> Any:
        if len({each.data for each in members}) > 1 and len(members) > 1:
            raise Fatal("defect", "too many")
        return super().lead(memory, topics, members)


class Forgets(Wrong):
    def lead(self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /) -> Any:
        memory, shares = super().lead(memory, topics, members)
        return memory, {id: self._without_last(share) for id, share in shares.items()}

    def _without_last(self, share: Share) -> Share:
        assert isinstance(share.data, AssignmentInfo)
        if ("t", 1) not in share.partitions:
            return share
        at = share.partitions.index(("t", 1))
        data: Blob = replace(share.data, active=(*share.data.active[:at], *share.data.active[at + 1 :]))
        return Share((*share.partitions[:at], *share.partitions[at + 1 :]), data)


class NeverRises(Wrong):
    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        received = super().assigned(memory, share)
        used = min(memory.used, received.memory.used)
        return replace(
            received,
            memory=replace(received.memory, used=used),
            rejoin=received.rejoin if used < memory.used else NEVER,
        )


class Restless(Wrong):
    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        return replace(super().assigned(memory, share), rejoin=Rejoin("now"))


class Anybody(Wrong):
    """Who hears that the leader knows more than is spoken goes for it, whoever that is."""

    def assigned(self, memory: Memory, share: Share, /) -> AssignmentResult:
        received = super().assigned(memory, share)
        assert isinstance(share.data, AssignmentInfo)
        return replace(received, rejoin=Rejoin("again")) if share.data.supported > share.data.used else received


def planted(text: str, defect: Callable[[Binary], Binary]) -> StreamsMembers:
    here = edition(text)

    def made(settings: Settings) -> Binary:
        return defect(binary(settings, here))

    return StreamsMembers(made, here.name if text == "kip-268" else here.release)


DEFECTS: Mapping[str, tuple[Callable[[Binary], Any], str, str]] = {
    "streams/lives": (Throws, "apache@2.3.1", "members=2,partitions=1,crashes=0"),
    "streams/all-owned": (Forgets, "apache@3.9.2", "members=2,partitions=2,crashes=0"),
    "streams/upgraded": (NeverRises, "apache@3.9.2", "members=2,partitions=1,crashes=0"),
    "streams/probing-ends": (Restless, "apache@3.9.2", "members=1,partitions=1,crashes=0"),
    "streams/last-rebalance": (Anybody, "kip-268", "members=2,partitions=1,crashes=0"),
}


@pytest.mark.parametrize("law", DEFECTS)
def test_each_law_is_broken_by_a_planted_defect(law: str) -> None:
    defect, text, scope = DEFECTS[law]
    made = world(text, scope, planted(text, defect))
    made.laws = tuple(each for each in made.laws if each.id == law)
    breach = searched(made).breach
    assert breach is not None
    assert breach.law == law


def test_each_law_has_a_defect() -> None:
    """Two are broken by releases: see above."""
    by_releases = {"streams/used-within-own", "streams/handed-over"}
    assert {each.id for each in world("kip-268", "members=1").laws} == {*DEFECTS, *by_releases}


def test_a_counter_example_can_be_played_again() -> None:
    here = edition("apache@2.1.1")
    model = playable("streams")
    scope = model.scope("members=2,crashes=0,from=2.0.1,to=own", here)
    reported = open_session(model, here, scope).apply("coordinator bounces a")
    assert [each["to"] for each in reported["actions"]] == ["a"]
