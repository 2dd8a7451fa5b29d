"""Counts the results of a run: by target, check and result, with the exit codes that follow, and the ledger's lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kipcheck.conformance.core.ledger import (
    Failure,
    Footer,
    Inconclusive,
    PlayedScript,
    SequenceStep,
    Stale,
    Trouble,
    Verdict,
    count,
)
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.exits import BROKEN, INCONCLUSIVE, STALE, UNDECIDED, UNSTABLE
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.engine.execution.worker import UnitResult
from kipcheck.conformance.engine.ledger.conclusion import EVERY_TARGET, Conclusion
from kipcheck.conformance.engine.ledger.lines import LedgerLines
from kipcheck.conformance.protocols.checks import Check


@dataclass(slots=True)
class Tally:
    options: Options
    writer: LedgerLines
    exits: set[int] = field(default_factory=set)
    why: str = ""
    """One line if the run was cut short."""
    counts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """target -> check -> result -> cases"""
    failures: Counter[Grade] = field(default_factory=Counter)
    """Distinct ones."""
    known: int = 0
    """Distinct failures that are known deviations."""
    held_back: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """(target, check) -> result -> cases that were held back."""
    by_invariant: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """As ``Conclusion`` has it."""
    scripts: dict[tuple[str, str], PlayedScript] = field(default_factory=dict)
    """(target, case) -> its exchanges, once however many checks judge it."""

    def of(self, name: str, check: Check[Any]) -> Counter[str]:
        return self.counts.setdefault(name, {}).setdefault(check.id, Counter())

    def record(self, name: str, check: Check[Any], result: UnitResult) -> None:
        """Writes the verdicts of a unit, and counts them."""
        counts = self.of(name, check)
        subject, version = result.unit.subject, result.unit.version
        for trouble in result.troubles:
            self.writer.write(Trouble(target=name, why=trouble))
            self.exits.add(UNSTABLE)
        for breach in result.breaches:
            self.writer.write(Trouble(target=name, why=breach))
            self.exits.add(BROKEN)
        if result.unreached:
            counts[Result.UNKNOWN.name] += 1
            late = Verdict(
                target=name, check=check.id, subject=subject, version=version, case=None, result=Result.UNKNOWN.name,
                why=result.unreached,
            )  # fmt: skip
            self.writer.write(late)
        if result.gave_up:
            self.why = self.why or result.unreached
        for case, verdict, judged in result.cases:
            counts[verdict] += 1
            for id, came in judged.items():
                self.by_invariant.setdefault((name, id), set()).add(came)
            line = Verdict(
                target=name, check=check.id, subject=subject, version=version, case=case, result=verdict, by=judged,
                why=result.skipped.get(case),
            )  # fmt: skip
            self.writer.write(line)
        for case, script, broken, rows in result.traces:
            before = self.scripts.get((name, case))
            more = {} if before is None else before.broken
            self.scripts[name, case] = PlayedScript(
                target=name, subject=subject, case=case, script=script, broken={**more, **broken},
                steps=tuple(map(SequenceStep.of, rows)),
            )  # fmt: skip
        if result.skipped:
            self.held_back.setdefault((name, check.id), Counter())[Result.SKIP.name] += len(result.skipped)
        if counts[Result.UNKNOWN.name]:
            self.exits.add(UNDECIDED)

    def fail(self, line: Failure) -> None:
        if line.known is not None:
            self.known += 1
        else:
            self.failures[Grade(line.grade)] += 1
            self.exits |= exits.of_failure(line)
        self.writer.write(line)

    def stale(self, lines: Iterable[Stale]) -> None:
        for line in lines:
            self.writer.write(line)
            self.exits.add(STALE)

    def count_held_back(self, name: str, line: Any) -> None:
        """A line for cases that were held back."""
        self.writer.write(line)
        count(self.counts.get(name, {})[line.check], line)
        self.held_back.setdefault((name, line.check), Counter())[line.result] += line.cases
        if line.result == Result.UNKNOWN.name:
            self.exits.add(UNDECIDED)

    def stop(self, code: int, why: str) -> str:
        self.writer.settle()
        self.exits.add(code)
        self.why = why
        return why

    def conclude(self, stopped: str | None) -> None:
        """Writes exchanges, and names checks without a verdict.

        A part of a run proves nothing alone: the merged parts are judged.
        """
        for script in self.scripts.values():
            self.writer.write(script)
        held_back = {key: by_result[Result.SKIP.name] for key, by_result in self.held_back.items()}
        conclusion = Conclusion(self.counts, held_back, self.by_invariant)
        for skip in conclusion.skipped_checks():
            self.writer.write(skip)
        if stopped is not None or (self.counts and self.options.part is not None):
            return
        reasons = conclusion.reasons(self.options.require) if self.counts else self._nothing()
        for reason in reasons:
            self.writer.write(reason)
            self.exits.add(INCONCLUSIVE)

    def _nothing(self) -> Iterator[Inconclusive]:
        """Why nothing was tested, unless that has another exit code: what was selected is in the other parts."""
        if not self.exits:
            why = f"part {self.options.part} has none of the selected subjects, so nothing was tested here"
            yield Inconclusive(target=EVERY_TARGET, check="*", why=why)

    def footer(self, stopped: str | None, known: Mapping[str, int] | None, seconds: float, least: Any) -> int:
        """Writes the last line. Returns the exit code."""
        code = exits.first(self.exits)
        undecided = any(
            by_result[Result.UNKNOWN.name] for checks in self.counts.values() for by_result in checks.values()
        )
        footer = Footer(
            complete=stopped is None and not undecided,
            stopped_by=stopped,
            exit=code,
            exits=tuple(sorted(self.exits)),
            meaning=exits.meaning(code, self.known),
            counts={
                name: {check: dict(count) for check, count in checks.items()} for name, checks in self.counts.items()
            },
            known=None if known is None else {**known, "failures": self.known},
            seconds=round(seconds, 1),
            least=least,
        )
        self.writer.write(footer)
        self.writer.flush()
        return code
