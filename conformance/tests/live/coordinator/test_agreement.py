"""How often drawn conversations reach each row of the decision tables, in the reference coordinator and in brokers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Observation, Op
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.group.decision_rows import NOT_BY_CLIENTS, ROWS, reached
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.sessions import history_of

AGREED = ("group/generations", "group/parked", "group/static", "group/errors", "group/records")
EACH = 400
"""Conversations of each check: 2,000 in all."""
BATCH = 100
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


@pytest.mark.all_jars
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("release", ["1.1.1", "2.3.1", "2.8.2", "3.9.2", "4.4.0"])
def test_a_broker_reaches_the_rows_that_the_reference_coordinator_reaches(release: str) -> None:
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))
    cases = [*drawn(release, EACH)]
    counts: Counter[tuple[str, bool]] = Counter()
    with registry.target(f"kafka:{release}").open(f"apache@{release}", Role.COORDINATOR) as session:
        for first in range(0, len(cases), BATCH):
            batch = cases[first : first + BATCH]
            counts += counted(map(played, batch, session.run(batch)))
    for row in ROWS:
        print(f"{row:45} {counts[row, True]:6} {counts[row, False]:6}")
    wanted = {row for row in ROWS if counts[row, True] + counts[row, False] >= OFTEN} - NOT_BY_CLIENTS
    assert [row for row in ROWS if row in wanted and not counts[row, True]] == []
    assert len(wanted) > 30
