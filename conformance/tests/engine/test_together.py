"""Units of targets that wait in real time: their cases are run at once, and the results are those of single units."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.engine.execution.workers import workers_of
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Plan, Session, TargetInfo, Unstable

T = TypeVar("T")
CHECKS = ("group/generations", "group/parked", "group/static", "group/errors")
CASES = 2


@dataclass
class Waiting:
    """A session that counts the cases which it is given at once."""

    session: Session
    at_once: int
    searches_at_once = 1
    fails: bool = False
    given: list[int] = field(default_factory=list)
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()

    @property
    def info(self) -> TargetInfo:
        return self.session.info

    def lasts_s(self, case: Case, /) -> float:
        return 0.0

    def run_plans(self, plans: Sequence[Plan[T]], /) -> list[T]:
        raise NotImplementedError

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        self.given.append(len(cases))
        if self.fails:
            raise Unstable("it died too often")
        return self.session.run(cases)


class Slow:
    """A target whose sessions wait."""

    name = "broker:slow"

    def __init__(self, at_once: int, fails: bool = False) -> None:
        self.at_once, self.fails = at_once, fails
        self.sessions: list[Waiting] = []

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        with InProcess(Reference()).open(edition, role) as session:
            self.sessions.append(Waiting(session, self.at_once, self.fails))
            yield self.sessions[-1]


def units(*editions: str) -> list[Unit]:
    return [Unit("broker:slow", edition, check, GROUP, None, 0, CASES) for edition in editions for check in CHECKS]


@pytest.mark.parametrize(("at_once", "given"), [(1, [2, 2, 2, 2]), (5, [6, 2]), (100, [8])])
def test_cases_of_several_units_are_run_at_once(at_once: int, given: list[int]) -> None:
    target = Slow(at_once)
    with Worker(target.name, target) as worker, workers_of(worker, 2) as workers:
        found = [*workers.results(units("apache@3.9.2"), lambda: True)]
    assert [each.unit for each in found] == units("apache@3.9.2")
    assert target.sessions[0].given == given
    with Worker("alone", InProcess(Reference())) as worker:
        alone = [worker.run(each) for each in units("apache@3.9.2")]
    assert [each.cases for each in found] == [each.cases for each in alone]
    assert [each.reached for each in found] == [each.reached for each in alone]


def test_units_of_different_editions_have_sessions_of_their_own() -> None:
    target = Slow(100)
    with Worker(target.name, target) as worker:
        assert [len(each) for each in worker.portions(units("apache@3.9.2", "apache@2.3.1"))] == [4, 4]


def test_no_unit_is_begun_once_it_is_too_late() -> None:
    turns = iter([True, False])
    target = Slow(4)
    with Worker(target.name, target) as worker, workers_of(worker, 1) as workers:
        found = [*workers.results(units("apache@3.9.2"), lambda: next(turns))]
    assert [bool(each.unreached) for each in found] == [False, False, True, True]


def test_every_unit_of_a_session_that_is_lost_says_so() -> None:
    target = Slow(20, fails=True)
    with Worker(target.name, target) as worker, workers_of(worker, 1) as workers:
        found = [*workers.results(units("apache@3.9.2"), lambda: True)]
    assert [(each.gave_up, each.unreached) for each in found] == [(True, "it died too often")] * 4
