"""Runs the default cases of checks, and counts the branches of invariants that apply in them.

``install`` of ``counter`` has to come before this module is imported.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.deaths import Deaths
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Unit, Worker, invariants_of
from kipcheck.conformance.engine.reach.counter import Counter
from kipcheck.conformance.engine.strength.mutation_test import PORTION, subject_of, target_of_mutant
from kipcheck.conformance.live.client.built_in import OPTIONAL
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.in_process import Consumers, consumer
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Sample
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.targets.protocol import NotPlayed, Target
from kipcheck.conformance.targets.registry import target as target_of

__all__ = ["CHECKS", "all_invariants", "by_mutants", "of_check"]

APACHE: Final = "apache"
SEED: Final = 0
TAKEN: Final = frozenset(OPTIONAL) - {"client_id"}
"""The settings of scripts that the consumer in this process takes."""

Cases: TypeAlias = dict[str, dict[str, int]]
"""Invariant -> place -> the cases in which it applied."""


def reference_of(role: Role) -> Target:
    """What plays a role without a defect."""
    return _live(Consumer) if role is Role.CLIENT else Afresh("reference", Reference)


def _live(made: type[Consumer]) -> Target:
    """Consumers in this process, whose scripts are played side by side."""
    return LiveClient("consumer", Consumers(made), "0", TAKEN)


def of_check(id: str, counter: Counter, target: str = "") -> Cases:
    """The counts in the default cases of a check: in the edition ``apache``, or else in all that have a subject for it,
    and in those that its mutants name.

    ``target``: by its name; none: one without a defect. Errors: LookupError, and those of ``Worker``.
    """
    check, found = CHECKS[id], _nothing()
    named = [each.edition for each in MUTANTS.values() if each.check == id and each.edition]
    usual = [APACHE] if any(map(check.about, check.family.subjects(APACHE))) else [*EDITIONS]
    for edition in dict.fromkeys((*usual, *named)):
        for subject in filter(check.about, check.family.subjects(edition)):
            unit = Unit(target, subject.edition, id, subject.name, subject.version, SEED, None)
            with suppress(NotPlayed):
                played = target_of(target) if target else reference_of(check.role)
                for invariant, places in _applied(played, unit, counter):
                    for place in places:
                        found[invariant][place] += 1
    return {invariant: dict(places) for invariant, places in found.items()}


def by_mutants(wanted: Collection[str], searched: Mapping[str, frozenset[str]], counter: Counter) -> dict[str, str]:
    """Of these places and invariants, those that a mutant of an invariant reaches in the default cases of its check, on
    the subject that shows its defect, and the mutant."""
    found: dict[str, str] = {}
    for name, mutant in MUTANTS.items():
        waiting = {*wanted} & {mutant.invariant, *searched.get(mutant.invariant, ())} - found.keys()
        if not waiting:
            continue
        subject = subject_of(mutant)
        unit = Unit(name, subject.edition, mutant.check, subject.name, subject.version, SEED, None)
        odd = getattr(mutant.made, "consumer", "") if CHECKS[mutant.check].role is Role.CLIENT else None
        target = target_of_mutant(name, mutant) if odd is None else _live(consumer(odd))
        for invariant, places in _applied(target, unit, counter):
            if invariant == mutant.invariant:
                found.update(dict.fromkeys(waiting & {invariant, *places}, name))
                waiting -= {invariant, *places}
            if not waiting:
                break
    return found


def _nothing() -> defaultdict[str, defaultdict[str, int]]:
    return defaultdict(lambda: defaultdict(int))


def _applied(target: Target, unit: Unit, counter: Counter) -> Iterator[tuple[str, frozenset[str]]]:
    """For each case and invariant the places that applied."""
    check = CHECKS[unit.check]
    with Worker(target.name, target) as worker:
        session, samples = worker.session(unit.edition, check.role), worker.samples(unit)
        portion = len(samples) if check.role is Role.CLIENT else PORTION  # live cases wait side by side
        for some in batched(samples, portion):
            for history in converse([each.case for each in some], session, Deaths()):
                for invariant in invariants_of(check):
                    counter.applied.clear()
                    for _ in judge(history, (invariant,)):
                        pass
                    if counter.applied:
                        yield invariant.id, frozenset(counter.applied)


def batched(samples: Sequence[Sample], size: int) -> Iterator[Sequence[Sample]]:
    return (samples[at : at + size] for at in range(0, len(samples), max(size, 1)))
