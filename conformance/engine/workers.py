"""What runs the units of a run and then searches for least cases: several processes that share a target, or one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Protocol

from kipcheck.conformance.engine.live_search import SideBySide
from kipcheck.conformance.engine.pool import Pool, pool
from kipcheck.conformance.engine.shrink import shrunk, unshrunk
from kipcheck.conformance.engine.worker import Finding, Unit, UnitResult, Worker
from kipcheck.conformance.targets.protocol import Broken, Unstable
from kipcheck.conformance.targets.registry import is_shared, target as target_of

NOT_REACHED: Final = "not reached within the budget"


class Workers(Protocol):
    """The processes that work on one target. Their number changes no result."""

    worker: Worker
    """The one of this process."""
    searched: list[str]
    """What searches for least cases cost that went on side by side."""

    def results(self, units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
        """The results in the order of the units. Before each unit it asks ``left`` whether there is time."""
        ...

    def least_cases(self, findings: Sequence[Finding]) -> Iterator[Finding | None]:
        """The least case of each finding, in the order of the findings; None if the case alone does not fail."""
        ...


@contextmanager
def workers_of(worker: Worker, number: int) -> Iterator[Workers]:
    """``number`` processes, if each of them can have the target; else this one."""
    if number > 1 and is_shared(worker.name):
        with pool(number, _run) as processes:
            yield _Several(worker, processes)
    else:
        yield _One(worker)


def least_case(worker: Worker, finding: Finding) -> Finding | None:
    """As ``shrunk``; the finding as it is if the target cannot be used any more in this session."""
    if worker.ran:
        worker.renew()  # the state and the crashes of the target so far must not change what is found
    try:
        return shrunk(worker, finding)
    except (Unstable, Broken):
        worker.close()  # the next one has a fresh session, with a budget of restarts of its own
        return unshrunk(finding)


@dataclass(slots=True)
class _One:
    worker: Worker
    searched: list[str] = field(default_factory=list)

    def results(self, units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
        for several in self.worker.portions(units):
            yield from self.worker.run_together(several) if left() else map(_unreached, several)

    def least_cases(self, findings: Sequence[Finding]) -> Iterator[Finding | None]:
        for _, grouped in groupby(findings, lambda each: (each.case.edition, each.case.role)):
            several = [*grouped]
            session = self.worker.real_time(several[0].unit)
            if session is None:
                for each in several:
                    yield least_case(self.worker, each)
            else:
                yield from self._side_by_side(several)

    def _side_by_side(self, findings: Sequence[Finding]) -> Sequence[Finding | None]:
        """As ``least_case`` of each finding."""
        if self.worker.ran:
            self.worker.renew()
        session = self.worker.real_time(findings[0].unit)
        if session is None:
            return [unshrunk(each) for each in findings]
        searches = SideBySide(session)
        try:
            return searches.least(findings)
        except (Unstable, Broken):
            self.worker.close()
            return [unshrunk(each) for each in findings]
        finally:
            self.searched.append(str(searches))


@dataclass(slots=True)
class _Several:
    worker: Worker
    _processes: Pool[Unit | Finding, Any]
    searched: list[str] = field(default_factory=list)

    def results(self, units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
        for unit, found in self._processes.map(units, left):
            assert isinstance(unit, Unit)
            yield _unreached(unit) if found is None else found

    def least_cases(self, findings: Sequence[Finding]) -> Iterator[Finding | None]:
        for _, found in self._processes.map(findings):
            yield found


def _unreached(unit: Unit) -> UnitResult:
    return UnitResult(unit, unreached=NOT_REACHED)


_WORKERS: dict[str, Worker] = {}
"""One worker for each target in this process; they live as long as the process, and their testees end with their
stdin."""


def _run(work: Unit | Finding) -> UnitResult | Finding | None:
    """The result of a unit, or the least case of a finding."""
    if isinstance(work, Unit):
        return _worker(work.target).run(work)
    return least_case(_worker(work.unit.target), work)


def _worker(target: str) -> Worker:
    if target not in _WORKERS:
        _WORKERS[target] = Worker(target, target_of(target))
    return _WORKERS[target]
