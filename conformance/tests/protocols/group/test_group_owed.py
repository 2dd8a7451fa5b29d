"""What is owed is not what a release does: releases break laws, a coordinator better than Kafka's breaks none."""

import re
from collections.abc import Iterator
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.requirement import Requirement, requirements
from kipcheck.conformance.core.values.verdict import Grade, Result, Violation
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.group.invariants.observer import known_before
from kipcheck.conformance.protocols.group.model.messages import Delete, Error, Fetch, Phase, Request
from kipcheck.conformance.protocols.group.model.rules import owed_rules
from kipcheck.conformance.protocols.group.model.state import Member, Offsets, State
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.tests.support.sessions import history_of

OURS: list[Invariant] = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/")]
LAWS = [each for each in OURS if each.grade is not Grade.INFO]
LIKE = "group/like-its-release"


class Better(CoordinatorAdapter):
    """Mends every known fault of the edition's release."""

    name = "better"

    def configure(self, edition: str, /) -> str | None:
        refused = super().configure(edition)
        self.rules = owed_rules(edition_of(edition).release)
        return refused


def history(adapter: Adapter, text: str, edition: str) -> History:
    return history_of(adapter, Case("group/errors", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text)))


def broken(found: History) -> set[str]:
    return {each.invariant for each in judge(found, LAWS) if each.result is Result.FAIL}


FULL = "join a v2; join b v2; join c v2; elapse 9000; join d v4; join e v4; rejoin d v4; rejoin e v4"
REFUSED = (
    "join a rebalance=60000; join b v5; elapse 3000; rejoin b v5; join c session=6000 v6; join a session=6000 v6; "
    "join a id=a-old; join c session=6000; rejoin c session=6000 v6; rejoin a; elapse 10001; fetch c"
)
STATIC = "join a as i; elapse 3000; sync a; join a as i; move"
FAULTS = [
    # Known deviations: the edition, the law that its release breaks, and a conversation that shows it
    ("apache@0.10.0.1", "answers-join", "join a v0 lists="),
    ("apache@0.10.2.2", "answers-join", "join a v0 type="),
    ("apache@0.10.0.1", "answers-heartbeat", "join a v0; beat a id=? v0"),
    ("apache@1.1.1", "answers-join", "unload; load; join a v2"),
    ("apache@1.1.1", "removed-let-go", "join a v2; join b v2; elapse 9000; rejoin b v2 lists=p:y; leave b v1"),
    ("apache@1.1.1", "answers-sync", "beat a v1 nameless; sync a v1 nameless"),
    ("apache@1.1.1", "answers-heartbeat", "beat a v1 nameless"),
    ("apache@1.1.1", "answers-leave", "leave a v1 nameless"),
    ("apache@2.3.0", "sessions-kept", "join a v0; elapse 3000; sync a; join b v0; beat a"),
    ("apache@2.3.1", "answers-groups", "join a; elapse 3000; sync a; describe v3"),
    ("apache@2.5.1", "answers-join", f"{FULL}; rejoin a v2; rejoin b v2"),
    ("apache@2.6.0", "fenced-never-wins", f"{STATIC}; beat a id=a-old as i"),
    ("apache@2.6.0", "beats-before-assignment", "join a; elapse 3000; beat a"),
    ("apache@2.8.0", "assignments-in-time",
     "join a rebalance=4000; join b rebalance=4000; elapse 4000; sync b; elapse 2000; beat a; elapse 2000"),
    ("apache@2.8.2", "answers-heartbeat", "join a as i; elapse 3000; sync a; beat a as j"),
    ("apache@2.8.2", "answers-sync", "join a as i; elapse 3000; sync a as j"),
    ("apache@2.8.2", "answers-leave", "join a as i; elapse 3000; leave a a/j"),
    ("apache@3.9.2", "commits-kept", "commit a id= 5 behind=none; fail NOT_ENOUGH_REPLICAS; delete; move; fetch"),
    ("apache@3.9.2", "superseded-let-go", "join a v4; rejoin a; rejoin a"),
    ("apache@4.4.0", "superseded-let-go", "join a v4; rejoin a; rejoin a"),
    ("apache@3.9.2", "removed-let-go",
     "join a; join b; elapse 6000; sync b; leave b"),
    ("apache@4.4.0", "removed-let-go",
     "join a; join b; elapse 6000; sync b; leave b"),
    ("apache@2.4.1", "answers-join", "join a v5; join a id=a as i v5"),
    ("apache@4.4.0", "answers-join", "join a v5; join a id=a as i v5"),
    ("apache@4.4.0", "ends-when-all-joined", REFUSED),
    ("apache@4.4.0", "initial-delay", "join a session=6000 v4; elapse 5000; join b v3; elapse 1000"),
]  # fmt: skip


@pytest.mark.parametrize(("edition", "law", "text"), FAULTS)
def test_a_fault_of_a_release_is_found_and_mended(edition: str, law: str, text: str) -> None:
    """The reference does what the release does; a coordinator that mends the fault passes, and so does ``apache``."""
    reference = Reference()
    reference.configure(edition)
    assert f"group/{law}" in broken(history(reference, text, edition))
    assert not broken(history(Better(), text, edition))
    assert not broken(history(Reference(), text, "apache"))


def drawn(edition: str, conversations: int) -> Iterator[str]:
    generated, random = group_conversations(edition), Random(f"owed {edition}")
    for _ in range(conversations):
        yield OPERATIONS.shorthand(generated.draw(random, generated.swarm(random)))


RELEASES = ("0.10.0.1", "1.1.1", "2.2.2", "2.3.1", "2.5.1", "2.6.0", "2.8.2", "3.9.2", "4.0.0", "4.4.0")


@pytest.mark.parametrize("release", some_by_default(RELEASES, 3))
def test_a_coordinator_that_is_better_than_kafkas_breaks_nothing(release: str) -> None:
    edition = f"apache@{release}"
    for text in drawn(edition, 15):
        assert not broken(history(Better(), text, edition)), text


def test_the_reference_has_no_breach_in_edition_apache() -> None:
    for text in drawn("apache", 60):
        found = history(Reference(), text, "apache")
        assert not broken(found), text
        assert not like(found), text


# A description


def like(found: History) -> tuple[Violation, ...]:
    (verdict,) = judge(found, [each for each in OURS if each.id == LIKE])
    return verdict.violations


def test_a_difference_from_the_release_is_described_and_not_owed() -> None:
    text = "join a v4; rejoin a; rejoin a"
    (found,) = like(history(Better(), text, "apache@4.4.0"))
    assert found.shape == ("unlike", "Join")
    assert next(each for each in OURS if each.id == LIKE).grade is Grade.INFO


def test_the_comparison_starts_again_when_the_group_was_deleted() -> None:
    differs = "join a v4; rejoin a; rejoin a; elapse 30000"
    empty = f"{differs}; leave a; delete"
    assert len(like(history(Better(), f"{differs}; {differs}", "apache@4.4.0"))) == 1
    assert len(like(history(Better(), f"{empty}; {differs}", "apache@4.4.0"))) == 2
    assert len(like(history(Better(), f"{empty}; join a; elapse 3000; sync a; beat a", "apache@4.4.0"))) == 1
    assert len(like(history(Better(), f"fail NOT_ENOUGH_REPLICAS; {empty}; {differs}", "apache@4.4.0"))) <= 1


@pytest.mark.parametrize(("release", "version", "compared"), [
    ("2.4.1", 4, True), ("2.5.0", 4, False), ("2.8.2", 4, False), ("2.8.2", 5, True),
])  # fmt: skip
def test_nothing_is_compared_after_a_list_of_members_that_cannot_be_encoded(
    release: str, version: int, compared: bool
) -> None:
    """A leader that joins with a version below 5, and a static member: who is answered follows a hash map."""
    text = f"join a v{version}; rejoin a v{version}; join b as i v5; elapse 6000; sync a v3; beat a as j v3"
    assert bool(like(history(Better(), text, f"apache@{release}"))) is compared


def test_nothing_is_compared_after_a_full_group_has_forgotten_who_has_an_instance_id() -> None:
    """2.3 to 2.5 take it away from its member when they refuse another JoinGroup with it."""
    text = "join a as i v5; join b v3; join c v3; join d v3; join e as i v5; elapse 9000; sync a v3; beat a as j v3"
    assert not like(history(Better(), text, "apache@2.5.1"))
    assert like(history(Better(), text.replace("join e as i", "join e"), "apache@2.5.1"))


# The group with the empty name

OFFSETS = "commit a id= t:0:3 behind=none nameless v2; fetch a nameless v2"


class Forgetful(Better):
    """Grants commits, and returns no offset."""

    def fetched(self, state: State, fetch: Fetch) -> Offsets:
        return ()


class Generous(Better):
    """Grants every deletion of the group with the empty name."""

    def nameless_fault(self, state: State, asked: Request) -> Error | None:
        return Error.NONE if isinstance(asked, Delete) else super().nameless_fault(state, asked)


@pytest.mark.parametrize("edition", ["apache@0.10.0.1", "apache@1.1.1", "apache@2.8.2", "apache@4.4.0", "apache"])
def test_offsets_of_the_group_with_the_empty_name_are_kept_until_it_is_deleted(edition: str) -> None:
    reference = Reference()
    reference.configure(edition)
    deleted = "" if edition in ("apache@0.10.0.1", "apache@1.1.1") else "; delete nameless; fetch a nameless v2"
    text = f"{OFFSETS}; commit a behind=1 nameless v2; fetch a v2{deleted}; delete nameless"
    assert not broken(history(reference, text, edition))


@pytest.mark.parametrize(("adapter", "text", "law"), [
    (Forgetful, OFFSETS, "commits-kept"),
    (Generous, "delete nameless", "answers-groups"),
    (Generous, f"{OFFSETS}; delete nameless; delete nameless", "answers-groups"),
])  # fmt: skip
def test_a_coordinator_owes_the_same_to_the_group_with_the_empty_name(
    adapter: type[Better], text: str, law: str
) -> None:
    assert broken(history(adapter(), text, "apache@4.4.0")) == {f"group/{law}"}


# What clients can know


def test_nothing_is_owed_where_clients_cannot_know_the_state() -> None:
    """The session of the member may have ended: whether its heartbeat has a fault is open until it is answered."""
    found = history(
        CoordinatorAdapter(), "join a; elapse 3000; sync a; elapse 10000; beat a; describe; beat a", "apache"
    )
    known = [known_before(found)[index] for index in range(7)]
    assert [each.phase for each in known] == [Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE, None, None,
                                              Phase.EMPTY]  # fmt: skip
    assert [each.is_member("a.1") for each in known[2:6]] == [True, True, None, None]


def test_judging_goes_on_in_agreement_with_a_wrong_answer() -> None:
    class Forgets(CoordinatorAdapter):
        """The first heartbeat of a member removes it."""

        def heartbeat_fault(self, state: State, beat: object) -> Error | None:
            return Error.UNKNOWN_MEMBER_ID

    Forgets.name = "forgets"
    found = history(Forgets(), "join a; elapse 3000; sync a; beat a; beat a; beat a; elapse 1; beat a", "apache")
    (verdict,) = judge(found, [each for each in OURS if each.id == "group/answers-heartbeat"])
    assert [each.at for each in verdict.violations] == [(3,)]


@pytest.mark.parametrize("text", [
    "join a; join e; elapse 6000; rejoin a; leave a e a; describe v5",
    "join b; join c; elapse 6000; sync b; rejoin b; leave a c b; join a as i lists=q:x v5",
])  # fmt: skip
def test_a_batch_of_leaving_members_may_end_the_join_phase_before_its_last_one_leaves(text: str) -> None:
    """2.4 to 3.9 check after each member whether all have joined, later releases after the batch."""
    reference = Reference()
    reference.configure("apache@2.8.2")
    assert not broken(history(reference, text, "apache@2.8.2"))


def test_a_member_that_left_by_a_wrong_answer_does_not_leave_again() -> None:
    reference = Reference()
    reference.configure("apache@2.8.2")
    found = history(reference, "join a; elapse 3000; leave a a/i a", "apache@2.8.2")
    (verdict,) = judge(found, [each for each in OURS if each.id == "group/answers-leave"])
    assert [each.shape for each in verdict.violations] == [
        ("Leave", "with an instance id", "UNKNOWN_MEMBER_ID", "NONE")
    ]


NEXT_PHASE = (
    "join a session=30000 rebalance=4000 v1; join d session=30000 rebalance=4000 v1; elapse 4000; elapse 3000; "
    "leave d; elapse 3697; commit a t:1:3 v3"
)


@pytest.mark.parametrize("release", ["2.8.0", "2.8.2", "4.4.0"])
def test_no_assignment_is_due_in_the_next_join_phase(release: str) -> None:
    """It begins before the time for the assignment is over, and commits are granted in it."""
    reference = Reference()
    reference.configure(f"apache@{release}")
    assert not broken(history(reference, NEXT_PHASE, f"apache@{release}"))


@pytest.mark.parametrize("release", ["2.8.2", "3.9.2"])
def test_the_first_join_phase_began_with_its_first_member_although_it_has_left(release: str) -> None:
    reference = Reference()
    reference.configure(f"apache@{release}")
    text = (
        "join d rebalance=4000 v4; rejoin d rebalance=4000 v4; elapse 2575; leave d; "
        "join e rebalance=4000 v3; elapse 425; join b v3; elapse 1000"
    )
    assert not broken(history(reference, text, f"apache@{release}"))


def test_a_member_that_left_is_not_waited_for_in_the_join_phase() -> None:
    """Its JoinGroup has no answer (KAFKA-7610), which is one breach and not two."""
    reference = Reference()
    reference.configure("apache@1.1.1")
    text = "join a v2; join b v2; elapse 9000; sync a; rejoin a lists=p:y v2; leave a v1; elapse 31000; beat b v1"
    assert broken(history(reference, text, "apache@1.1.1")) == {"group/removed-let-go"}


def test_whoever_left_before_in_the_batch_has_no_instance_id_any_more() -> None:
    reference = Reference()
    reference.configure("apache@2.8.2")
    found = history(reference, "join a; join b as i; elapse 6000; leave b b a/i", "apache@2.8.2")
    (verdict,) = judge(found, [each for each in OURS if each.id == "group/answers-leave"])
    assert [each.shape[2:] for each in verdict.violations] == [("UNKNOWN_MEMBER_ID", "NONE")]


def test_a_static_member_that_takes_a_place_in_a_full_group_is_not_refused() -> None:
    """Every release refuses it; nothing is owed because a release does it."""
    text = "join a as i; join b; join c; join d; elapse 6000; sync a; join a as i"

    class Admits(CoordinatorAdapter):
        """Admits the new process of a member."""

        def admits(self, state: State, id: str) -> bool:
            return id == "" or super().admits(state, id)

    Admits.name = "admits"
    assert not broken(history(Admits(), text, "apache"))
    assert not broken(history(Reference(), text, "apache"))


def test_after_a_failed_write_it_is_open_who_waits() -> None:
    """Of the parked requests before it; the group may be full."""
    text = "join a; join a; fail NOT_ENOUGH_REPLICAS; join a; join a; join a id=a; join a"
    for edition in ("apache", "apache@4.4.0", "apache@3.9.2"):
        assert not broken(history(Better(), text, edition))


@pytest.mark.parametrize("edition", ["apache", "apache@4.4.0"])
def test_a_member_that_a_batch_names_twice_has_left_when_it_is_named_again(edition: str) -> None:
    """Also if its JoinGroup is parked, so that it does not know its id."""
    assert not broken(history(Better(), "join a as j; leave a /j /j", edition))


def test_the_time_for_a_sync_is_not_that_of_a_member_without_a_join_phase() -> None:
    """It takes over an instance id in a stable group, whose other members have their assignments."""
    formed = "join a as i rebalance=4000; join b as j rebalance=4000; elapse 4000; sync a"
    text = f"{formed}; join b as j rebalance=4000; elapse 4000; commit b as j"
    assert not broken(history(Better(), text, "apache@4.4.0"))


def test_a_leader_may_be_any_member() -> None:
    class Last(CoordinatorAdapter):
        """The last member leads."""

        def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
            return candidates[-1]

    Last.name = "last"
    for text in drawn("apache", 15):
        assert not broken(history(Last(), text, "apache")), text


# Grades

CITED = re.compile(
    r"\bKIP-\d+, [A-Z]|\bjavadoc\b|\bprotocol guide, [A-Z]|\bGuide To The Kafka Protocol, [A-Z]"
    r"|\bConsumerConfig, [a-z]|\bmessage definitions, [A-Z]"
)
"""A section of a KIP, of a guide or of the README of the message definitions, the javadoc of a class, or a setting."""


def of_coordinators() -> Iterator[Requirement]:
    for id, each in requirements().items():
        kind, _, number = id.partition("-")
        if kind == "grp" and (30 < int(number) < 60 or 70 <= int(number) < 80):
            yield each


def of_the_project() -> Iterator[Requirement]:
    """Those that the project wrote itself."""
    for id, each in requirements().items():
        kind, _, number = id.partition("-")
        if kind == "grp" and (10 <= int(number) <= 25 or int(number) >= 30):
            yield each


def test_what_must_be_is_cited_by_section() -> None:
    found = [*of_the_project()]
    assert len(found) > 70
    assert [each.id for each in found if each.grade is Grade.MUST and not CITED.search(each.clause)] == []


def test_no_requirement_describes_a_release() -> None:
    """What a release does otherwise belongs to a list of known deviations."""
    assert [each.id for each in of_coordinators() if re.search(r"\b[Uu]p to \d", each.text)] == []


def test_no_invariant_is_graded_above_its_requirements() -> None:
    order = (Grade.INFO, Grade.SHOULD, Grade.MUST)
    graded = (each for role in Role for each in all_invariants(role) if each.requirements)
    for each in graded:
        highest = max((requirements()[id].grade for id in each.requirements), key=order.index)
        assert order.index(each.grade) <= order.index(highest), each.id


def test_a_joingroup_that_is_answered_at_once_does_not_extend_the_session_of_a_member_that_was_not_certain() -> None:
    """The member sent no SyncGroup in time, so nobody knows whether it is there until its JoinGroup is answered."""
    text = (
        "join a session=30000 rebalance=4000; join c session=30000; join d session=30000 rebalance=4000; elapse 4000; "
        "sync a a=x d=; elapse 28000; beat c; join c id=d session=30000 rebalance=4000; "
        "rejoin a session=30000 rebalance=4000; elapse 2000; sync d"
    )
    assert not broken(history(Reference(), text, "apache"))
