"""Drawn conversations with brokers: how often they reach each row of the decision tables, and whether brokers answer as
the machine of their release."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Replied
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.coordinator.retries import PAUSES_S
from kipcheck.conformance.live.coordinator.session import BrokerSession
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.real_time import DOUBT, before_doubt, is_in_doubt
from kipcheck.conformance.protocols.group.decision_rows import NOT_BY_CLIENTS, ROWS, reached
from kipcheck.conformance.protocols.group.invariants.release_differences import differences
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.sessions import history_of, played

AGREED = ("group/generations", "group/parked", "group/static", "group/errors", "group/records")
EACH = 400
"""Conversations of each check: 2,000 in all."""
RELEASES = ("1.1.1", "2.3.1", "2.8.2", "3.9.2", "4.4.0")
AGAIN = 3
"""The most times that a conversation is played again that differs, until it agrees: two threads of a broker may do
things of the same moment in any order."""
MOST_DOUBTFUL, MOST_SELDOM, MOST_UNSETTLED = 0.1, 0.005, 0.002
"""The most conversations of all that may be in doubt in the end, that may have differed and agree when they are played
again, and that may have differed and stay in doubt: 200, 10 and 4 of 2,000."""
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
    differing: list[History]
    """Those that differ again, and never agree."""
    seldom: list[History]
    """Those that differed, and agreed when they were played again: as they differed."""
    unsettled: list[History]
    """Those that differed, and were in doubt, without a difference before it, whenever they were played again."""

    @property
    def doubtful(self) -> int:
        return sum(map(is_in_doubt, self.found))


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
    first_ones = {at: each for at, each in enumerate(found) if differs(each)}
    replays: dict[int, list[History]] = {at: [] for at in first_ones}
    left = [*replays]
    for _ in range(AGAIN):
        for at, observations in zip(left, play_again([cases[at] for at in left], 0.0), strict=True):
            found[at] = played(cases[at], observations)
            replays[at].append(found[at])
        left = [at for at in left if not agrees(found[at])]
    differing = {at: next(filter(differs, replays[at])) for at in left if any(map(differs, replays[at]))}
    return Agreement(
        found,
        [*differing.values()],
        [each for at, each in first_ones.items() if at not in left],
        [first_ones[at] for at in left if at not in differing],
    )


def agrees(history: History) -> bool:
    return not is_in_doubt(history) and not differs(history)


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
        ((WRONG,), [(WRONG,)] * AGAIN, (1, 0, 0, 0)),
        ((WRONG,), [(RIGHT,)], (0, 1, 0, 0)),
        ((WRONG,), [(WRONG,), (RIGHT, True), (RIGHT,)], (0, 1, 0, 0)),
        ((WRONG,), [(WRONG, True), (WRONG,), (WRONG, True)], (1, 0, 0, 1)),
        ((WRONG,), [(WRONG, True)] * AGAIN, (0, 0, 1, 1)),
        ((WRONG, True), [(RIGHT,)], (0, 0, 0, 0)),
        ((RIGHT, True), [(RIGHT, True), (WRONG,), *[(WRONG,)] * AGAIN], (1, 0, 0, 0)),
        ((RIGHT, True), [(WRONG, True)] * len(PAUSES_S), (0, 0, 0, 1)),
    ],
)
def test_a_difference_is_played_again_until_it_is_settled(
    first: tuple[Any, ...], again: list[tuple[Any, ...]], counts: tuple[int, int, int, int]
) -> None:
    """``counts``: how many differ again, agree, are in doubt since they differed, and are in doubt."""
    case = Case("group/errors", "apache@3.9.2", Role.COORDINATOR, OPERATIONS.parse_shorthand(TEXT))
    left = iter(again)

    def play_again(cases: Sequence[Case], _: float) -> list[tuple[Observation, ...]]:
        return [answered(*next(left)) for _ in cases]

    found = agreement([case], [answered(*first)], play_again)
    assert (len(found.differing), len(found.seldom), len(found.unsettled), found.doubtful) == counts
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
    """No difference comes again, and few conversations differ once or stay in doubt."""
    require(release)
    agreement = on_a_broker(release)
    counts, total = counted(agreement.found), len(agreement.found)
    for row in ROWS:
        print(f"{row:45} {counts[row, True]:6} {counts[row, False]:6}")
    kinds = {
        "differ again": agreement.differing, "differed, and agree when played again": agreement.seldom,
        "differed, and are in doubt when played again": agreement.unsettled,
    }  # fmt: skip
    for kind, histories in kinds.items():
        for each in histories:
            print(f"{kind}: {OPERATIONS.shorthand(each.case.steps)}: {differences(each)[0]}")
    print(f"of {total} conversations {agreement.doubtful} are in doubt")
    for kind, histories in kinds.items():
        print(f"{len(histories)} {kind}")
    assert not agreement.differing
    assert len(agreement.seldom) <= total * MOST_SELDOM
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
