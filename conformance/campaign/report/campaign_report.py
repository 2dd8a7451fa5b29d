"""Writes the ledger and the reports of a campaign from its rows.

The ledger has the form of a run's, with tallies in place of verdicts, so that report, merge, triage, export, replay and
known read both.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kipcheck import reports
from kipcheck.conformance.campaign.report.failures import Findings, findings
from kipcheck.conformance.campaign.report.round_statistics import RoundEnd, rounds_of
from kipcheck.conformance.campaign.report.row_files import Clash, SetAside
from kipcheck.conformance.campaign.rows import Row, hash_over
from kipcheck.conformance.core.files import output_folder
from kipcheck.conformance.core.files.output_folder import OutputFolder
from kipcheck.conformance.core.ledger import (
    NAME,
    Campaign,
    Failure,
    Flaky,
    Footer,
    Place,
    Round,
    Skip,
    Stale,
    Tally as TallyLine,
    Target,
    Trouble,
    Writer,
    places_of,
)
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.selection import InvalidOptions, Options
from kipcheck.conformance.engine.findings.causes import causes_by_number
from kipcheck.conformance.engine.findings.failures import FLAKY, FOLDER, DistinctFailure, file
from kipcheck.conformance.engine.known.match import KnownDeviations, known_deviations, written
from kipcheck.conformance.engine.known.rules import Entry
from kipcheck.conformance.engine.ledger.conclusion import Conclusion, by_invariant
from kipcheck.conformance.engine.ledger.header import header
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import TargetInfo
from kipcheck.golden.regressions import regression
from kipcheck.golden.vector_files import REGRESSIONS

__all__ = ["CampaignReport", "RoundEnd", "report"]

STALE_KINDS: Final = frozenset({"expired", "wide"})
"""The kinds of stale entries that a campaign reports. It draws at random: what did not occur may still be true."""


@dataclass(frozen=True, slots=True)
class CampaignReport:
    exit_code: int
    failures: int
    """Distinct ones of grade MUST that are not known."""
    warnings: int
    """The same of grade SHOULD."""
    known: int
    text: str
    """The report for a terminal."""


def report(
    out: Path,
    manifest: Mapping[str, Any],
    rows: Iterable[Row],
    rounds: Sequence[RoundEnd],
    complete: bool,
    stopped_by: str | None,
    known: tuple[str, ...] = (),
    clashes: Sequence[Clash] = (),
    set_aside: Sequence[SetAside] = (),
    code: int = exits.CONFORMANT,
) -> CampaignReport:
    """Writes the ledger, the files of failures and all forms of the report under ``out``.

    ``manifest``: the content of ``manifest.json``.
    ``complete``: all that was planned was run, or the time is over. Neither ``complete`` nor ``stopped_by``: the
    campaign goes on, and the ledger gets no footer. ``code``: the exit code without the results of cases.

    Errors: OSError; ``output_folder.Unusable``.
    """
    ordered = sorted(rows, key=lambda row: row.key)
    made = _Report(out, manifest, ordered, rounds, complete, stopped_by, known, clashes, set_aside)
    made.exits |= {code} - {exits.CONFORMANT}
    path = OutputFolder(out).claim(NAME)
    aside = out / f".{NAME}.part"
    try:
        with Writer(aside) as writer:  # readers never get half a ledger: it is written again after every round
            made.write(writer)
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)  # a full disk needs the room
        raise
    failed = made.failed
    return CampaignReport(
        exits.first(made.exits), failed[Grade.MUST], failed[Grade.SHOULD], made.known_ones, reports.write(path)
    )


@dataclass(slots=True)
class _Report:
    out: Path
    manifest: Mapping[str, Any]
    rows: Sequence[Row]
    rounds: Sequence[RoundEnd]
    complete: bool
    stopped_by: str | None
    known: tuple[str, ...]
    clashes: Sequence[Clash]
    set_aside: Sequence[SetAside]
    exits: set[int] = field(default_factory=set)
    failed: Counter[Grade] = field(default_factory=Counter)
    known_ones: int = 0
    named: Sequence[Row] = ()
    """The rows, with the names of the targets in results."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Those names that are not the target's own -> how it is opened."""

    def _name_rows(self) -> None:
        labels = {aim["name"]: aim["label"] for aim in self.plan["aims"] if aim.get("label")}
        self.commands = {label: name for name, label in labels.items()}
        self.named = [replace(row, target=labels.get(row.target, row.target)) for row in self.rows]

    @property
    def plan(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.manifest["plan"]
        return found

    def write(self, writer: Writer) -> None:
        plan = self.plan
        targets = tuple(aim["name"] for aim in plan["aims"])
        options = Options(
            targets, plan["edition"], tuple(plan["checks"]), seed=plan["seed"], cases=plan["cases"], out=self.out,
            known=self.known,
        )  # fmt: skip
        self._name_rows()
        found = findings(self.named, self.commands)
        rounds = [*rounds_of(self.named, self.rounds, [each.line for each in found.failures])]
        writer.write(header(options).update(begun=self.manifest["begun"], campaigns=(self._campaign(rounds),)))
        tallies = _tallies(self.named)
        counts: dict[str, dict[str, Counter[str]]] = {}
        for place, (results, by) in tallies.items():
            writer.write(TallyLine(**place._asdict(), results=results, by=by))
            counts.setdefault(place.target, {}).setdefault(place.check, Counter()).update(results)
        if any(each[Result.UNKNOWN.name] for by in counts.values() for each in by.values()):
            self.exits.add(exits.UNDECIDED)
        listed = self._account(writer, options)
        self._stale(writer, listed.unknown_entries(self.commands))
        self._forget()
        for name, why in self.manifest["skipped"]:
            self.exits.add(exits.BROKEN)
            writer.write(Trouble(target=name, why=why))
        for aim in plan["aims"]:
            name = aim.get("label") or aim["name"]
            mine = {place: each for place, each in tallies.items() if place.target == name}
            self._target(writer, aim, mine, found, listed)
        for line in rounds:
            writer.write(line)
        self._end(writer, counts, tallies, listed)

    def _account(self, writer: Writer, options: Options) -> KnownDeviations:
        try:
            return known_deviations(options)
        except InvalidOptions as why:  # the list was valid when the campaign began: the results are reported without it
            self.exits.add(exits.USAGE)
            writer.write(Trouble(target="*", why=f"the list of known deviations cannot be used: {why}"))
            return KnownDeviations()

    # ---- the head

    def _campaign(self, rounds: Sequence[Round]) -> Campaign:
        plan = self.plan
        return Campaign(
            id=plan["campaign"],
            targets={aim.get("label") or aim["name"]: bool(aim["deterministic"]) for aim in plan["aims"]},
            engine=plan["engine"],
            settings=dict(self.manifest["settings"]),
            host=dict(self.manifest["host"]),
            seed=plan["seed"],
            cases=plan["cases"],
            rounds=plan["rounds"],
            shard_cases=plan["shard_cases"],
            complete=self.complete,
            stopped_by=self.manifest["stopped_by"] if self.complete else self.stopped_by,
            planned=sum(each.planned for each in self.rounds),
            shards=dict(Counter(row.status for row in self.rows)),
            held=sum(each.cases for each in rounds),
            seconds=round(sum(each.seconds for each in self.rounds), 1),
            cpu_seconds=round(sum(row.cpu_ms for row in self.rows) / 1000, 1),
            coverage=rounds[-1].coverage if rounds else 0,
            corpus=rounds[-1].corpus if rounds else 0,
            hash=hash_over(self.rows),
            clashes=tuple(map(str, self.clashes)),
            set_aside=tuple(map(str, self.set_aside)),
        )

    # ---- targets

    def _target(
        self,
        writer: Writer,
        aim: Mapping[str, Any],
        tallies: Mapping[Place, "Tally"],
        found: Findings,
        listed: KnownDeviations,
    ) -> None:
        name, version = aim.get("label") or aim["name"], aim["version"]
        mine = [row for row in self.named if row.target == name]
        self._troubles(writer, name, mine)
        if not tallies and not any(each.line.target == name for each in found.failures):
            return
        command = self.commands.get(name)
        writer.write(Target(target=name, version=version, language="", issues="", command=command))
        for check in self.plan["checks"]:
            if check in CHECKS and not any(place.check == check for place in tallies):
                why = "none of its cases was run: the target does not support it, or the campaign did not reach it"
                writer.write(Skip(target=name, check=check, why=why))
        # A row does not contain the claims of the target, so it is unknown which places could be reached.
        listed.begin(TargetInfo(name, version, "", "", frozenset(), command=command or ""), "unknown")
        for place, (_, by) in tallies.items():
            verdicts = [{invariant: result} for invariant, results in by.items() for result in results]
            listed.add_verdicts(place.check, (place.subject, place.version), verdicts)
        for each in found.flaky:
            if each.line.target == name:
                self._flaky(writer, each, _flaky_in(listed, each.line), "did not fail every time")
        steady: list[DistinctFailure] = []
        for each in found.failures:
            if each.line.target == name:
                entry = _flaky_in(listed, each.line)
                if entry is None:
                    steady.append(each)
                else:
                    self._flaky(writer, each, entry, "failed")
        lines = listed.match_failures([each.line for each in steady], anywhere=True)
        for each, line in zip(steady, lines, strict=True):
            self._failure(writer, DistinctFailure(line, each.filed))
        for cause in causes_by_number([line.without("changed") for line in lines], found.contexts):
            writer.write(cause)
        self._stale(writer, (each for each in listed.stale_lines() if each.kind in STALE_KINDS))

    def _failure(self, writer: Writer, failed: DistinctFailure) -> None:
        # A campaign draws at random: that the expected failure did not occur makes this one no less new.
        line = failed.line.without("changed")
        if line.known is not None:
            self.known_ones += 1
        else:
            self.failed[Grade(line.grade)] += 1
            self.exits |= exits.of_failure(line)
        failed = file(DistinctFailure(line, failed.filed), self.out)
        writer.write(failed.line)
        if failed.filed is not None:
            path = OutputFolder(self.out).claim(f"{FOLDER}/{REGRESSIONS}/{line.id}.json")
            path.write_text(regression(failed.filed.plain), "utf-8")

    def _flaky(self, writer: Writer, failed: DistinctFailure, entry: Entry | None, alone: str) -> None:
        line = file(failed, self.out, FLAKY).line
        flaky = Flaky(
            id=line.id, target=line.target, check=line.check, invariant=line.invariant,
            requirements=tuple(each.id for each in line.requirements), subject=line.subject,
            version=line.subject_version, case=line.case_id, cases=line.cases, why=line.why, alone=alone,
            entry="" if entry is None else entry.at,
        )  # fmt: skip
        writer.write(flaky if entry is None else flaky.update(**written(entry)))
        if entry is None:
            self.exits.add(exits.UNSTABLE)

    def _stale(self, writer: Writer, lines: Iterable[Stale]) -> None:
        for line in lines:
            writer.write(line)
            self.exits.add(exits.STALE)

    def _forget(self) -> None:
        """Deletes the files of failures of an earlier round: the least case of a failure may be another one now."""
        OutputFolder(self.out).remove(output_folder.FAILURES, output_folder.FLAKY, output_folder.REGRESSIONS)

    # ---- troubles

    def _troubles(self, writer: Writer, name: str, rows: Sequence[Row]) -> None:
        missing = {row.unreached for row in rows if row.unreached}
        if missing and not any(row.cases for row in rows):
            why = "; ".join(sorted(missing))
            self.exits.add(exits.BROKEN)
            writer.write(Trouble(target=name, why=why))
            return
        for why, code, some in _alike(rows):
            self.exits.add(code)
            writer.write(Trouble(target=name, why=f"{why} ({_shards(some)})"))

    # ---- the end

    def _end(
        self,
        writer: Writer,
        counts: Mapping[str, Mapping[str, Counter[str]]],
        tallies: Mapping[Place, "Tally"],
        listed: KnownDeviations,
    ) -> None:
        names = {row.key: row.target for row in self.named}
        for clash in self.clashes:
            self.exits.add(exits.OURS)
            why = f"{clash}: a defect of kipcheck"
            writer.write(Trouble(target=names.get(clash.key, "*"), why=why))
        if not self.complete and self.stopped_by is None:
            return
        if not self.complete:
            self.exits.add(exits.UNDECIDED)
        results = by_invariant((place, *each) for place, (_, by) in tallies.items() for each in by.items())
        conclusion = Conclusion(counts, by_invariant=results)
        for skip in conclusion.skipped_checks():
            writer.write(skip)
        for reason in conclusion.reasons() if self.complete and (counts or not self.exits) else ():
            writer.write(reason)
            self.exits.add(exits.INCONCLUSIVE)
        code = exits.first(self.exits)
        footer = Footer(
            complete=self.complete,
            stopped_by=None if self.complete else self.stopped_by,
            exit=code,
            exits=tuple(sorted(self.exits)),
            meaning=exits.meaning(code, self.known_ones),
            counts={name: {check: dict(c) for check, c in by.items()} for name, by in counts.items()},
            known={**listed.counts, "failures": self.known_ones} if self.known else None,
            seconds=round(sum(each.seconds for each in self.rounds), 1),
        )
        writer.write(footer)


Tally = tuple[Counter[str], dict[str, Counter[str]]]
"""The results of the cases in one place, in all and by invariant."""


def _tallies(rows: Iterable[Row]) -> dict[Place, Tally]:
    """Ordered by target as in the rows, by check, and by subject."""
    found: dict[Place, Tally] = {}
    for row in rows:
        for each in row.counts:
            place = Place(row.target, each.check, each.subject, each.version)
            results, by = found.setdefault(place, (Counter(), {}))
            (by.setdefault(each.invariant, Counter()) if each.invariant else results)[each.result] += each.cases
    targets = {name: number for number, name in enumerate(dict.fromkeys(place.target for place in found))}
    checks = {id: number for number, id in enumerate(CHECKS)}

    def order(place: Place) -> tuple[int, int, str, int]:
        version = -1 if place.version is None else place.version
        return targets[place.target], checks.get(place.check, len(checks)), place.subject, version

    return {place: found[place] for place in sorted(found, key=order)}


def _flaky_in(listed: KnownDeviations, line: Failure) -> Entry | None:
    """The first entry that lists the failure as flaky, if there is one for each of its places."""
    entries = [
        listed.listed_flaky(line.check, line.invariant, place, line.shape, line.why) for place in places_of(line.where)
    ]
    found = [each for each in entries if each is not None]
    return found[0] if len(found) == len(entries) else None


ENDS: Final[Mapping[str, tuple[str, int]]] = {
    "infra": ("its executor died several times, and again when it ran the shard alone", exits.UNDECIDED),
    "lost": ("its executor died, and the shard was not run again", exits.UNDECIDED),
    "unlike": ("the executor has another version of Python or kipcheck", exits.BROKEN),
    "timeout": ("it exceeded the time limit of a shard", exits.UNDECIDED),
    "memory": ("it exceeded the memory limit of a shard", exits.UNDECIDED),
    "crashed": ("its process died", exits.UNDECIDED),
    "garbled": ("its process returned no valid result", exits.UNDECIDED),
}
"""Troubles and exit codes of shards that did not finish: their cases are lost. The running one becomes a failure."""


def _alike(rows: Iterable[Row]) -> Iterator[tuple[str, int, list[Row]]]:
    """Shards with the same trouble, and its exit code."""
    by_trouble: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found = [(each, exits.UNSTABLE) for each in row.troubles]
        found += [(each, exits.BROKEN) for each in row.breaches]
        found += [(row.unreached, exits.UNDECIDED)] if row.unreached else []
        if row.status in ENDS:
            why, code = ENDS[row.status]
            detail = row.detail.partition("\n")[0]  # the rest is in the file of the failure
            found.append((f"{why}: {detail}" if detail else why, code))
        for each in found:
            by_trouble.setdefault(each, []).append(row)
    yield from ((why, code, some) for (why, code), some in by_trouble.items())


def _shards(rows: Sequence[Row]) -> str:
    first = f"round {rows[0].round}, shard {rows[0].shard}"
    return f"{first} and {len(rows) - 1} more" if len(rows) > 1 else first
