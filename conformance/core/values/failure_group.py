"""Groups of failures that are reported as one, in a run, a campaign, a merged ledger and a matrix."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kipcheck.conformance.core.values.verdict import Grade

Member = TypeVar("Member")
GRADES: Final = tuple(each.value for each in Grade)
"""The gravest first."""


@dataclass(frozen=True, slots=True)
class FailureGroup(Generic[Member]):
    """One failure, by all that shows it: never empty."""

    members: tuple[Member, ...]
    """In the order in which they were found."""

    @property
    def first(self) -> Member:
        return self.members[0]

    @property
    def rest(self) -> tuple[Member, ...]:
        return self.members[1:]


def severity(grade: str) -> int:
    """Orders failures by the grade of what they break, the gravest first. Errors: ValueError for an unknown grade."""
    return GRADES.index(grade)


def grouped(found: Iterable[Member], key: Callable[[Member], Hashable]) -> list[FailureGroup[Member]]:
    """Those with equal keys together, in the order of the first of each group."""
    groups: dict[Hashable, list[Member]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return [FailureGroup(tuple(members)) for members in groups.values()]
