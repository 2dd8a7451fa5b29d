"""The suite's own mutation test: every planted defect is held with the checks, and what caught it is told."""

import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any

from kipcheck.conformance.checks import CHECKS, Check
from kipcheck.conformance.checks.declare import Subject
from kipcheck.conformance.core.edition import EDITIONS
from kipcheck.conformance.engine.pool import pool
from kipcheck.conformance.engine.worker import Finding, Unit, Worker, shrunk
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.mutants import VICES, Vice
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Limits

QUICK = Limits(cpu_s=0.3, batch_s=20)
"""For those that die of what they do: no sound codec needs as long."""


@dataclass(frozen=True, slots=True)
class Caught:
    """What came of one planted defect."""

    id: str
    caught_by: tuple[str, ...]
    """The checks with a case that it fails; none: it survives."""
    cases: int | None
    """Until the first of them that fails, in the first check that caught it: the one meant for it, if that did."""
    cpu_s: float
    """To draw, hold and judge so many; for a survivor, to hold all."""
    least_steps: int | None
    """Of the shrunk case."""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "id": self.id, "caught_by": [*self.caught_by], "cases": self.cases, "cpu_s": round(self.cpu_s, 4),
            "least_steps": self.least_steps,
        }  # fmt: skip


def selected(globs: Sequence[str] = ("*",)) -> list[str]:
    """The vices whose check is meant. Errors: LookupError where none is."""
    found = [name for name, vice in VICES.items() if _meant(vice.check, globs)]
    if not found:
        raise LookupError(f"no check is called {' or '.join(map(repr, globs))}; there are {', '.join(CHECKS)}")
    return found


def hold_all(names: Iterable[str], globs: Sequence[str] = ("*",), seed: int = 0, workers: int = 1) -> Iterator[Caught]:
    """In the order of the names, whatever the number of workers."""
    if workers == 1:
        yield from (hold(name, globs, seed) for name in names)
        return
    with pool(workers, partial(hold, globs=tuple(globs), seed=seed)) as processes:
        for _, found in processes.map(names):
            assert found is not None
            yield found


def hold(name: str, globs: Sequence[str] = ("*",), seed: int = 0) -> Caught:
    """One of them, on the subject that shows it, with all checks of its family that are meant."""
    vice = VICES[name]
    subject = subject_of(vice)
    # The check that was made for it comes first.
    checks = sorted(_applied(vice, subject, globs), key=lambda check: check.id != vice.check)
    found: dict[str, tuple[int, list[Finding]]] = {}
    begun = _cpu()
    values = None if not vice.deadly else 1
    with Worker(name, _made(name, vice)) as worker:
        for check in checks:
            result = worker.hold(_unit(name, check, subject, seed, values))
            # What is deadly costs a process for each case that finds it: no more values than it takes.
            while values is not None and not found and not result.findings and values < check.values:
                values = min(4 * values, check.values)
                worker.close()
                result = worker.hold(_unit(name, check, subject, seed, values))
            if result.findings:
                order = [case for case, *_ in result.cases]
                found[check.id] = order.index(result.findings[0].case.id) + 1, result.findings
            worker.close()  # what it remembers of one check is nothing to the next
        if not found:
            return Caught(name, (), None, _cpu() - begun, None)
        first = next(iter(found))
        cases, findings = found[first]
        least = shrunk(worker, next((each for each in findings if each.invariant == vice.invariant), findings[0]))
    by = tuple(id for id in CHECKS if id in found)
    spent = _spent(name, vice, CHECKS[first], subject, seed, values, cases)
    return Caught(name, by, cases, spent, None if least is None else len(least.case.steps))


def subject_of(vice: Vice) -> Subject:
    """Errors: LookupError where its check has no such subject."""
    check = CHECKS[vice.check]
    for edition in [vice.edition] if vice.edition else EDITIONS:  # what only a draft has, is looked for there
        for each in filter(check.about, check.family.subjects(edition)):
            if (each.name, each.version) == (vice.subject, vice.version):
                subject: Subject = each
                return subject
    raise LookupError(f"{vice.check} is about no {vice.subject} {vice.version if vice.version is not None else ''}")


def _applied(vice: Vice, subject: Subject, globs: Sequence[str]) -> Iterator[Check[Any]]:
    family = CHECKS[vice.check].family
    return (
        each for each in CHECKS.values() if each.family is family and _meant(each.id, globs) and each.about(subject)
    )


def _meant(check: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(check, glob) for glob in globs)


def _made(name: str, vice: Vice) -> Target:
    in_a_child = vice.deadly or vice.remembers
    return target(f"miniature/{name}", QUICK) if in_a_child else Afresh(f"miniature/{name}", vice.made)


def _unit(name: str, check: Check[Any], subject: Subject, seed: int, values: int | None) -> Unit:
    return Unit(name, subject.edition, check.id, subject.name, subject.version, seed, values)


def _spent(
    name: str, vice: Vice, check: Check[Any], subject: Subject, seed: int, values: int | None, cases: int
) -> float:
    """Seconds of processor time until it is found, its own process included."""
    begun = _cpu()
    by_id = {each.id: each for each in all_invariants(check.role)}
    with Worker(name, _made(name, vice)) as worker:
        drawn = [each.case for each in islice(check.samples(subject, seed, values), cases)]
        for _ in worker.violations(drawn, by_id[vice.invariant]):
            pass
    return _cpu() - begun


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
