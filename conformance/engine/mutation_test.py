"""The mutation test of the suite: runs the checks against every mutant, and reports which of them find it."""

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
"""Limits for mutants that end or hang their process: no correct codec needs as long."""


@dataclass(frozen=True, slots=True)
class Caught:
    """The result for one mutant."""

    id: str
    caught_by: tuple[str, ...]
    """The checks with a case that it fails; empty if it survives."""
    cases: int | None
    """The cases up to the first failing one, in the first check that found it: its own check, if that did."""
    cpu_s: float
    """The processor time to draw, run and judge these cases; for a survivor, to run all."""
    least_steps: int | None
    """The steps of the shrunk case."""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "id": self.id, "caught_by": [*self.caught_by], "cases": self.cases, "cpu_s": round(self.cpu_s, 4),
            "least_steps": self.least_steps,
        }  # fmt: skip


def selected(globs: Sequence[str] = ("*",)) -> list[str]:
    """The mutants whose check matches. Errors: LookupError if none does."""
    found = [name for name, vice in VICES.items() if _meant(vice.check, globs)]
    if not found:
        raise LookupError(f"unknown check {' or '.join(map(repr, globs))}: use one of {', '.join(CHECKS)}")
    return found


def hold_all(names: Iterable[str], globs: Sequence[str] = ("*",), seed: int = 0, workers: int = 1) -> Iterator[Caught]:
    """The results, in the order of the names, whatever the number of workers."""
    if workers == 1:
        yield from (hold(name, globs, seed) for name in names)
        return
    with pool(workers, partial(hold, globs=tuple(globs), seed=seed)) as processes:
        for _, found in processes.map(names):
            assert found is not None
            yield found


def hold(name: str, globs: Sequence[str] = ("*",), seed: int = 0) -> Caught:
    """Runs one mutant, on the subject that shows its defect, with all matching checks of its family."""
    vice = VICES[name]
    subject = subject_of(vice)
    # The mutant's own check comes first.
    checks = sorted(_applied(vice, subject, globs), key=lambda check: check.id != vice.check)
    found: dict[str, tuple[int, list[Finding]]] = {}
    begun = _cpu()
    values = None if not vice.deadly else 1
    with Worker(name, _made(name, vice)) as worker:
        for check in checks:
            result = worker.hold(_unit(name, check, subject, seed, values))
            # A deadly mutant costs a process for each failing case, so values are increased step by step.
            while values is not None and not found and not result.findings and values < check.values:
                values = min(4 * values, check.values)
                worker.close()
                result = worker.hold(_unit(name, check, subject, seed, values))
            if result.findings:
                order = [case for case, *_ in result.cases]
                found[check.id] = order.index(result.findings[0].case.id) + 1, result.findings
            worker.close()  # no state is carried over from one check to the next
        if not found:
            return Caught(name, (), None, _cpu() - begun, None)
        first = next(iter(found))
        cases, findings = found[first]
        least = shrunk(worker, next((each for each in findings if each.invariant == vice.invariant), findings[0]))
    by = tuple(id for id in CHECKS if id in found)
    spent = _spent(name, vice, CHECKS[first], subject, seed, values, cases)
    return Caught(name, by, cases, spent, None if least is None else len(least.case.steps))


def subject_of(vice: Vice) -> Subject:
    """The subject that shows the defect. Errors: LookupError if its check has no such subject."""
    check = CHECKS[vice.check]
    for edition in [vice.edition] if vice.edition else EDITIONS:  # some subjects exist only in a draft
        for each in filter(check.about, check.family.subjects(edition)):
            if (each.name, each.version) == (vice.subject, vice.version):
                subject: Subject = each
                return subject
    version = "" if vice.version is None else f" v{vice.version}"
    raise LookupError(f"check {vice.check} has no subject {vice.subject}{version}")


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
    """Seconds of processor time until the mutant is found, including its own process."""
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
