"""The mutation test with mutants that fit every family: ``MUTANT@FAMILY``.

A family is a machine in one of its editions, or all codecs or leaders of an area of checks: of these it has the
subjects that the planted defects of the area have.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.core.values.requirement import Requirement
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.worker import Unit, UnitResult, Worker, drawn
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Subject
from kipcheck.conformance.protocols.generic_mutants import EQUIVALENT, GENERIC
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh

AT: Final = "@"
Asked = tuple[Check[Any], Subject]
"""A check, and what it is asked about."""


@dataclass(frozen=True, slots=True)
class GenericResult:
    """How a family finds a mutant."""

    id: str
    caught_by: tuple[str, ...]
    """The checks with a case that it fails."""
    by_invariant: Mapping[str, int]
    """The cases that violate each invariant, the most frequent first; descriptions (INFO) are left out."""
    failed: int
    """Cases that violate an invariant."""
    cases: int
    first: int | None
    """The number of the first failing case."""
    cpu_s: float
    why_equivalent: str
    """Why it is the reference in this family; empty: it is not."""


@cache
def families() -> Mapping[str, tuple[Asked, ...]]:
    """By name; those that are played in real time are left out."""
    found: dict[str, list[Asked]] = {}
    played = {*registry.machines()} - _in_real_time()
    for check in CHECKS.values():
        area = _area(check.id)
        of_mutants = {(each.subject, each.version) for each in MUTANTS.values() if _area(each.check) == area}
        editions = {each.edition for each in MUTANTS.values() if _area(each.check) == area and each.edition}
        for subject in _subjects(check):
            if subject.name in played:
                found.setdefault(_name(subject.name, subject.edition), []).append((check, subject))
            elif check.role in (Role.CODEC, Role.LEADER) and (subject.name, subject.version) in of_mutants:
                first = subject == next(each for each in _subjects(check) if _same(each, subject))
                if first or subject.edition in editions:
                    found.setdefault(area, []).append((check, subject))
    return {name: tuple(each) for name, each in found.items()}


def _area(check: str) -> str:
    return check.partition("/")[0]


def _same(one: Subject, other: Subject) -> bool:
    return (one.name, one.version) == (other.name, other.version)


def _subjects(check: Check[Any]) -> tuple[Subject, ...]:
    return _listed(check.id)


@cache
def _listed(check: str) -> tuple[Subject, ...]:
    of = CHECKS[check]
    return tuple(dict.fromkeys(each for name in EDITIONS for each in of.family.subjects(name) if of.about(each)))


def _in_real_time() -> set[str]:
    """The machines that the reference does not play: their targets are programs."""
    from kipcheck.conformance.protocols.machine_targets import MACHINE_ADAPTERS

    return {*registry.machines()} - {*MACHINE_ADAPTERS}


def _name(machine: str, edition: str) -> str:
    base = edition.partition("@")[0]
    return machine if base == "apache" else f"{machine}:{base}"


def ids(globs: Iterable[str] = ("*",)) -> list[str]:
    """The mutants of all families with a check that matches."""
    return [
        f"{mutant}{AT}{family}"
        for family, asked in families().items()
        if any(fnmatchcase(check.id, glob) for check, _ in asked for glob in globs)
        for mutant in GENERIC
    ]


def run_generic(id: str, globs: Sequence[str] = ("*",), seed: int = 0, verb: str = "") -> GenericResult:
    """Runs a mutant with the default cases of the matching checks of a family.

    ``verb``: the operation that it alters; empty: each.
    """
    mutant, _, family = id.partition(AT)
    if (why := EQUIVALENT.get((mutant, family), "")) and not verb:
        return GenericResult(id, (), {}, 0, 0, None, 0.0, why)
    begun = time.process_time()
    by: Counter[str] = Counter()
    caught: list[str] = []
    failed, cases, first = 0, 0, None
    with Worker(mutant, Afresh(mutant, partial(GENERIC[mutant].make, verb))) as worker:
        for check, subject in families()[family]:
            if not any(fnmatchcase(check.id, glob) for glob in globs):
                continue
            for violated in _violated(worker.run(_unit(mutant, check, subject, seed)), check.role):
                cases += 1
                if violated:
                    by.update(violated)
                    failed, first = failed + 1, first or cases
                    caught.append(check.id)
    spent = time.process_time() - begun
    return GenericResult(id, tuple(dict.fromkeys(caught)), dict(by.most_common()), failed, cases, first, spent, "")


def _unit(mutant: str, check: Check[Any], subject: Subject, seed: int) -> Unit:
    return Unit(mutant, subject.edition, check.id, subject.name, subject.version, seed, None)


def _violated(result: UnitResult, role: Role) -> Iterator[list[str]]:
    """The invariants that each case violates, without descriptions."""
    described = {each.id for each in all_invariants(role) if each.grade is Grade.INFO}
    for _, _, by in result.cases:
        yield [name for name, found in by.items() if found == Result.FAIL.name and name not in described]


def differs(id: str, seed: int = 0) -> int:
    """The default cases in which a mutant answers other than the reference."""
    mutant, _, family = id.partition(AT)
    found = 0
    for check, subject in families()[family]:
        cases = [each.case for each in drawn(check.id, subject.edition, subject.name, subject.version, seed, None)]
        made = [Afresh("reference", Reference), Afresh(mutant, GENERIC[mutant].made)]
        with made[0].open(subject.edition, check.role) as one, made[1].open(subject.edition, check.role) as other:
            pairs = zip(converse(cases, one), converse(cases, other), strict=True)
            found += sum(
                [op.observation for op in right.ops] != [op.observation for op in altered.ops]
                for right, altered in pairs
            )
    return found


def unfound(stated: Mapping[str, Requirement], seed: int = 0) -> Iterator[str]:
    """The halves that name a mutant of this module which none of their invariants finds."""
    for id, each in stated.items():
        for name, half in (("does", each.does), ("never", each.never)):
            if half is None:
                continue
            for mutant in filter(GENERIC.__contains__, half.mutants):
                if not any(_finds(mutant, invariant, seed) for invariant in half.invariants):
                    yield f"{id}: {name} names {mutant}, which none of its invariants finds"


@cache
def _finds(mutant: str, invariant: str, seed: int) -> bool:
    """Whether a mutant of some family violates the invariant with the default cases of a check."""
    for asked in families().values():
        for check, subject in asked:
            if invariant not in check.invariants:
                continue
            with Worker(mutant, Afresh(mutant, GENERIC[mutant].made)) as worker:
                result = worker.run(_unit(mutant, check, subject, seed))
            if any(by.get(invariant) == Result.FAIL.name for _, _, by in result.cases):
                return True
    return False
