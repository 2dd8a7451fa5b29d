"""Writes the ledger and the reports of a campaign from its summary.

The ledger has the form of a run's, with tallies in place of verdicts, so that report, merge, triage, export, replay and
known read both.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kipcheck import reports
from kipcheck.conformance.campaign.report.failures import Findings, findings
from kipcheck.conformance.campaign.report.row_files import Clash, SetAside
from kipcheck.conformance.campaign.summary import CampaignSummary, Met, TargetSummary, Trouble as ShardTrouble
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
    summary: CampaignSummary,
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
    made = _Report(out, manifest, summary, complete, stopped_by, known, clashes, set_aside)
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
    summary: CampaignSummary
    complete: bool
    stopped_by: str | None
    known: tuple[str, ...]
    clashes: Sequence[Clash]
    set_aside: Sequence[SetAside]
    exits: set[int] = field(default_factory=set)
    failed: Counter[Grade] = field(default_factory=Counter)
    known_ones: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """How a target is opened -> its name in results, if that is another."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The reverse."""

    def _name(self) -> None:
        self.labels = {aim["name"]: aim["label"] for aim in self.plan["aims"] if aim.get("label")}
        self.commands = {label: name for name, label in self.labels.items()}

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
        self._name()
        found = findings(plan["campaign"], self.summary.targets, self.labels)
        rounds = [*self._rounds([each.line for each in found.failures])]
        writer.write(header(options).update(begun=self.manifest["begun"], campaigns=(self._campaign(rounds),)))
        tallies = self._tallies()
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
            planned=sum(each.planned for each in rounds),
            shards=dict(self.summary.statuses),
            held=self.summary.cases,
            seconds=round(sum(each.seconds for each in rounds), 1),
            cpu_seconds=round(self.summary.cpu_ms / 1000, 1),
            coverage=rounds[-1].coverage if rounds else 0,
            corpus=rounds[-1].corpus if rounds else 0,
            hash=self.summary.hash,
            clashes=tuple(map(str, self.clashes)),
            set_aside=tuple(map(str, self.set_aside)),
        )

    def _rounds(self, failures: Sequence[Failure]) -> Iterator[Round]:
        """With the names of results, and the ids of the distinct failures that were found first in each."""
        for each in self.summary.rounds:
            new = (line.id for line in failures if line.first is not None and line.first.round == each.round)
            growth = {self.labels.get(name, name): points for name, points in each.growth.items()}
            yield each.update(failures=tuple(new), growth=growth)

    def _tallies(self) -> dict[Place, "Tally"]:
        """In the order of the plan's targets, by check, and by subject."""
        checks = {id: number for number, id in enumerate(CHECKS)}

        def order(place: Place) -> tuple[int, str, int]:
            version = -1 if place.version is None else place.version
            return checks.get(place.check, len(checks)), place.subject, version

        every: dict[Place, Tally] = {}
        for aim in self.plan["aims"]:
            target = self.summary.targets.get(aim["name"])
            found: dict[Place, Tally] = {}
            for each, cases in target.counts.items() if target is not None else ():
                place = Place(aim.get("label") or aim["name"], each.check, each.subject, each.version)
                results, by = found.setdefault(place, (Counter(), {}))
                (by.setdefault(each.invariant, Counter()) if each.invariant else results)[each.result] += cases
            for place in sorted(found, key=order):
                results, by = found[place]
                every[place] = _sorted(results), {name: _sorted(by[name]) for name in sorted(by)}
        return every

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
        if (summary := self.summary.targets.get(aim["name"])) is not None:
            self._troubles(writer, name, summary)
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

    def _troubles(self, writer: Writer, name: str, target: TargetSummary) -> None:
        missing = {each.why for each in target.troubles if each.kind == "unreached"}
        if missing and not target.cases:
            why = "; ".join(sorted(missing))
            self.exits.add(exits.BROKEN)
            writer.write(Trouble(target=name, why=why))
            return
        for trouble, met in sorted(target.troubles.items(), key=lambda each: each[1].first):
            why, code = _in_words(trouble)
            self.exits.add(code)
            writer.write(Trouble(target=name, why=f"{why} ({_shards(met)})"))

    # ---- the end

    def _end(
        self,
        writer: Writer,
        counts: Mapping[str, Mapping[str, Counter[str]]],
        tallies: Mapping[Place, "Tally"],
        listed: KnownDeviations,
    ) -> None:
        for clash in self.clashes:
            self.exits.add(exits.OURS)
            why = f"{clash}: a defect of kipcheck"
            writer.write(Trouble(target=self.labels.get(clash.target, clash.target), why=why))
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
            seconds=round(sum(each.seconds for each in self.summary.rounds), 1),
        )
        writer.write(footer)


Tally = tuple[Counter[str], dict[str, Counter[str]]]
"""The results of the cases in one place, in all and by invariant."""


def _sorted(counts: Counter[str]) -> Counter[str]:
    """In the order of the words: rows come in any order."""
    return Counter(dict(sorted(counts.items())))


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


def _in_words(trouble: ShardTrouble) -> tuple[str, int]:
    """With its exit code."""
    match trouble.kind:
        case "trouble":
            return trouble.why, exits.UNSTABLE
        case "breach":
            return trouble.why, exits.BROKEN
        case "unreached":
            return trouble.why, exits.UNDECIDED
    why, code = ENDS[trouble.kind]
    return (f"{why}: {trouble.why}" if trouble.why else why), code


def _shards(met: Met) -> str:
    round_, shard, _ = met.first
    return f"round {round_}, shard {shard}" + (f" and {met.times - 1} more" if met.times > 1 else "")
