"""Drawn conversations with brokers: how often they reach each row of the decision tables, and whether brokers answer as
the machine of their release."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Observation, Op, Replied
from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.judge import judge
from kipcheck.conformance.live.coordinator.played_again import PAUSES_S
from kipcheck.conformance.live.coordinator.target import BrokerSession
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.real_time import DOUBT, before_doubt, is_in_doubt
from kipcheck.conformance.protocols.group.decision_rows import NOT_BY_CLIENTS, ROWS, reached
from kipcheck.conformance.protocols.group.invariants.unlike import differences
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.sessions import history_of

AGREED = ("group/generations", "group/parked", "group/static", "group/errors", "group/records")
EACH = 400
"""Conversations of each check: 2,000 in all."""
RELEASES = ("1.1.1", "2.3.1", "2.8.2", "3.9.2", "4.4.0")
AGAIN = 3
"""The most times that a conversation is played again that differs, until it is settled whether it does."""
MOST_DOUBTFUL, MOST_UNSETTLED = 0.1, 0.002
"""The most conversations of all that may be in doubt in the end, and that may have differed and stay in doubt when they
are played again: 200 and 4 of 2,000."""
_IDS = {"join: an id is required", "join: with the required id", "leave: a required id that was not used"}
_INSTANCES = {
    "join: a new static member", "join: an instance comes back", "join: an instance with another id",
    "sync: an instance with another id", "heartbeat: an instance with another id",
}  # fmt: skip
_NEWER = {"sync: another protocol", "leave: an instance", "leave: an instance with another id"}
"""Of SyncGroup 5 and LeaveGroup 3."""
LACKING = {"1.1.1": {"join: the group is full"} | _IDS | _INSTANCES | _NEWER, "2.3.1": _NEWER}
"""The rows that a release does not have. All others are reached."""


def drawn(release: str, each: int) -> Iterator[Case]:
    for id in AGREED:
        check = CHECKS[id]
        subject = check.family.subject(f"apache@{release}", GROUP, None)
        yield from islice((sample.case for sample in check.samples(subject, 0, each)), each)


def counted(histories: Iterable[History]) -> Counter[tuple[str, bool]]:
    return Counter(row for history in histories for row in reached(history))


def played(case: Case, observations: Sequence[Observation]) -> History:
    ops = tuple(Op(at, *pair, at + 1) for at, pair in enumerate(zip(case.steps, observations, strict=True)))
    return History(case, "broker", ops)


def test_a_row_is_reached_where_the_group_is_as_it_says() -> None:
    text = "join a v9; rejoin a v9; elapse 3000; sync a v3 a=x; beat a v3; leave a; delete; delete"
    case = Case("group/errors", "apache@3.9.2", Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
    assert list(reached(history_of(Reference(), case))) == [
        ("join: an id is required", True),
        ("join: with the required id", True),
        ("sync: the leader assigns", True),
        ("heartbeat: of a stable group", True),
        ("leave: a member", True),
        ("delete: an empty group", True),
        ("delete: no group", True),
    ]


@pytest.mark.all_jars
@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", RELEASES)
def test_the_reference_coordinator_reaches_every_row_of_a_release(release: str) -> None:
    counts = counted(history_of(Reference(), case) for case in drawn(release, EACH))
    assert {row for row in ROWS if not counts[row, True]} == LACKING.get(release, set())


@dataclass
class Agreement:
    """What conversations with a broker have shown."""

    found: list[History]
    """Of each conversation the last one that was played."""
    differed: int
    """How many differed when they were played first."""
    unsettled: list[History]
    """Those of them that were in doubt whenever they were played again, and did not differ before the doubt."""

    @property
    def doubtful(self) -> int:
        return sum(map(is_in_doubt, self.found))

    @property
    def differing(self) -> list[History]:
        return [each for each in self.found if differs(each)]


def on_a_broker(release: str) -> Agreement:
    """The drawn conversations on a broker. What is in doubt is played again, what differs is until that is settled."""
    cases = [*drawn(release, EACH)]
    with registry.target(f"kafka:{release}").open(f"apache@{release}", Role.COORDINATOR) as session:
        assert isinstance(session, BrokerSession)
        return agreement(cases, session.run(cases), session.run_again)


PlayAgain: TypeAlias = Callable[[Sequence[Case], float], Sequence[Sequence[Observation]]]


def agreement(cases: Sequence[Case], first: Sequence[Sequence[Observation]], play_again: PlayAgain) -> Agreement:
    found = [*map(played, cases, first)]
    for pause_s in PAUSES_S:
        doubtful = [at for at, each in enumerate(found) if is_in_doubt(each) and not differs(each)]
        for at, observations in zip(doubtful, play_again([cases[at] for at in doubtful], pause_s), strict=True):
            found[at] = played(cases[at], observations)
    differing = unsettled = [at for at, each in enumerate(found) if differs(each)]
    for _ in range(AGAIN):
        for at, observations in zip(unsettled, play_again([cases[at] for at in unsettled], 0.0), strict=True):
            found[at] = played(cases[at], observations)
        unsettled = [at for at in unsettled if is_in_doubt(found[at]) and not differs(found[at])]
    return Agreement(found, len(differing), [found[at] for at in unsettled])


def differs(history: History) -> bool:
    """Whether an answer before any doubt is not that of the machine of the release."""
    return bool(differences(before_doubt(history)))


TEXT = "join a v3; elapse 3000; sync a v2 a=A; beat a v2"
RIGHT, WRONG = "NONE", "UNKNOWN_MEMBER_ID"


def answered(error: str, doubtful: bool = False) -> tuple[Observation, ...]:
    """What a broker answers that gives the heartbeat this error, and may have been late with the step before it."""
    case = Case("group/errors", "apache@3.9.2", Role.COORDINATOR, OPERATIONS.parse_shorthand(TEXT))
    *before, sync, _ = (op.observation for op in history_of(Reference(), case).ops)
    assert isinstance(sync, Replied)
    late = replace(sync, payload=(*sync.payload, (DOUBT, "late"))) if doubtful else sync
    return (*before, late, Replied((("answers", [{"to": 3, "answer": "beat", "error": error}]),)))


@pytest.mark.parametrize(
    ("first", "again", "counts"),
    [
        ((WRONG,), [(WRONG,)], (1, 1, 0, 0)),
        ((WRONG,), [(RIGHT,)], (1, 0, 0, 0)),
        ((WRONG,), [(WRONG, True), (WRONG,)], (1, 1, 0, 0)),
        ((WRONG,), [(WRONG, True), (RIGHT,)], (1, 0, 0, 0)),
        ((WRONG,), [(WRONG, True)] * AGAIN, (1, 0, 1, 1)),
        ((WRONG, True), [(RIGHT,)], (0, 0, 0, 0)),
        ((RIGHT, True), [(RIGHT, True), (WRONG,), (WRONG,)], (1, 1, 0, 0)),
        ((RIGHT, True), [(WRONG, True)] * len(PAUSES_S), (0, 0, 0, 1)),
    ],
)
def test_a_difference_is_played_again_until_it_is_settled(
    first: tuple[Any, ...], again: list[tuple[Any, ...]], counts: tuple[int, int, int, int]
) -> None:
    """``counts``: how many differed, differ again, are in doubt since, and are in doubt."""
    case = Case("group/errors", "apache@3.9.2", Role.COORDINATOR, OPERATIONS.parse_shorthand(TEXT))
    left = iter(again)

    def play_again(cases: Sequence[Case], _: float) -> list[tuple[Observation, ...]]:
        return [answered(*next(left)) for _ in cases]

    found = agreement([case], [answered(*first)], play_again)
    assert (found.differed, len(found.differing), len(found.unsettled), found.doubtful) == counts
    assert next(left, None) is None


def require(release: str) -> None:
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.all_jars
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_answers_as_the_machine_and_reaches_its_rows(release: str) -> None:
    """No difference outside of doubt comes again."""
    require(release)
    agreement = on_a_broker(release)
    counts, total = counted(agreement.found), len(agreement.found)
    for row in ROWS:
        print(f"{row:45} {counts[row, True]:6} {counts[row, False]:6}")
    for each in agreement.differing:
        print(f"differs: {OPERATIONS.shorthand(each.case.steps)}: {differences(each)[0]}")
    for each in agreement.unsettled:
        print(f"differed, and is in doubt since: {OPERATIONS.shorthand(each.case.steps)}")
    print(
        f"of {total} conversations {agreement.doubtful} are in doubt; {agreement.differed} differed when they were "
        f"played first, {len(agreement.differing)} again, {len(agreement.unsettled)} are in doubt since"
    )
    assert not agreement.differing
    assert len(agreement.unsettled) <= total * MOST_UNSETTLED
    assert agreement.doubtful <= total * MOST_DOUBTFUL
    assert {row for row in ROWS if not counts[row, True]} == LACKING.get(release, set()) | NOT_BY_CLIENTS


NAMELESS = (
    "fetch nameless v2; describe nameless v1; delete nameless v0; commit a id= t:0:3 behind=none nameless v2; "
    "fetch nameless v2; describe nameless v1; list nameless v1; commit a behind=1 nameless v2; "
    "commit b id= t:0:7 u:1:4 behind=none nameless v3; fetch nameless v3; fetch v3; join a v2; fetch nameless v2; "
    "delete nameless v0; fetch nameless v2; describe nameless v1; list nameless v1; delete nameless v0"
)


@pytest.mark.parametrize(
    "release",
    [pytest.param(each, marks=pytest.mark.jars if each == RELEASES[-1] else pytest.mark.all_jars) for each in RELEASES],
)
def test_the_group_with_the_empty_name_is_that_of_the_machine(release: str) -> None:
    require(release)
    case = Case("group/records", f"apache@{release}", Role.COORDINATOR, OPERATIONS.parse_shorthand(NAMELESS))
    with registry.target(f"kafka:{release}").open(case.edition, case.role) as session:
        assert isinstance(session, BrokerSession)
        session.allow_nameless()
        history = played(case, session.run([case])[0])
    assert all(isinstance(op.observation, Replied) for op in history.ops)
    assert differences(history) == ()
    laws = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/")]
    assert [each.invariant for each in judge(history, laws) if each.result is Result.FAIL] == []
