"""Drawn conversations with brokers: how often they reach each row of the decision tables, and whether brokers answer as
the machine of their release."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Observation, Op, Replied
from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.judge import judge
from kipcheck.conformance.live.coordinator.target import BrokerSession
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
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
"""The most times that a conversation is played again, while it is in doubt."""
OFTEN = 10
"""What the reference coordinator decides so often is decided alike by a broker at least once."""


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
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_the_reference_coordinator_reaches_every_row(release: str) -> None:
    counts = counted(history_of(Reference(), case) for case in drawn(release, EACH))
    assert [row for row in ROWS if not counts[row, True]] == []


def on_a_broker(release: str) -> list[History]:
    """The drawn conversations on a broker; what differs is played again, until that is not in doubt."""
    cases = [*drawn(release, EACH)]
    with registry.target(f"kafka:{release}").open(f"apache@{release}", Role.COORDINATOR) as session:
        found = [*map(played, cases, session.run(cases))]
        again = differing = [at for at, each in enumerate(found) if differs(each)]
        for _ in range(AGAIN):
            for at, observations in zip(again, session.run([cases[at] for at in again]), strict=True):
                found[at] = played(cases[at], observations)
            again = [at for at in again if is_in_doubt(found[at])]
    print(
        f"{sum(map(is_in_doubt, found))} of {len(found)} conversations are in doubt; {len(differing)} were played again"
    )
    return found


def differs(history: History) -> bool:
    """Whether an answer is not that of the machine of the release, outside of doubt."""
    return not is_in_doubt(history) and bool(differences(history))


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
    found = on_a_broker(release)
    counts = counted(found)
    for row in ROWS:
        print(f"{row:45} {counts[row, True]:6} {counts[row, False]:6}")
    differing = [(OPERATIONS.shorthand(each.case.steps), differences(each)[0]) for each in found if differs(each)]
    for text, first in differing:
        print(f"{text}: {first}")
    assert not differing
    wanted = {row for row in ROWS if counts[row, True] + counts[row, False] >= OFTEN} - NOT_BY_CLIENTS
    assert [row for row in ROWS if row in wanted and not counts[row, True]] == []
    assert len(wanted) > 30
    assert sum(map(is_in_doubt, found)) < len(found) / 2


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
