"""Groups the findings of a target before they are shrunk, and selects those that are shrunk."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.failure_group import FailureGroup, grouped
from kipcheck.conformance.core.values.history import Died, Refused
from kipcheck.conformance.engine.execution.worker import Finding, Shape
from kipcheck.conformance.protocols.checks import CHECKS

MOST_SHRUNK: Final = 3
"""The most findings of a group that are shrunk, no two of them of the same check and subject."""


class Sort(NamedTuple):
    """Findings of one target with equal sorts are probably one failure, whichever checks found them on whatever."""

    invariant: str
    place: "Place"
    shape: Shape


class Place(NamedTuple):
    """The place in the library where a refusal or a death comes from; empty texts, where that is unknown."""

    exception: str
    at: str

    @classmethod
    def of(cls, finding: Finding) -> "Place":
        match finding.history.ops[finding.violation.at[-1]].observation:
            case Refused(error, at=at) if at:
                return cls(error, at)
            case Died(cause, at=at) if at and cause != "timeout":  # where a case runs out of time is chance
                return cls(cause, at)
        return NOWHERE


NOWHERE: Final = Place("", "")


def by_kind(findings: Iterable[Finding]) -> list[FailureGroup[Finding]]:
    """In the order of the first finding of each."""
    return grouped(findings, lambda each: Sort(each.invariant, Place.of(each), each.violation.shape))


def selected(group: FailureGroup[Finding], lasts_s: Callable[[Finding], float] = lambda _: 0.0) -> list[Finding]:
    """The findings of the group that are shrunk: of each check and subject the one with the smallest case, and of those
    the smallest of all, and then others, of other subjects and checks as far as there are any.

    ``lasts_s``: how long their cases wait. In real time, those that wait least are taken.
    """
    shrink = [each for each in group.members if CHECKS[each.unit.check].shrinks]
    origins = grouped(
        sorted(shrink or group.members, key=lambda each: (lasts_s(each), each.case.size)),
        lambda each: (each.unit.check, each.unit.subject),
    )
    left = [each.first for each in origins]
    found: list[Finding] = []
    while left and len(found) < (MOST_SHRUNK if shrink else 1):  # without shrinking one rerun shows the same as three
        subjects, checks = {each.unit.subject for each in found}, {each.unit.check for each in found}
        found.append(min(left, key=lambda each: (each.unit.subject in subjects) + (each.unit.check in checks)))
        left = [each for each in left if each.case.id != found[-1].case.id]
    return found


@dataclass(frozen=True, slots=True)
class ShrunkGroup:
    """A group, and what the selected findings were shrunk to."""

    group: FailureGroup[Finding]
    least: Sequence[tuple[Finding, Finding]]
    """Finding and least finding; not empty."""

    def parts(self) -> list[FailureGroup[Finding]]:
        """The group by what it shrank to. Each finding that was not shrunk is counted with the least case of the same
        check and subject, of the same subject, of the same check, or with the first one.
        """
        parts = [[least] for _, least in self.least]
        shrunk = {id(finding) for finding, _ in self.least}
        for member in self.group.members:
            if id(member) not in shrunk:
                parts[self._nearest(member)].append(member)
        return [FailureGroup(tuple(each)) for each in parts]

    def _nearest(self, member: Finding) -> int:
        def distance(number: int) -> tuple[bool, bool, int]:
            unit = self.least[number][0].unit
            return unit.subject != member.unit.subject, unit.check != member.unit.check, number

        return min(range(len(self.least)), key=distance)
