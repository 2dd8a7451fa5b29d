"""What known deviations account for: cases that fail as expected, and cases that are held back behind a known death."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kipcheck.conformance.core.ledger import Expected, Failure, HeldBack, Place, places_of
from kipcheck.conformance.core.values.failure_group import FailureGroup
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.worker import Finding, Shape, Unit
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.declare.survival import SURVIVES


class Way(NamedTuple):
    """A way in which cases of a unit fail."""

    unit: Unit
    invariant: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Waiting:
    """Cases that were held back, and wait for the failure that they look like."""

    unit: Unit
    shape: Shape
    """Of the deaths."""
    cases: int


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """The distinct failures of a target, by the ways in which its cases failed."""

    target: str
    """Its name in results, which is not what opens it if it is a command."""
    lines: dict[Way, list[Failure]] = field(default_factory=dict)

    @classmethod
    def of(cls, target: str, lines: Iterable[Failure], groups: Sequence[FailureGroup[Finding]]) -> "ExpectedFailures":
        """``lines``: one for each group, with the entries that match it; others may follow."""
        found = cls(target)
        for line, group in zip(lines, groups, strict=False):
            for each in group.members:
                there = found.lines.setdefault(Way(each.unit, each.invariant, each.violation.shape), [])
                if line not in there:
                    there.append(line)
        return found

    def is_known(self, way: Way) -> bool:
        """Whether known deviations cover all failures of this way there."""
        place = way.unit.subject, way.unit.version
        return way in self.lines and all(_covers(line, place) for line in self.lines[way])

    def expected(self, findings: Iterable[Finding]) -> Iterator[Expected]:
        """The cases all of whose violations of a MUST or a SHOULD are known, counted by place."""
        cases: dict[tuple[Unit, str, int, str], Counter[Way]] = {}
        for each in findings:
            if INVARIANTS[each.invariant].grade is not Grade.INFO:
                way = Way(each.unit, each.invariant, each.violation.shape)
                cases.setdefault((each.unit, each.case.id, each.number, each.kind), Counter())[way] += 1
        counts: dict[Place, Counter[str]] = {}
        for (unit, *_), ways in cases.items():
            if all(map(self.is_known, ways)):
                must = any(INVARIANTS[each.invariant].grade is Grade.MUST for each in ways)
                alike = max(ways.values())  # a value may have equal conversations
                counts.setdefault(self._place(unit), Counter())["FAIL" if must else "WARN"] += alike
        for place, results in counts.items():
            yield Expected(**place._asdict(), results=dict(results))

    def held_back(self, waiting: Iterable[Waiting]) -> Iterator[HeldBack]:
        """Behind a known deviation they count as skipped, else as undecided."""
        for each in waiting:
            way = Way(each.unit, SURVIVES, each.shape)
            result = Result.SKIP if self.is_known(way) else Result.UNKNOWN
            line = next(iter(self.lines.get(way, ())), None)
            yield HeldBack(
                **self._place(each.unit)._asdict(),
                cases=each.cases,
                result=result.name,
                failure=line.id if line else "",
            )

    def _place(self, unit: Unit) -> Place:
        return Place(self.target, unit.check, unit.subject, unit.version)


def _covers(line: Failure, place: tuple[str, int | None]) -> bool:
    if line.known is not None:
        return True
    return line.beyond is not None and place not in set(places_of(line.beyond.where or line.where))
