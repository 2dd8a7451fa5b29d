"""What counts as covered: which results, which parts of a requirement, and the editions in which cases were judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

from kipcheck.conformance.core.ledger import AboutRequirement, Ledger, Place
from kipcheck.conformance.core.values.requirement import RELEASED, SIDES

NOT_JUDGED: Final = ("SKIP", "UNKNOWN")
Unit: TypeAlias = tuple[str, str, str]
"""Target, check, subject."""


def is_own(target: str) -> bool:
    """Whether a target is kipcheck's own reference, a mutant or a drill, and none that others release."""
    return target == "reference" or target.startswith(("miniature/", "drill:"))


def is_judged(results: Mapping[str, int]) -> bool:
    return any(number and result not in NOT_JUDGED for result, number in results.items())


class Judged(NamedTuple):
    """How often an invariant had what it is about."""

    judged: int
    """Cases that it judged."""
    cases: int
    """Cases that it applies to."""


def judged_cases(ledger: Ledger) -> dict[str, dict[str, Judged]]:
    """Target -> invariant -> its cases, in the order of the header."""
    found: dict[str, dict[str, Judged]] = {}
    for (place, invariant), counts in ledger.held.items():
        by = found.setdefault(place.target, {})
        before = by.get(invariant, Judged(0, 0))
        judged = sum(number for result, number in counts.items() if result not in NOT_JUDGED)
        by[invariant] = Judged(before.judged + judged, before.cases + counts.total())
    order = {id: number for number, id in enumerate(ledger.header.invariants)}
    return {
        target: dict(sorted(by.items(), key=lambda each: order.get(each[0], len(order))))
        for target, by in found.items()
    }


def unjudged(ledger: Ledger, editions: "Editions") -> dict[str, tuple[str, ...]]:
    """Target -> the invariants of its checks that no case judged; targets without such are left out.

    The target refused what they are about, or lacks it, or there were too few cases. A part of a run has only a share
    of the cases: the merged parts are counted.
    """
    if ledger.header.part is not None:
        return {}
    judged = {
        (place.target, invariant)
        for (place, invariant), counts in ledger.held.items()
        if is_judged(counts) and editions.of(place, invariant)
    }
    checks: dict[str, set[str]] = {}
    for place in ledger.cases:
        checks.setdefault(place.target, set()).add(place.check)
    found = {
        target: tuple(
            id
            for id, about in ledger.header.invariants.items()
            if not names.isdisjoint(about.checks) and (target, id) not in judged
        )
        for target, names in checks.items()
    }
    return {target: ids for target, ids in found.items() if ids}


def parts_reached(about: AboutRequirement, judged: Mapping[str, set[str]]) -> dict[str, int]:
    """For each side, the number of parts that an invariant judged; a sentence without parts is one."""
    return {
        each: sum(bool(judged.get(each, set()).intersection(part)) for part in about.parts)
        if about.parts
        else int(bool(judged.get(each)))
        for each in SIDES.get(about.edition, (RELEASED,))
    }


@dataclass(frozen=True, slots=True)
class Editions:
    """The editions in which a run judged its cases."""

    usual: str
    declared: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Check -> subject -> editions, if it has others than the usual one."""
    judged: Mapping[Unit, Mapping[str, tuple[str, ...]]]
    """Edition -> the invariants that were judged in it."""

    @classmethod
    def of_ledger(cls, ledger: Ledger) -> Self:
        judged = {
            (done.target, done.check, subject): by
            for done in ledger.checks
            for subject, by in (done.judged or {}).items()
        }
        return cls(ledger.header.options.edition or "apache", ledger.header.editions or {}, judged)

    def of(self, place: Place, invariant: str) -> tuple[str, ...]:
        """Where the subject has several editions, those in which the invariant was judged; all of them in a ledger that
        does not name these, such as that of a campaign.
        """
        by = self.judged.get((place.target, place.check, place.subject))
        if by is not None:
            return tuple(each for each, invariants in by.items() if invariant in invariants)
        return self.declared.get(place.check, {}).get(place.subject, (self.usual,))
