"""The causes that the findings of a run suggest before any of them is shrunk, for its progress."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kipcheck.conformance.core.values.impacts import Severity
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.execution.worker import Finding
from kipcheck.conformance.engine.findings.finding_pages import cause_page, shown_effect
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.known.rules import ObservedFailure
from kipcheck.conformance.engine.known.shipped import entry_like
from kipcheck.conformance.engine.search.unshrunk_groups import Place, Sort
from kipcheck.conformance.protocols.invariants import all_invariants, effect_of
from kipcheck.conformance.targets.protocol import TargetInfo


@dataclass(frozen=True, slots=True)
class EarlyCause:
    """What a finding probably comes from: the report may unite it with others, or name it differently."""

    title: str
    severity: Severity
    known: bool
    """Whether the lists of known deviations of the run have it."""
    noted: str = ""
    """The invariant, if it is a NOTE: it has no cause in common with others."""

    @property
    def word(self) -> str:
        """The effect, which is that of a violation; a NOTE is none."""
        return Grade.INFO.word if self.noted else self.severity.value


@dataclass(slots=True)
class EarlyCauses:
    """The causes found so far with one target, each once."""

    info: TargetInfo
    account: KnownDeviations
    _sorts: set[Sort] = field(default_factory=set)
    _titles: set[tuple[str, str]] = field(default_factory=set)
    """With the invariant of a NOTE."""

    @property
    def count(self) -> int:
        return len(self._titles)

    def add(self, findings: list[Finding]) -> Iterator[tuple[EarlyCause, Finding]]:
        """The causes that no earlier finding suggested, each with the finding that does."""
        for each in findings:
            sort = Sort(each.invariant, Place.of(each), each.violation.shape)
            if sort in self._sorts:
                continue
            self._sorts.add(sort)
            cause = self._cause(each)
            if (cause.title, cause.noted) not in self._titles:
                self._titles.add((cause.title, cause.noted))
                yield cause, each

    def _cause(self, finding: Finding) -> EarlyCause:
        unit, violation = finding.unit, finding.violation
        failure = ObservedFailure(
            "", self.info.name, self.info.version, (unit.check,), finding.invariant, violation.shape, violation.why,
            frozenset({(unit.subject, unit.version)}), whole=False,
        )  # fmt: skip
        known, entry = self.account.lists(failure), entry_like(failure)
        page = None if entry is None else cause_page(entry.link)
        invariant = next(each for each in all_invariants(finding.case.role) if each.id == finding.invariant)
        effect = effect_of(finding.invariant, violation.shape, unit.subject, violation.answered)
        noted = invariant.id if invariant.grade is Grade.INFO else ""
        return EarlyCause(*shown_effect(page, effect, invariant.statement), known, noted)
