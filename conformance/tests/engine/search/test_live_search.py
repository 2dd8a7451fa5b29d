"""Least cases of live targets: few runs for each failure, several searches side by side, and no end of time."""

import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import History, Observation, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.worker import Finding, Unit, Worker
from kipcheck.conformance.engine.execution.workers import workers_of
from kipcheck.conformance.engine.search import live_search
from kipcheck.conformance.engine.search.live_search import RERUNS, RUNS, Search, SideBySide, search
from kipcheck.conformance.engine.search.unshrunk_groups import by_kind, selected
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.targets.protocol import Claims, Plan, Session, TargetInfo, Unstable
from kipcheck.conformance.targets.registry import target

T = TypeVar("T")
EDITION = "apache@3.9.2"
CHECK = "group/generations"
SHAPE = ("it fails",)
Fails = Callable[[frozenset[int]], bool]
"""Whether a case with these steps fails."""


def finding(count: int, at: int, check: str = CHECK) -> Finding:
    steps = tuple(step("a", "elapse", ms=1000 + number) for number in range(count))
    case = Case(check, EDITION, Role.COORDINATOR, steps)
    unit = Unit("broker:localhost:1", EDITION, check, GROUP, None, 0, None)
    ops = tuple(Op(number, each, Replied(()), number + 1) for number, each in enumerate(steps))
    return Finding(unit, History(case, "it", ops), None, 0, "", "group/answers-join", Violation("", (at,), shape=SHAPE))


def numbers(case: Case) -> frozenset[int]:
    return frozenset(each.body["ms"] - 1000 for each in case.steps)


def ended(going: Search, fails: Fails, rounds: int | None = None) -> tuple[Finding | None, list[int]]:
    """What a search returns, and the sizes of its rounds. ``rounds``: so many, and then there is no time."""
    cases, sizes = next(going), list[int]()
    while True:
        sizes.append(len(cases))
        found = {each.id: (History(each, "it", ()), (Violation("", (0,), shape=SHAPE),))
                 for each in cases if fails(numbers(each))}  # fmt: skip
        try:
            cases = going.send(None if rounds is not None and len(sizes) > rounds else found)
        except StopIteration as end:
            return end.value, sizes


def test_exactly_the_steps_that_a_failure_needs_are_left() -> None:
    drawn = random.Random(1)
    for count in range(1, 29):
        for _ in range(20):
            needed = frozenset(drawn.sample(range(count), drawn.randint(1, min(5, count))))
            found, sizes = ended(search(finding(count, max(needed)), at_once=drawn.random() < 0.5), needed.issubset)
            assert found is not None and numbers(found.case) == needed, (count, needed)
            assert sum(sizes) <= RUNS and len(sizes) <= 6, sizes
            assert (found.violation.shape, found.shape) == (SHAPE, SHAPE)


def test_where_it_fails_need_not_be_known() -> None:
    """Rows of a campaign do not say it."""
    drawn = finding(6, 5)
    nowhere = replace(drawn, violation=replace(drawn.violation, at=()))
    found, _ = ended(search(nowhere), frozenset({1, 4}).issubset)
    assert found is not None
    assert numbers(found.case) == {1, 4}


def test_long_cases_lose_several_steps_at_once() -> None:
    found, sizes = ended(search(finding(60, 59)), frozenset({3, 40}).issubset)
    assert found is not None and numbers(found.case) >= {3, 40} and len(found.case.steps) <= 6
    assert sum(sizes) <= RUNS


def test_steps_of_which_any_is_enough_are_not_all_left_out() -> None:
    found, _ = ended(search(finding(12, 11)), lambda there: 11 in there and bool(there & {2, 7}))
    assert found is not None and numbers(found.case) in ({2, 11}, {7, 11})


def test_any_steps_of_many_are_enough() -> None:
    drawn = random.Random(1)
    for _ in range(50):
        some = frozenset(drawn.sample(range(23), 12))
        found, sizes = ended(search(finding(24, 23), at_once=True), lambda there: 23 in there and len(there & some) > 1)  # noqa: B023
        assert found is not None and len(found.case.steps) <= 8 and sum(sizes) <= RUNS


def test_a_step_may_be_needless_once_another_is_left_out() -> None:
    found, _ = ended(search(finding(6, 5)), lambda there: 5 in there and (1 not in there or 2 in there))
    assert found is not None and numbers(found.case) == {5}


def test_what_does_not_fail_again_is_run_a_few_times() -> None:
    assert ended(search(finding(5, 4)), lambda _: False) == (None, [1] * RERUNS)
    times = iter([False, True, True])
    found, sizes = ended(search(finding(1, 0)), lambda _: next(times))
    assert found is not None and sizes == [1, 1]


def test_without_time_the_least_case_so_far_counts() -> None:
    needed = frozenset({1, 3})
    assert ended(search(finding(6, 5), at_once=True), lambda _: False, rounds=1)[0] is None
    assert ended(search(finding(8, 5), at_once=True), lambda _: False, rounds=1)[0] is None, "nor does its beginning"
    found, sizes = ended(search(finding(8, 5), at_once=True), needed.issubset, rounds=1)
    assert found is not None and len(found.case.steps) == 5 and sizes == [7, 3]


@dataclass
class Waits:
    """A broker that waits, in a time of its own, and whose answers are about the steps that it is given."""

    clock_s: float = 0.0
    at_once: int = 100
    searches_at_once: int = 100
    info: TargetInfo = field(
        default_factory=lambda: TargetInfo("it", "0", "", "", frozenset({Role.COORDINATOR}), Claims())
    )
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    rounds: list[tuple[int, int]] = field(default_factory=list)
    renewed: int = 0
    lost: bool = False

    def lasts_s(self, case: Case, /) -> float:
        return len(case.steps)

    def renew(self) -> bool:
        self.renewed += 1
        return True

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        raise AssertionError("a case in doubt would be run again")

    def run_plans(self, plans: Sequence[Plan[T]], /) -> list[T]:
        """In an order of its own: always the cases that end first."""
        if self.lost:
            raise Unstable("it died too often")
        found: dict[int, T] = {}
        waiting = [(0.0, number, next(plan)) for number, plan in enumerate(plans)]
        while waiting:
            ends = [began + max(map(self.lasts_s, cases)) for began, _, cases in waiting]
            _, number, cases = waiting.pop(ends.index(end := min(ends)))
            self.clock_s = end
            self.rounds.append((number, len(cases)))
            try:
                answers = [(Replied((("answers", []),)),) * len(each.steps) for each in cases]
                waiting.append((end, number, plans[number].send(answers)))
            except StopIteration as ended:
                found[number] = ended.value
        return [found[number] for number in range(len(plans))]


class Broker:
    name = "broker:localhost:1"

    def __init__(self) -> None:
        self.session = Waits()

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        yield self.session


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Cases fail in the way that is looked for if they have step 2."""
    made = Broker()

    def judge(history: History, invariants: object) -> Iterator[object]:
        found = (Violation("", (0,), shape=SHAPE),) if 2 in numbers(history.case) else ()
        yield type("Verdict", (), {"violations": found})

    monkeypatch.setattr(live_search, "judge", judge)
    monkeypatch.setattr("kipcheck.conformance.engine.search.live_search.time.monotonic", lambda: made.session.clock_s)
    return made


def test_searches_go_on_side_by_side_with_one_session(broker: Broker) -> None:
    findings = [finding(7, 4), finding(12, 9, "group/errors"), finding(7, 4, "group/static")]
    with Worker(broker.name, broker) as worker:
        worker.ran = True
        with workers_of(worker, 2) as workers:
            found = [*workers.least_cases(findings)]
            assert [None if each is None else [*numbers(each.case)] for each in found] == [[2]] * 3
            assert broker.session.rounds == [(0, 6), (2, 6), (0, 1), (2, 1), (1, 11), (1, 1)]
            assert broker.session.renewed == 1
            assert not any(each is None or each.cut for each in found)
            assert workers.searched == ["searched for 3 least cases side by side in 11 s, with 26 runs"]


def test_no_round_begins_that_would_end_too_late(broker: Broker) -> None:
    findings = [finding(30, 29), finding(7, 4)]
    with Worker(broker.name, broker) as worker:
        session = worker.real_time(findings[0].unit)
        assert session is not None
        searches = SideBySide(session, 32.0)
        long, short = searches.least(findings)
        assert long is not None and short is not None
        assert (len(long.case.steps), [*numbers(short.case)]) == (25, [2])
        assert (long.cut, short.cut, long.whole) == (True, False, True)
        assert str(searches).endswith("ended 1 of them early, since no run begins that would end after 32 s")


@dataclass
class Programs(Waits):
    """A client whose scripts take a second each, which is not known before; four searches go on at once."""

    at_once: int = 1
    searches_at_once: int = 4

    def lasts_s(self, case: Case, /) -> float:
        return 0.0

    def run_plans(self, plans: Sequence[Plan[T]], /) -> list[T]:
        """Their rounds one after the other."""
        found: list[T] = []
        for number, plan in enumerate(plans):
            cases = next(plan)
            try:
                while True:
                    self.rounds.append((number, len(cases)))
                    self.clock_s += 1
                    cases = plan.send([(Replied((("answers", []),)),) * len(each.steps) for each in cases])
            except StopIteration as ended:
                found.append(ended.value)
        return found


def test_searches_of_live_clients_end_in_time_and_as_many_go_on_at_once_as_they_allow(broker: Broker) -> None:
    broker.session = programs = Programs()
    findings = [finding(7, 4) for _ in range(5)]
    with Worker(broker.name, broker) as worker, workers_of(worker, 1) as workers:
        whole = [*workers.least_cases(findings)]
        rounds = [*programs.rounds]
        assert [(len(each.case.steps), each.cut) for each in whole if each is not None] == [(1, False)] * 5
        assert {number for number, _ in rounds} == {0, 1, 2, 3} and rounds[0] == (0, 1), "four, and then one"
        programs.rounds.clear()
        early = [*workers.least_cases(findings[:1], 1.5)]
        assert [(len(each.case.steps), each.cut, each.whole) for each in early if each is not None] == [(7, True, True)]
        assert programs.rounds == rounds[:1]


def test_a_process_that_ends_in_a_search_leaves_findings_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kipcheck.conformance.engine.execution.workers.shrunk", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    )
    findings = [replace(each, unit=replace(each.unit, target="reference")) for each in (finding(3, 2), finding(5, 2))]
    with Worker("reference", target("reference")) as worker, workers_of(worker, 2) as workers:
        found = [*workers.least_cases(findings)]
    assert [each and (len(each.case.steps), each.cut) for each in found] == [(3, True), (5, True)]


def test_a_broker_that_is_lost_leaves_findings_as_they_are(broker: Broker) -> None:
    broker.session.lost = True
    with Worker(broker.name, broker) as worker, workers_of(worker, 1) as workers:
        (found,) = workers.least_cases([finding(3, 2)])
        assert found is not None and (len(found.case.steps), found.shape) == (3, SHAPE)


def test_of_equal_findings_those_are_chosen_that_wait_least(broker: Broker) -> None:
    long, short = finding(3, 2), finding(9, 1)
    (group,) = by_kind([long, short])
    with Worker(broker.name, broker) as worker:
        assert selected(group, worker.lasts_s) == [short]
    assert selected(group) == [long]
