"""What is made of lines and exchanges: the order of time, the owners of partitions, and when a group is at rest."""

import asyncio
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.members import session
from kipcheck.conformance.live.members.consumer_history import ConsumerHistory
from kipcheck.conformance.live.members.history import Observed, Settled, StepBegun
from kipcheck.conformance.live.members.processes import Begun, Exited, Killed, Line
from kipcheck.conformance.live.members.silent_history import SilentHistory
from kipcheck.conformance.live.members.streams_group_history import StreamsGroupHistory
from kipcheck.conformance.live.members.streams_history import StreamsHistory, failure
from kipcheck.conformance.live.members.traffic import Answered, Sent, StreamsBeat, StreamsBeaten
from kipcheck.conformance.protocols.group.model.messages import (
    Error,
    Join,
    Joined,
    Sync,
    Synced,
)
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.streams.blobs import write_assignment, write_subscription
from kipcheck.conformance.protocols.streams.checks import BY_HEARTBEATS
from kipcheck.conformance.protocols.streams.model.members import AssignmentInfo, SubscriptionInfo, TaskId
from kipcheck.conformance.protocols.streams.ops import (
    OPERATIONS as STREAMS,
    Died,
    Formed as StreamsFormed,
    Rests as StreamsRests,
    Sent as StreamsSent,
    Start,
)
from kipcheck.conformance.protocols.upgrade.ops import (
    OPERATIONS,
    Assigned,
    Ended,
    Failed,
    Formed,
    Gave,
    PutOut,
    Restless,
    Rests,
    Took,
)
from kipcheck.conformance.targets.protocol import observed

BOTH, COOPERATIVE, RANGE = ("cooperative-sticky", "range"), ("cooperative-sticky",), ("range",)
TEXT = "roll a cooperative; roll b cooperative; settle; crash a; settle"
OURS = [each for each in all_invariants(Role.OPERATOR_TOOL) if each.id.startswith("bounce/")]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def metadata(user_data: bytes = b"") -> bytes:
    """A subscription to t, version 0."""
    return struct.pack(">hi", 0, 1) + text("t") + struct.pack(">i", len(user_data)) + user_data


def assignment(partitions: Iterable[int], user_data: bytes = b"") -> bytes:
    numbers = [*partitions]
    rows = struct.pack(">i", 1) + text("t") + struct.pack(f">{len(numbers) + 1}i", len(numbers), *numbers)
    return struct.pack(">h", 0) + rows + struct.pack(">i", len(user_data)) + user_data


class Group:
    """Makes what a proxy and programs show; each thing a nanosecond after the one before."""

    def __init__(self) -> None:
        self.seen: list[Observed] = []
        self.protocols: dict[str, tuple[str, ...]] = {}
        self.data: dict[str, bytes] = {}

    @property
    def now(self) -> int:
        return len(self.seen)

    def step(self, index: int) -> None:
        self.seen.append(StepBegun(self.now, index))

    def begin(self, process: str, protocols: tuple[str, ...] = COOPERATIVE, data: bytes = b"") -> None:
        self.protocols[process], self.data[process] = protocols, data
        self.seen.append(Begun(self.now, process))

    def line(self, process: str, what: str, rest: str = "", at: int | None = None) -> None:
        self.seen.append(Line(self.now if at is None else at, process, what, rest))

    def exchange(self, process: str, request: Join | Sync, answer: Joined | Synced) -> None:
        sent = Sent(self.now, process, "g", request)
        self.seen.append(sent)
        self.seen.append(Answered(self.now, sent, answer))

    def form(self, generation: int, leader: str, *others: str) -> None:
        members = tuple((f"{each}-id", None, metadata(self.data[each])) for each in (leader, *others))
        for each in (*others, leader):
            offered = tuple((name, metadata(self.data[each])) for name in self.protocols[each])
            joined = Joined(
                0, Error.NONE, generation, "consumer", self.protocols[leader][0], f"{leader}-id", f"{each}-id",
                members if each == leader else (),
            )  # fmt: skip
            self.exchange(each, Join(5, "", None, "consumer", offered), joined)

    def sync(self, process: str, generation: int, *partitions: int, leads: dict[str, bytes] | None = None) -> None:
        given = tuple((f"{name}-id", data) for name, data in (leads or {}).items())
        synced = Synced(0, Error.NONE, assignment=assignment(partitions))
        self.exchange(process, Sync(3, f"{process}-id", None, generation, given), synced)

    def rest(self) -> None:
        self.seen.append(Settled(self.now, None))


def upgraded() -> Group:
    """a has all three partitions, then b joins and gets the last one."""
    group = Group()
    group.step(0)
    group.begin("a-1")
    group.form(1, "a-1")
    group.sync("a-1", 1, 0, 1, 2)
    group.line("a-1", "assigned", "t-0,t-1,t-2")
    group.step(1)
    group.begin("b-1")
    group.form(2, "a-1", "b-1")
    group.sync("a-1", 2, 0, 1)
    group.sync("b-1", 2)
    group.line("a-1", "revoked", "t-2")
    group.form(3, "a-1", "b-1")
    group.sync("a-1", 3, 0, 1)
    group.sync("b-1", 3, 2)
    group.step(2)
    group.line("b-1", "assigned", "t-2")
    group.rest()
    return group


def broken(group: Group, text: str = TEXT) -> set[str]:
    """The invariants that the history of the group breaks, up to the last step that was begun."""
    last = max(each.index for each in group.seen if isinstance(each, StepBegun))
    steps = OPERATIONS.parse_shorthand(text)[: last + 1]
    found = ConsumerHistory(group.seen).events
    answers = [
        observed(OPERATIONS.answer_of([each.event for each in found if each.step == at])) for at in range(len(steps))
    ]
    case = Case("bounce/orders", "apache@3.9.2", Role.OPERATOR_TOOL, tuple(steps))
    ops = tuple(Op(at, *pair, at + 1) for at, pair in enumerate(zip(steps, answers, strict=True)))
    return {each.invariant for each in judge(History(case, "t", ops), OURS) if each.result is Result.FAIL}


def test_a_hand_over_is_seen_in_the_order_of_time() -> None:
    group = upgraded()
    found = ConsumerHistory(group.seen)
    kinds = [type(each.event) for each in found.events]
    assert kinds == [Formed, Assigned, Took, Formed, Assigned, Assigned, Gave, Formed, Assigned, Assigned, Took, Rests]
    assert found.is_stable() and found.is_complete()
    last = found.events[-1].event
    assert isinstance(last, Rests) and [(each.member, each.version) for each in last.members] == [("a", 1), ("b", 1)]
    assert broken(group) == set()


def test_who_is_assigned_before_the_owner_gave_up_is_found_whatever_order_the_lines_arrive_in() -> None:
    group = upgraded()
    (revoked,) = (each for each in group.seen if isinstance(each, Line) and each.what == "revoked")
    group.seen.remove(revoked)
    group.line("a-1", "revoked", "t-2", at=group.now)
    assert broken(group) == {"bounce/revoked-first", "bounce/later-generation"}
    assert broken(upgraded()) == set()
    group.seen.sort(key=lambda each: -each.at_ns)
    assert broken(group) == {"bounce/revoked-first", "bounce/later-generation"}


def test_what_a_killed_or_closing_member_had_is_free() -> None:
    for killed in (True, False):
        group = upgraded()
        group.step(3)
        group.seen.append(Killed(group.now, "a-1") if killed else Line(group.now, "a-1", "closing", ""))
        group.line("a-1", "revoked", "t-0")
        group.seen.append(Exited(group.now, "a-1", 0, ""))
        group.step(4)
        group.form(4, "b-1")
        group.sync("b-1", 4, 0, 1, 2)
        assert not ConsumerHistory(group.seen).is_complete()
        group.line("b-1", "assigned", "t-0,t-1")
        group.rest()
        found = ConsumerHistory(group.seen)
        assert found.is_stable() and found.is_complete()
        assert [each.event for each in found.events].count(Ended("a")) == 1
        assert broken(group, TEXT if killed else TEXT.replace("crash", "stop")) == set()


def test_a_ghost_and_a_member_that_was_removed_are_named() -> None:
    group = upgraded()
    group.step(3)
    group.seen.append(Killed(group.now, "a-1"))
    group.begin("a-2")
    group.form(4, "b-1", "a-1", "a-2")
    last = ConsumerHistory(group.seen).events[-1].event
    assert isinstance(last, Formed) and {each.member for each in last.members} == {"a", "b", "former a"}
    group.form(5, "a-2")
    assert ConsumerHistory(group.seen).events[-2].event == PutOut("b")
    group.sync("a-2", 5, 0, 1, 2)
    group.line("a-2", "assigned", "t-0,t-1,t-2")
    assert broken(group) == set(), "what a removed member reads is fenced"


def test_a_refused_member_and_one_that_ends_by_itself_fail_once() -> None:
    group = upgraded()
    group.begin("c-1", RANGE)
    join = Join(5, "", None, "consumer", (("range", metadata()),))
    for _ in range(2):
        group.exchange("c-1", join, Joined(0, Error.INCONSISTENT_GROUP_PROTOCOL))
    group.seen.append(Exited(group.now, "c-1", 1, "org.apache.kafka.X: inconsistent"))
    group.begin("c-2", BOTH)
    group.seen.append(Exited(group.now, "c-2", 1, "a b\norg.apache.kafka.common.config.ConfigException: wrong"))
    failures = [each.event for each in ConsumerHistory(group.seen).events if isinstance(each.event, Failed)]
    assert failures == [Failed("c", "INCONSISTENT_GROUP_PROTOCOL"), Failed("c", "ConfigException")]
    assert ConsumerHistory(group.seen).is_stable()


def test_a_group_that_does_not_settle_is_restless() -> None:
    group = Group()
    group.begin("a-1")
    assert not ConsumerHistory(group.seen).is_stable()
    group.seen.append(Settled(group.now, 7))
    assert ConsumerHistory(group.seen).events[-1].event == Restless(7)


# Streams


def streams_group(leaders: str = "a-1") -> Group:
    """Two applications of 2.8.2 and 3.9.2."""
    group = Group()
    group.begin("a-1", ("stream",), write_subscription(SubscriptionInfo(9)))
    group.begin("b-1", ("stream",), write_subscription(SubscriptionInfo(9, latest=11)))
    group.form(1, "a-1", "b-1")
    data = write_assignment(AssignmentInfo(9, active=(TaskId(0, 0),)))
    group.sync("a-1", 1, 0, leads={"a-1": assignment([0], data), "b-1": assignment([1, 2], data)})
    group.sync("b-1", 1, 1, 2)
    group.line("a-1", "opened", "0_0")
    group.line("b-1", "opened", "0_1")
    return group


STARTS = {"a-1": Start("a", "2.8.2"), "b-1": Start("b", "3.9.2")}


def events(group: Group, kind: type) -> Iterator[Any]:
    return (each.event for each in StreamsHistory(group.seen, STARTS).events if isinstance(each.event, kind))


def test_subscriptions_assignments_and_tasks_of_applications_are_read() -> None:
    group = streams_group()
    found = StreamsHistory(group.seen, STARTS)
    assert found.is_stable() and not found.is_complete()
    (formed,) = events(group, StreamsFormed)
    assert formed.leader == "a" and [each.member for each in formed.members] == ["a", "b"]
    assert [(each.leader, each.member) for each in events(group, StreamsSent)] == [("a", "a"), ("a", "b")]
    group.line("b-1", "opened", "0_2")
    assert StreamsHistory(group.seen, STARTS).is_complete()
    group.line("b-1", "closed", "0_2")
    assert [*events(group, Gave)] == [Gave("b", (("t", 2),))]


@pytest.mark.parametrize(
    ("errors", "during"),
    [
        ("x.YError: no\n at Z.onAssignment(", "assigned"),
        ("x.YError: no\n at Z.performAssignment(", "lead"),
        ("x.YError: no", "error"),
    ],
)
def test_an_application_whose_thread_ends_has_died(errors: str, during: str) -> None:
    group = streams_group()
    for what in ("died", "closing"):
        group.line("a-1", what)
    group.seen.append(Exited(group.now, "a-1", 1, errors))
    assert [*events(group, Died)] == [Died("a", during, "x.YError", "no")]
    assert [*events(streams_group(), Died)] == []


def test_the_last_cause_of_a_stack_trace_is_its_error() -> None:
    assert failure("[main] ERROR a.B: Failed\na.b.CException: outer\n at x\nCaused by: d.EError: inner") == (
        "d.EError", "inner",
    )  # fmt: skip
    assert failure("") == ("", "no error was printed")


class Changing:
    """Stable and complete from the second look on, or never."""

    def __init__(self, rests: bool) -> None:
        self.rests, self.looks = rests, 0

    def is_stable(self) -> bool:
        self.looks += 1
        return self.rests and self.looks > 1

    def is_complete(self) -> bool:
        return True

    def quiet_since_ns(self) -> int:
        return 0


def test_a_wait_ends_with_the_group_or_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "POLL_S", 0.01)
    monkeypatch.setattr(session, "RESTS_S", 0.05)
    group = Changing(True)
    assert asyncio.run(session.at_rest(lambda: group, ())).turns is None and group.looks == 2
    failed = asyncio.run(session.at_rest(lambda: Changing(False), ()))
    assert failed.turns
    later = Changing(True)
    assert asyncio.run(session.at_rest(lambda: later, (failed,))).turns == 0 and not later.looks


# Streams groups (KIP-1071)


class StreamsGroup(Group):
    """Members of 4.4.0 whose coordinator assigns tasks."""

    def start(self, process: str) -> None:
        self.begin(process)
        self.starts[process] = Start(process.partition("-")[0], "4.4.0")

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[str, Start] = {}

    def beat(self, process: str, epoch: int, *active: int, error: int = 0) -> None:
        sent = Sent(self.now, f"{process}-StreamThread-1-consumer", "g", StreamsBeat(max(epoch - 1, 0)))
        self.seen.append(sent)
        self.seen.append(Answered(self.now, sent, StreamsBeaten(epoch, error, frozenset(active) if active else None)))

    def history(self) -> StreamsGroupHistory:
        return StreamsGroupHistory(self.seen, self.starts)


def shared_tasks() -> StreamsGroup:
    """a runs all three tasks, then b joins and gets the last one."""
    group = StreamsGroup()
    group.step(0)
    group.start("a-1")
    group.beat("a-1", 1, 0, 1, 2)
    for number in range(3):
        group.line("a-1", "opened", f"0_{number}")
    group.step(1)
    group.start("b-1")
    group.beat("b-1", 2)
    group.beat("a-1", 1, 0, 1)
    group.line("a-1", "closed", "0_2")
    group.beat("a-1", 2)
    group.beat("b-1", 2, 2)
    group.line("b-1", "opened", "0_2")
    group.step(2)
    group.rest()
    return group


def broken_by_tasks(group: StreamsGroup) -> set[str]:
    steps = STREAMS.parse_shorthand("start a 4.4.0; start b 4.4.0; settle")
    found = group.history().events
    answers = [observed(STREAMS.answer_of([each.event for each in found if each.step == at])) for at in range(3)]
    case = Case("streams/heartbeats", "apache", Role.OPERATOR_TOOL, tuple(steps))
    ops = tuple(Op(at, *pair, at + 1) for at, pair in enumerate(zip(steps, answers, strict=True)))
    laws = [each for each in all_invariants(Role.OPERATOR_TOOL) if each.id in BY_HEARTBEATS]
    return {each.invariant for each in judge(History(case, "t", ops), laws) if each.result is Result.FAIL}


def test_tasks_of_a_streams_group_are_handed_over_in_the_order_of_time() -> None:
    group = shared_tasks()
    found = group.history()
    assert found.is_stable() and found.is_complete() and broken_by_tasks(group) == set()
    last = found.events[-1].event
    assert isinstance(last, StreamsRests) and last.generation == 2
    assert [(each.member, [*map(str, each.active)]) for each in last.members] == [("a", ["0_0", "0_1"]), ("b", ["0_2"])]
    quiet_ns = found.quiet_since_ns()
    group.beat("a-1", 2)
    assert group.history().quiet_since_ns() == quiet_ns, "a heartbeat that says nothing new keeps no group from rest"
    group.beat("b-1", 3)
    assert not group.history().is_stable(), "a has not got the epoch of the group"


def test_a_task_of_a_streams_group_with_two_owners_or_none_is_found() -> None:
    group = shared_tasks()
    (closed,) = (each for each in group.seen if isinstance(each, Line) and each.what == "closed")
    group.seen.remove(closed)
    assert broken_by_tasks(group) == {"streams/one-owner", "streams/handed-over"}
    group = shared_tasks()
    (opened,) = (
        each for each in group.seen if isinstance(each, Line) and (each.process, each.what) == ("b-1", "opened")
    )
    group.seen.remove(opened)
    assert broken_by_tasks(group) == {"streams/all-owned"} and not group.history().is_stable()


def test_a_member_that_a_streams_group_refuses_has_lost_its_tasks() -> None:
    group = shared_tasks()
    group.beat("a-1", 0, error=KafkaError.FENCED_MEMBER_EPOCH)
    found = group.history()
    assert found.events[-1].event == PutOut("a") and not found.is_complete() and not found.is_stable()


def test_tasks_of_a_silent_application_are_those_of_its_requests_and_answers() -> None:
    group = Group()
    starts = {"a-1": Start("a", "2.3.1"), "b-1": Start("b", "2.3.1")}
    data = write_subscription(SubscriptionInfo(4, 4))

    def silent() -> SilentHistory:
        return SilentHistory(group.seen, starts, frozenset(starts))

    for at, name in enumerate(starts):
        group.step(at)
        group.begin(name, ("stream",), data)
        group.form(at + 1, "a-1", *([name] if at else []))
        group.sync("a-1", at + 1, *range(3 - at))
    assert not silent().is_complete()
    group.sync("b-1", 2, 2)
    found = silent()
    owners = [each.event for each in found.events if isinstance(each.event, Took | Gave)]
    everything = (("t", 0), ("t", 1), ("t", 2))
    assert owners == [
        Took("a", 1, everything), Gave("a", everything), Took("a", 2, everything[:2]), Took("b", 2, everything[2:]),
    ]  # fmt: skip
    assert found.is_complete() and not found.cooperates("a-1")
    group.line("a-1", "opened", "0_2")
    group.line("a-1", "stopping")
    group.seen.append(Exited(group.now, "a-1", 143, "some log"))
    assert [each.event for each in silent().events][-2:] == [Gave("a", everything[:2]), Ended("a")]
