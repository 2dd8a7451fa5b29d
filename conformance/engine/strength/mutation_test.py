"""The mutation test of the suite: runs the checks against every mutant, and reports which of them find it."""

import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.pool import pool
from kipcheck.conformance.engine.execution.worker import Finding, Unit, Worker
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.engine.strength import generic_mutation_test
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Subject
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS, Mutant
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.targets.protocol import NotPlayed, Target
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Limits

PORTION = 30
"""Cases that are run before those that violate an invariant are counted."""
QUICK = Limits(cpu_s=0.3, batch_s=20)
"""Limits for mutants that end or hang their process: no correct codec needs as long."""


@dataclass(frozen=True, slots=True)
class MutationResult:
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
    reference_breaks: str = ""
    """The invariant of the mutant, if the reference violates it in a case of the same check."""
    declared_steps: int | None = None
    """The steps of the declared least case; None: it is none of a machine, or another check found the mutant."""
    equivalent: str = ""
    """Of a mutant that fits every family: why it is the reference in this one."""

    @property
    def trouble(self) -> str:
        """Why the suite does not pass with it, in one clause; empty if it does."""
        if self.reference_breaks:
            return f"the reference breaks {self.reference_breaks}, too"
        return "" if self.caught_by or self.equivalent else "not caught"

    @property
    def remark(self) -> str:
        """What the suite passes with, and could do better: the search ended in a longer case than the declared one."""
        if self.least_steps is None or self.declared_steps is None or self.least_steps <= self.declared_steps:
            return ""
        return f"its least case has {self.least_steps} steps, its declaration {self.declared_steps}"


def selected(globs: Sequence[str] = ("*",)) -> list[str]:
    """The mutants whose check matches. Errors: LookupError if none does."""
    found = [name for name, mutant in MUTANTS.items() if _matches(mutant.check, globs)]
    found += generic_mutation_test.ids(globs)
    if not found:
        raise LookupError(f"unknown check {' or '.join(map(repr, globs))}: use one of {', '.join(CHECKS)}")
    return found


def run_mutants(
    names: Iterable[str], globs: Sequence[str] = ("*",), seed: int = 0, workers: int = 1
) -> Iterator[MutationResult]:
    """The results, in the order of the names, whatever the number of workers."""
    if workers == 1:
        yield from (run_mutant(name, globs, seed) for name in names)
        return
    with pool(workers, partial(run_mutant, globs=tuple(globs), seed=seed)) as processes:
        for _, found in processes.map(names):
            assert found is not None
            yield found


def run_mutant(name: str, globs: Sequence[str] = ("*",), seed: int = 0) -> MutationResult:
    """Runs one mutant, on the subject that shows its defect, with all matching checks of its family."""
    if generic_mutation_test.AT in name:
        return _generic(name, globs, seed)
    mutant = MUTANTS[name]
    subject = subject_of(mutant)
    # The mutant's own check comes first.
    checks = sorted(_applicable_checks(mutant, subject, globs), key=lambda check: check.id != mutant.check)
    found: dict[str, tuple[int, list[Finding]]] = {}
    begun = _cpu()
    values = None if not mutant.deadly else 1
    with Worker(name, target_of_mutant(name, mutant)) as worker:
        for check in checks:
            result = worker.run(_unit(name, check, subject, seed, values))
            # A deadly mutant costs a process for each failing case, so values are increased step by step.
            while values is not None and not found and not result.findings and values < check.values:
                values = min(4 * values, check.values)
                worker.close()
                result = worker.run(_unit(name, check, subject, seed, values))
            if result.findings:
                order = [case for case, *_ in result.cases]
                found[check.id] = order.index(result.findings[0].case.id) + 1, result.findings
            worker.close()  # no state is carried over from one check to the next
        if not found:
            return MutationResult(name, (), None, round(_cpu() - begun, 4), None)
        first = next(iter(found))
        cases, findings = found[first]
        # From a short case the search ends sooner, and deeper: enumerated cases come first, and are long.
        findings.sort(key=lambda each: len(each.case.steps))
        own = next((each for each in findings if each.invariant == mutant.invariant), None)
        least = shrunk(worker, own or findings[0])
    by = tuple(id for id in CHECKS if id in found)
    spent = _spent(name, mutant, CHECKS[first], subject, seed, values, cases)
    steps = None if least is None else len(least.case.steps)
    declared = _declared_steps(mutant) if own is not None and first == mutant.check else None
    return MutationResult(name, by, cases, round(spent, 4), steps, _broken(mutant, subject, seed), declared)


def _generic(name: str, globs: Sequence[str], seed: int) -> MutationResult:
    found = generic_mutation_test.run_generic(name, globs, seed)
    cpu_s = round(found.cpu_s, 4)
    return MutationResult(name, found.caught_by, found.first, cpu_s, None, equivalent=found.why_equivalent)


def _declared_steps(mutant: Mutant) -> int | None:
    machine = next((each for each in registry.operations().values() if mutant.subject in each.machines), None)
    if machine is None or not isinstance(mutant.least, str):
        return None
    return len(machine.parse_shorthand(mutant.least))


def _broken(mutant: Mutant, subject: Subject, seed: int) -> str:
    """The invariant of a mutant, if the reference violates it in the cases of the mutant's check.

    Descriptions do not count, nor do targets that the reference does not play.
    """
    by_id = {each.id: each for each in all_invariants(CHECKS[mutant.check].role)}
    if by_id[mutant.invariant].grade is Grade.INFO:
        return ""
    broken = reference_breaks(mutant.check, subject.edition, subject.name, subject.version, seed)
    return mutant.invariant if mutant.invariant in broken else ""


@lru_cache(maxsize=256)
def reference_breaks(check: str, edition: str, subject: str, version: int | None, seed: int) -> frozenset[str]:
    """The invariants that the reference violates in the default cases of a check."""
    with Worker("reference", Afresh("reference", Reference)) as worker:
        try:
            result = worker.run(Unit("reference", edition, check, subject, version, seed, None))
        except NotPlayed:
            return frozenset()
    return frozenset(id for _, _, by in result.cases for id, found in by.items() if found == Result.FAIL.name)


def violating(name: str, seed: int, enough: int, subject: Subject | None = None) -> tuple[int, bool]:
    """Counts the default cases of a mutant's own check that violate its invariant, up to ``enough``.

    And whether a case of an enumeration is among them: then no more are run. ``subject``: None: the one that shows its
    defect.
    """
    mutant = MUTANTS[name]
    check, about = CHECKS[mutant.check], subject or subject_of(mutant)
    law = next(each for each in all_invariants(check.role) if each.id == mutant.invariant)
    enumerated = {Case(check.id, about.edition, check.role, steps).id for steps, _ in check.given(about)}
    cases, found = (each.case for each in check.samples(about, seed)), 0
    with Worker(name, target_of_mutant(name, mutant)) as worker:
        while found < enough and (some := [*islice(cases, PORTION)]):
            ids = [history.case.id for history, _ in worker.violations(some, law)]
            found += len(ids)
            if enumerated.intersection(ids):
                return found, True
    return found, False


def subject_of(mutant: Mutant) -> Subject:
    """The subject that shows the defect. Errors: LookupError if its check has no such subject."""
    check = CHECKS[mutant.check]
    for edition in [mutant.edition] if mutant.edition else EDITIONS:  # some subjects exist only in a draft
        for each in filter(check.about, check.family.subjects(edition)):
            if (each.name, each.version) == (mutant.subject, mutant.version):
                subject: Subject = each
                return subject
    version = "" if mutant.version is None else f" v{mutant.version}"
    raise LookupError(f"check {mutant.check} has no subject {mutant.subject}{version}")


def _applicable_checks(mutant: Mutant, subject: Subject, globs: Sequence[str]) -> Iterator[Check[Any]]:
    family = CHECKS[mutant.check].family
    return (
        each for each in CHECKS.values() if each.family is family and _matches(each.id, globs) and each.about(subject)
    )


def _matches(check: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(check, glob) for glob in globs)


def target_of_mutant(name: str, mutant: Mutant) -> Target:
    """Deadly mutants, and those that remember what they were sent, run in a process of their own."""
    in_a_child = mutant.deadly or mutant.remembers
    return target(f"miniature/{name}", QUICK) if in_a_child else Afresh(f"miniature/{name}", mutant.made)


def _unit(name: str, check: Check[Any], subject: Subject, seed: int, values: int | None) -> Unit:
    return Unit(name, subject.edition, check.id, subject.name, subject.version, seed, values)


def _spent(
    name: str, mutant: Mutant, check: Check[Any], subject: Subject, seed: int, values: int | None, cases: int
) -> float:
    """Seconds of processor time until the mutant is found, including its own process."""
    begun = _cpu()
    by_id = {each.id: each for each in all_invariants(check.role)}
    with Worker(name, target_of_mutant(name, mutant)) as worker:
        drawn = [each.case for each in islice(check.samples(subject, seed, values), cases)]
        for _ in worker.violations(drawn, by_id[mutant.invariant]):
            pass
    return _cpu() - begun


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
