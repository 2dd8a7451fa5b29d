"""The ledger and the reports of traffic that was watched, from clients that kipcheck did not start."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kipcheck import reports
from kipcheck.conformance.core import ledger as records
from kipcheck.conformance.core.files.output_folder import OF_A_RUN, OutputFolder, Unusable
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.failure_group import grouped
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.untrusted_text import WATCHED
from kipcheck.conformance.core.values.verdict import Result, Violation
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.engine.execution.worker import Finding, Unit
from kipcheck.conformance.engine.findings.causes import causes_of
from kipcheck.conformance.engine.findings.failure_records import failure
from kipcheck.conformance.engine.ledger.header import header
from kipcheck.conformance.engine.ledger.lines import LedgerLines
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo

SUBJECT = "client"


@dataclass(frozen=True, slots=True)
class Seen:
    """A broken invariant, in the history of a client or of what a coordinator answered."""

    client: str
    """The client, or the coordinators, that broke it, as in ``Judged``."""
    invariant: str
    history: History
    violation: Violation


@dataclass(frozen=True, slots=True)
class Judged:
    """What was judged of a client, or of the coordinators, by the laws of one check."""

    client: str
    check: str
    histories: int
    laws: Mapping[str, int]
    """Invariant -> the histories in which it read something."""


@dataclass(frozen=True, slots=True)
class Watched:
    edition: str
    judged: Sequence[Judged]
    """At least one: without a client, if none was judged."""
    seen: Sequence[Seen]
    shown_by: str
    """The check whose family shows the histories."""
    begun: float
    """``time.monotonic`` at the begin."""
    exchanges: records.Exchanges
    """What was judged, and what was not."""
    trouble: str = ""
    """What was not seen."""
    unread: str = ""
    """Why a part of what was to be watched was not read."""
    has_defect: bool = False
    """Whether a defect of kipcheck's kept it from judging something."""
    unseen_must: bool = False
    """Whether a requirement of grade MUST was broken in a history that is not among ``seen``."""


def usable(out: Path) -> None:
    """Errors: ``Unusable`` or OSError if the results cannot be written there; call it before watching."""
    folder = OutputFolder(out)
    folder.check(*OF_A_RUN)
    with folder.trial(records.NAME):
        pass


def write(watched: Watched, out: Path) -> tuple[int, str, Path]:
    """Writes ledger and reports; gives the exit code, the report for a terminal and the ledger.

    Errors: ``Unusable``, OSError.
    """
    folder = OutputFolder(out)
    folder.check(*OF_A_RUN)
    names = tuple(dict.fromkeys(each.client for each in watched.judged))
    checks = tuple(dict.fromkeys(each.check for each in watched.judged))
    options = Options(targets=tuple(WATCHED + each for each in names), edition=watched.edition, checks=checks, out=out)
    with folder.trial(records.NAME), LedgerLines(folder, None) as lines:
        lines.write(header(options))
        lines.begin()
        codes: set[int] = {exits.FAILED} if watched.unseen_must else set()
        counts: dict[str, dict[str, dict[str, int]]] = {}
        for name in names:
            lines.write(records.Target(target=WATCHED + name, version="", language="", issues=""))
            judged = [each for each in watched.judged if each.client == name]
            counts[WATCHED + name] = {each.check: dict(_judged(watched, each, lines, out, codes)) for each in judged}
        if watched.trouble:
            lines.write(records.Trouble(target=WATCHED + names[0], why=watched.trouble))
        lines.write(watched.exchanges)
        codes |= {exits.OURS} if watched.has_defect else set()
        codes |= {exits.UNDECIDED} if watched.unread else set()
        if not sum(watched.exchanges.judged.values()):
            lines.write(
                records.Inconclusive(target="*", check="*", why="no exchange of a member with its group was judged")
            )
            codes |= {exits.INCONCLUSIVE}
        code = exits.first(codes)
        footer = records.Footer(
            complete=not watched.unread, stopped_by=watched.unread or None,
            exit=code, exits=tuple(sorted(codes)), meaning=exits.meaning(code, 0),
            counts=counts, known=None, seconds=round(time.monotonic() - watched.begun, 1),
        )  # fmt: skip
        lines.write(footer)
        path = lines.path
    return code, reports.write(path), path


def _judged(watched: Watched, judged: Judged, lines: LedgerLines, out: Path, codes: set[int]) -> Counter[str]:
    """Writes all about one client in one check; gives the results of its histories. Adds the exit ``codes`` of
    failures."""
    name, check = WATCHED + judged.client, judged.check
    info = TargetInfo(name, "", "", "", frozenset({CHECKS[check].role}))
    lines.write(records.Begin(target=name, check=check, units=1))
    unit = Unit(name, watched.edition, check, SUBJECT, None, 0, None)
    seen = [each for each in watched.seen if each.client == judged.client and each.invariant in judged.laws]
    found = [_finding(unit, each) for each in seen]
    counts = _verdicts(judged, name, found, lines)
    family = CHECKS[watched.shown_by].family
    groups = grouped(found, lambda each: (each.invariant, each.shape))
    failures = [failure(info, group.members, out, family) for group in groups]
    for line in failures:
        codes |= exits.of_failure(line)
        lines.write(line)
    for cause in causes_of(failures, {line.id: group for line, group in zip(failures, groups, strict=True)}):
        lines.write(cause)
    lines.write(records.CheckDone(target=name, check=check, units=1, counts=dict(counts), seconds=0.0))
    return counts


def _verdicts(judged: Judged, name: str, found: Sequence[Finding], lines: LedgerLines) -> Counter[str]:
    """A line for each failure, and one for all histories without any: they may be many."""
    laws = {each.id: each for each in all_invariants(CHECKS[judged.check].role)}
    passed = Counter(judged.laws)
    counts: Counter[str] = Counter()
    for each in found:
        passed[each.invariant] -= 1
        result = laws[each.invariant].grade.word
        counts[result] += 1
        line = records.Verdict(
            target=name, check=judged.check, subject=SUBJECT, version=None, case=each.case.id, result=result,
            by={each.invariant: Result.FAIL.name},
        )  # fmt: skip
        lines.write(line)
    sound = {Result.PASS.name: number} if (number := judged.histories - len(found)) > 0 else {}
    by = {id: {Result.PASS.name: number} for id, number in passed.items() if number > 0}
    if sound or by:
        counts.update(sound)
        lines.write(records.Tally(target=name, check=judged.check, subject=SUBJECT, version=None, results=sound, by=by))
    return counts


def _finding(unit: Unit, seen: Seen) -> Finding:
    violation = replace(seen.violation, at=(seen.history.ops[-1].index,))
    return Finding(unit, seen.history, None, 0, "watched", seen.invariant, violation, violation.shape)


__all__ = ["Judged", "Seen", "Unusable", "Watched", "usable", "write"]
