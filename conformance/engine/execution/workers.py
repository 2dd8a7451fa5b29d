"""What runs the units of a run and then searches for least cases: several processes that share a target, or one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Final, Protocol

from kipcheck.conformance.engine.execution.pool import Pool, WorkerLost, pool
from kipcheck.conformance.engine.execution.worker import Finding, Unit, UnitResult, Worker
from kipcheck.conformance.engine.search.live_search import LIMIT_S, SideBySide
from kipcheck.conformance.engine.search.shrink import shrunk, unshrunk
from kipcheck.conformance.targets.protocol import Broken, Unavailable, Unstable
from kipcheck.conformance.targets.registry import is_shared, target as target_of

GONE: Final = (Unstable, Broken, Unavailable)
"""The errors of a target that cannot be used any more, whatever it is."""
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

    def least_cases(self, findings: Sequence[Finding], limit_s: float | None = None) -> Iterator[Finding | None]:
        """The least case of each finding, in the order of the findings; None if the case alone does not fail.

        ``limit_s``: of each search; None for ``live_search.LIMIT_S`` where cases take real time, else none.
        """
        ...


@contextmanager
def workers_of(worker: Worker, number: int) -> Iterator[Workers]:
    """``number`` processes, if each of them can have the target; else this one."""
    if number > 1 and is_shared(worker.name):
        with pool(number, _run) as processes:
            yield _Several(worker, processes)
    else:
        yield _One(worker)


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches for the least cases of findings of one target, edition and role, which begin at once."""

    findings: tuple[Finding, ...]
    limit_s: float | None

    @classmethod
    def of(cls, worker: Worker, findings: Sequence[Finding], limit_s: float | None) -> "Iterator[Searches]":
        """As many at once as the target allows."""
        for _, alike in groupby(findings, lambda each: (each.case.edition, each.case.role)):
            several = iter(alike)
            for first in several:
                session = worker.real_time(first.unit)
                more = 0 if session is None else session.searches_at_once - 1
                yield cls((first, *islice(several, more)), limit_s)

    def run(self, worker: Worker, searched: list[str]) -> list[Finding | None]:
        """As ``shrunk`` of each; the findings as they are if the target cannot be used any more in this session.

        ``searched``: gets a line about what searches cost that went on side by side.
        """
        if worker.ran:
            worker.renew()  # the state and the crashes of the target so far must not change what is found
        session = worker.real_time(self.findings[0].unit)
        try:
            if session is None:
                return [shrunk(worker, each, self.limit_s) for each in self.findings]
            searches = SideBySide(session, LIMIT_S if self.limit_s is None else self.limit_s)
            try:
                return searches.least(self.findings)
            finally:
                searched.append(str(searches))
        except GONE:
            worker.close()  # the next one has a fresh session, with a budget of restarts of its own
            return [*map(unshrunk, self.findings)]


@dataclass(slots=True)
class _One:
    worker: Worker
    searched: list[str] = field(default_factory=list)

    def results(self, units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
        for several in self.worker.portions(units):
            yield from self.worker.run_together(several) if left() else map(_unreached, several)

    def least_cases(self, findings: Sequence[Finding], limit_s: float | None = None) -> Iterator[Finding | None]:
        for each in Searches.of(self.worker, findings, limit_s):
            yield from each.run(self.worker, self.searched)


@dataclass(slots=True)
class _Several:
    worker: Worker
    _processes: Pool[Unit | Searches, Any]
    searched: list[str] = field(default_factory=list)

    def results(self, units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
        for unit, found in self._processes.map(units, left):
            assert isinstance(unit, Unit)
            yield _unreached(unit) if found is None else found

    def least_cases(self, findings: Sequence[Finding], limit_s: float | None = None) -> Iterator[Finding | None]:
        searches, done = [*Searches.of(self.worker, findings, limit_s)], 0
        try:
            for _, found in self._processes.map(searches):
                assert found is not None
                done += 1
                yield from found
        except WorkerLost:  # a target may end the process that it is in
            for each in searches[done:]:
                yield from map(unshrunk, each.findings)


def _unreached(unit: Unit) -> UnitResult:
    return UnitResult(unit, unreached=NOT_REACHED)


_WORKERS: dict[str, Worker] = {}
"""One worker for each target in this process; they live as long as the process, and their testees end with their
stdin."""


def _run(work: Unit | Searches) -> UnitResult | list[Finding | None]:
    """The result of a unit, or the least cases of findings."""
    if isinstance(work, Unit):
        return _worker(work.target).run(work)
    return work.run(_worker(work.findings[0].unit.target), [])


def _worker(target: str) -> Worker:
    if target not in _WORKERS:
        _WORKERS[target] = Worker(target, target_of(target))
    return _WORKERS[target]
