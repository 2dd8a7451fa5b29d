"""What the laws of groups on a cluster accept and find, over observed events that are written by hand."""

from collections.abc import Iterable
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.failover import checks, invariants, ops
from kipcheck.conformance.protocols.failover.mutants import Failing
from kipcheck.conformance.protocols.failover.strategies import SCRIPTS
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import observed

EDITION: Final = "apache@4.4.0"
SETTLE: Final = ops.OPERATIONS.parse_shorthand("settle")
HEARTBEAT, COMMIT, SYNC, JOIN = "Heartbeat", "OffsetCommit", "SyncGroup", "JoinGroup"


def history_of(*events: ops.Action) -> History:
    case = Case(invariants.GROUPS, EDITION, Role.COORDINATOR, SETTLE)
    return History(case, "t", (Op(0, SETTLE[0], observed(ops.OPERATIONS.answer_of(events))),))


def broken(*events: ops.Action) -> set[str]:
    """The laws that a history with these events breaks."""
    history = history_of(*events)
    return {id for id in checks.CHECKS[0].invariants if [*INVARIANTS[id].search(history)]}


def accepted(
    member: str, request: str, at_ms: int, had: Iterable[int] = (), node: int = 1, epoch: int = 1,
    offset: int | None = None, joins: bool = False,
) -> ops.Accepted:  # fmt: skip
    """A request that took 10 ms."""
    return ops.Accepted(member, "classic", request, node, epoch, tuple(had), at_ms - 10, at_ms, offset, joins)


def assigned(member: str, at_ms: int, *partitions: int, node: int = 1, epoch: int = 1) -> ops.Assigned:
    return ops.Assigned(member, node, epoch, partitions, at_ms)


def fetched(at_ms: int, *offsets: tuple[int, int], node: int = 1) -> ops.Fetched:
    return ops.Fetched("reader", node, offsets, at_ms - 10, at_ms)


def refused(error: str, sent_ms: int, at_ms: int, offset: int) -> ops.Refused:
    return ops.Refused("a", COMMIT, 1, 1, (0,), error, sent_ms, at_ms, offset)


def test_a_commit_of_a_former_owner_has_two_owners_on_any_node() -> None:
    two = (assigned("a", 100, 0), assigned("b", 200, 0, node=2, epoch=2))
    late = accepted("b", HEARTBEAT, 500, (0,), node=2, epoch=2)
    assert broken(*two, accepted("a", COMMIT, 300, (0,), offset=1), late) == {"failover/one-owner"}
    assert not broken(*two, accepted("a", COMMIT, 300, (0,), offset=1)), "b may be none any more"
    assert not broken(*two, accepted("a", COMMIT, 205, (0,), offset=1), late), "it was sent before b had it"
    gave = ops.Gave("a", (0,), 150)
    assert not broken(two[0], gave, two[1], accepted("a", COMMIT, 300, (), offset=1), late)


def test_a_node_that_was_silent_may_accept_heartbeats_from_memory_for_some_time() -> None:
    two = (assigned("a", 100, 0), assigned("b", 200, 0, node=2, epoch=2))
    late = accepted("b", HEARTBEAT, 30_000, (0,), node=2, epoch=2)
    assert not broken(*two, accepted("a", HEARTBEAT, 300, (0,)), late)
    assert broken(*two, accepted("a", HEARTBEAT, 20_000, (0,)), late) == {"failover/one-owner"}
    assert broken(*two, accepted("a", HEARTBEAT, 300, (0,), node=2), late) == {"failover/one-owner"}


def test_a_commit_is_lost_if_an_older_one_is_read() -> None:
    first, second = accepted("a", COMMIT, 100, (0,), offset=1), accepted("a", COMMIT, 200, (0,), offset=2)
    assert broken(first, second, fetched(300, (0, 1))) == {"failover/commits-kept"}
    assert broken(first, second, fetched(300)) == {"failover/commits-kept"}
    assert not broken(first, second, fetched(300, (0, 2), node=2))
    assert not broken(first, second, fetched(195, (0, 1))), "the second one was not answered when it was asked"
    assert not broken(first, fetched(195, (0, 2)), second), "it was committed and not answered yet"


def test_a_node_that_takes_over_is_judged_by_its_first_answer_and_by_later_ones() -> None:
    commit = accepted("a", COMMIT, 100, (0,), offset=1)
    early, late = fetched(300, node=2), fetched(11_300, node=2)
    assert broken(commit, early, fetched(11_300, (0, 1), node=2)) == {"failover/reads-commits-at-once"}
    assert broken(commit, fetched(300, (0, 1), node=2), late) == {"failover/commits-kept"}
    assert broken(commit, early, late) == {"failover/reads-commits-at-once", "failover/commits-kept"}


def test_a_commit_without_an_answer_may_be_in_the_log() -> None:
    first = accepted("a", COMMIT, 100, (0,), offset=1)
    for error in ("no answer", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
        assert not broken(first, refused(error, 110, 200, 2), fetched(300, (0, 2)))
        assert not broken(first, refused(error, 110, 200, 2), fetched(300, (0, 1)))
    assert broken(first, refused("ILLEGAL_GENERATION", 110, 200, 2), fetched(300, (0, 2))) == {"failover/commits-kept"}


def test_what_a_node_reads_from_memory_when_it_has_just_resumed_is_not_judged() -> None:
    commit, resumes = accepted("a", COMMIT, 100, (0,), node=2, offset=1), ops.Hit("resumes", 1, "4.4.0", 200)
    assert not broken(commit, resumes, fetched(300, node=1))
    assert broken(commit, resumes, fetched(300, node=3)) == {"failover/reads-commits-at-once"}
    assert broken(commit, resumes, fetched(300, (0, 1), node=1), fetched(20_000, node=1)) == {"failover/commits-kept"}


def test_a_generation_may_be_given_again_until_its_leader_has_assigned() -> None:
    again = accepted("b", JOIN, 300, node=2, epoch=3, joins=True)
    assert not broken(accepted("a", JOIN, 100, epoch=3, joins=True), again)
    assert not broken(accepted("a", SYNC, 100, epoch=3), again), "a further member of the generation"
    assert broken(accepted("a", SYNC, 100, epoch=4), again) == {"failover/epochs-rise"}
    assert not broken(accepted("a", SYNC, 295, epoch=4), again), "they overlap"


def test_members_are_in_epochs_of_their_own() -> None:
    beats = [("a", 100, 5), ("b", 200, 4), ("a", 300, 5)]
    name = "ConsumerGroupHeartbeat"
    assert not broken(*(accepted(member, name, at_ms, epoch=epoch) for member, at_ms, epoch in beats))
    back = accepted("a", name, 400, epoch=4)
    assert broken(accepted("a", name, 100, epoch=5), back) == {"failover/epochs-rise"}
    joins = accepted("b", name, 400, epoch=4, joins=True)
    assert broken(accepted("a", name, 100, epoch=5), joins) == {"failover/epochs-rise"}


def test_a_group_that_does_not_become_stable_is_found() -> None:
    assert broken(ops.Restless("a has no assignment", 90_000, 0, 100_000)) == {"failover/becomes-stable"}


def test_a_machine_that_is_late_gives_no_verdict_about_time() -> None:
    unsure = INVARIANTS["failover/becomes-stable"].unsure
    assert unsure is not None
    assert unsure(history_of(ops.Restless("a has no assignment", 90_000, 900, 100_000)))
    assert not unsure(history_of(ops.Restless("a has no assignment", 90_000, 100, 100_000)))


def test_a_group_without_defects_keeps_all_laws() -> None:
    subject = Subject(EDITION, ops.FAILOVER)
    swarms = [SCRIPTS.draw(Random(seed), SCRIPTS.swarm(Random(seed))) for seed in range(100)]
    values = [*(made(subject) for made in checks.CHECKS[0].first),
              *([{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]
                for steps in swarms)]  # fmt: skip
    cases = [
        Case(invariants.GROUPS, EDITION, Role.COORDINATOR, each.steps)
        for value in values for each in checks.conversation(subject, value, Random(0))
    ]  # fmt: skip
    with InProcess(Failing()).open(EDITION, Role.COORDINATOR) as session:
        for history in converse(cases, session):
            for id in checks.CHECKS[0].invariants:
                assert not [*INVARIANTS[id].search(history)], (id, ops.OPERATIONS.shorthand(history.case.steps))


def test_one_node_at_a_time_fails_and_a_group_has_one_protocol() -> None:
    for seed in range(200):
        random = Random(seed)
        steps = SCRIPTS.mended(SCRIPTS.draw(random, SCRIPTS.swarm(random)))
        events = [ops.OPERATIONS.event_of(each) for each in steps]
        away = 0
        for event in events:
            away += isinstance(event, ops.NodeFault)
            assert away <= 1
            away = 0 if isinstance(event, ops.Resume | ops.Start) else away
        assert len({each.protocol for each in events if isinstance(each, ops.Join)}) <= 1
