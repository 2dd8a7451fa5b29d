"""Reports the failures of a target: distinct ones, with their least cases and causes, and what was expected of them."""

from dataclasses import dataclass, field

from kipcheck.conformance.core.ledger import Trouble, count
from kipcheck.conformance.core.values.exits import UNSTABLE
from kipcheck.conformance.core.values.failure_group import FailureGroup, grouped
from kipcheck.conformance.engine.execution.progress import show_traceback
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.engine.execution.tally import Tally
from kipcheck.conformance.engine.execution.worker import Finding, UnitResult, Worker
from kipcheck.conformance.engine.execution.workers import Workers
from kipcheck.conformance.engine.findings import failure_records
from kipcheck.conformance.engine.findings.causes import causes_of
from kipcheck.conformance.engine.findings.early_causes import EarlyCauses
from kipcheck.conformance.engine.findings.failures import Kind, Traits, distinct
from kipcheck.conformance.engine.known.expected import ExpectedFailures, Waiting
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.search.least_cases import LeastCaseSearches
from kipcheck.conformance.engine.search.unshrunk_groups import by_kind
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import TargetInfo


@dataclass(slots=True)
class FailureReport:
    options: Options
    tally: Tally
    searches: LeastCaseSearches
    account: KnownDeviations = field(default_factory=KnownDeviations)
    unreported: tuple[TargetInfo, list[Finding]] | None = None
    """The findings with the current target so far."""
    early: EarlyCauses = field(init=False)
    """Those of the current target."""
    waiting: list[Waiting] = field(default_factory=list)
    """Cases of the current target that were held back."""

    def begin(self, info: TargetInfo) -> None:
        """A target."""
        self.unreported = info, []
        self.account.begin(info)
        self.early = EarlyCauses(info, self.account)

    def add(self, result: UnitResult) -> None:
        assert self.unreported is not None
        self.unreported[1].extend(result.findings)
        self.account.add_result(result)
        self.waiting += (Waiting(result.unit, shape, cases) for shape, cases in result.held_back.items())

    def write_despite_a_defect(self) -> None:
        """After a defect of kipcheck: what was found is not dropped, unless the same defect strikes again."""
        try:
            self.write(None)
        except Exception:  # noqa: BLE001 - the first one is reported
            show_traceback()

    def write(self, workers: Workers | None) -> None:
        """Writes each distinct failure; with the least case if there are workers to search for it."""
        if self.unreported is None:
            return
        info, findings = self.unreported
        if findings and workers is not None:
            findings = self._without_flaky(workers.worker, findings)
        least = self.searches.least(info.name, workers, by_kind(findings), self.account, self._unsteady)
        every = distinct(least, _traits, also_unshrunk=True)
        lines = [failure_records.failure(info, group.members, self.options.out) for group in every]
        judged = self.account.match_failures(lines, in_full=workers is not None)
        for line in judged:
            self.tally.fail(line)
        self._count_expected(info.name, ExpectedFailures.of(info.name, judged, every))
        if workers is not None:
            for cause in causes_of(judged, {line.id: group for line, group in zip(lines, every, strict=True)}):
                self.tally.writer.write(cause)
            self.tally.stale(self.account.stale_lines())
        self.unreported = None

    def _count_expected(self, name: str, failures: ExpectedFailures) -> None:
        """Counts cases that fail as known deviations state as KNOWN, and those that were held back."""
        assert self.unreported is not None
        mine = self.tally.counts.get(name, {})
        for line in failures.expected(self.unreported[1]):
            self.tally.writer.write(line)
            count(mine[line.check], line)
        for held in failures.held_back(self.waiting):
            self.tally.count_held_back(name, held)
        self.waiting.clear()

    def _without_flaky(self, worker: Worker, findings: list[Finding]) -> list[Finding]:
        """The findings without those that are listed as flaky and do not fail every time, for which it writes lines."""
        listed = [finding for finding in findings if self.account.flaky(finding) is not None]
        gone: set[int] = set()
        for group in grouped(listed, _kind):
            if (flaky := self.account.flaky_line(worker, group.first)) is not None:
                self.tally.writer.write(flaky)
                gone.update(map(id, group.members))
        return [finding for finding in findings if id(finding) not in gone]

    def _unsteady(self, finding: Finding) -> None:
        assert self.unreported is not None
        name, unit = self.unreported[0].name, finding.unit
        version = "" if unit.version is None else f" v{unit.version}"
        beside = "" if finding.rate is None else "; beside copies of it, in {} of {} plays".format(*finding.rate)
        why = (
            f"{unit.check} {unit.subject}{version}, {finding.invariant}: {finding.violation.why}; run alone the case "
            f"does not fail ({finding.case.id}){beside}"
        )
        self.tally.writer.write(Trouble(target=name, why=why))
        self.tally.exits.add(UNSTABLE)


def _kind(finding: Finding) -> Kind:
    unit = finding.unit
    return Kind.of(unit.check, finding.invariant, unit.subject, finding.violation.shape, CHECKS[unit.check].shrinks)


def _traits(group: FailureGroup[Finding]) -> Traits:
    """Whichever checks found them, findings that break the same invariant in the same way are one failure."""
    first = group.first
    return Traits(
        (first.invariant, first.shape),
        first.unit.target,
        first.invariant,
        first.shape,
        CHECKS[first.unit.check].shrinks and first.whole,
    )
