"""The report of a campaign, from its rows: one ledger as a run writes it, with tallies in the place of verdicts.

So all that reads the ledger of a run reads that of a campaign: report, merge, triage, export, replay, known.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kipcheck import reports
from kipcheck.conformance.campaign.report.failures import Findings, Told as Failed, findings
from kipcheck.conformance.campaign.report.round_statistics import RoundTold, rounds_of
from kipcheck.conformance.campaign.report.row_files import Clash, SetAside
from kipcheck.conformance.campaign.rows import Row, hash_over
from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.core import exits, output_folder
from kipcheck.conformance.core.ledger import NAME, Line, Place, Writer
from kipcheck.conformance.core.output_folder import OutputFolder
from kipcheck.conformance.core.verdict import Grade, Result
from kipcheck.conformance.engine.failures import FLAKY, FOLDER, file, where_places
from kipcheck.conformance.engine.known.match import Account, account, told_of
from kipcheck.conformance.engine.ledger_header import header
from kipcheck.conformance.engine.selection import Misused, Options
from kipcheck.conformance.targets.protocol import TargetInfo
from kipcheck.golden.regressions import regression
from kipcheck.golden.vector_files import REGRESSIONS

__all__ = ["RoundTold", "Told", "tell"]

HEARD: Final = frozenset({"expired", "wide"})
"""What makes an entry of a list stale in a campaign: that something does not show, where luck draws, says nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    exit_code: int
    failures: int
    """Distinct ones of grade MUST that no list names."""
    warnings: int
    """The same of grade SHOULD."""
    known: int
    text: str
    """The report for a terminal."""


def tell(
    out: Path,
    manifest: Mapping[str, Any],
    rows: Iterable[Row],
    rounds: Sequence[RoundTold],
    complete: bool,
    stopped_by: str | None,
    known: tuple[str, ...] = (),
    clashes: Sequence[Clash] = (),
    set_aside: Sequence[SetAside] = (),
    code: int = exits.CONFORMANT,
) -> Told:
    """Write the ledger, the files of failures and all forms of the report under ``out``.

    ``manifest``: what ``manifest.json`` holds.
    ``complete``: all that was planned was held, or the time that was given is over. Not ``complete``, and stopped by
    nothing: it goes on, and the ledger has no footer. ``code``: what that alone would be the exit code of.

    Errors: OSError; ``output_folder.Unusable``.
    """
    told = sorted(rows, key=lambda row: row.key)
    telling = _Telling(out, manifest, told, rounds, complete, stopped_by, known, clashes, set_aside)
    telling.exits |= {code} - {exits.CONFORMANT}
    path = OutputFolder(out).claim(NAME)
    aside = out / f".{NAME}.part"
    try:
        with Writer(aside) as writer:  # a reader never sees half of it: this is done again after every round
            telling.write(writer)
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)  # a full disk needs the room
        raise
    failed = telling.failed
    return Told(
        exits.first(telling.exits), failed[Grade.MUST], failed[Grade.SHOULD], telling.known_ones, reports.write(path)
    )


@dataclass(slots=True)
class _Telling:
    out: Path
    manifest: Mapping[str, Any]
    rows: Sequence[Row]
    rounds: Sequence[RoundTold]
    complete: bool
    stopped_by: str | None
    known: tuple[str, ...]
    clashes: Sequence[Clash]
    set_aside: Sequence[SetAside]
    exits: set[int] = field(default_factory=set)
    failed: Counter[Grade] = field(default_factory=Counter)
    known_ones: int = 0

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
        found = findings(self.rows)
        rounds = [*rounds_of(self.rows, self.rounds, [each.line for each in found.failures])]
        head = header(options)
        head |= {"begun": self.manifest["begun"], "campaigns": [self._campaign(rounds)]}
        writer.write("header", head)
        tallies = _tallies(self.rows)
        counts: dict[str, dict[str, Counter[str]]] = {}
        for place, (results, by) in tallies.items():
            told = {invariant: dict(each) for invariant, each in by.items()}
            writer.write("tally", {**place._asdict(), "results": dict(results), "by": told})
            counts.setdefault(place.target, {}).setdefault(place.check, Counter()).update(results)
        if any(each[Result.UNKNOWN.name] for by in counts.values() for each in by.values()):
            self.exits.add(exits.UNDECIDED)
        listed = self._account(writer, options)
        self._stale(writer, listed.strangers())
        self._forget()
        for name, why in self.manifest["skipped"]:
            writer.write("skip", {"target": name, "check": "*", "why": why})
        for aim in plan["aims"]:
            mine = {place: each for place, each in tallies.items() if place.target == aim["name"]}
            self._target(writer, aim, mine, found, listed, alone=len(targets) == 1)
        for line in rounds:
            writer.write("round", line)
        self._end(writer, counts, listed)

    def _account(self, writer: Writer, options: Options) -> Account:
        try:
            return account(options)
        except Misused as why:  # the list was good when the campaign began: what was held since is told all the same
            self.exits.add(exits.USAGE)
            writer.write("trouble", {"target": "*", "why": f"the list of known deviations cannot be used: {why}"})
            return Account()

    # ---- the head

    def _campaign(self, rounds: Sequence[Line]) -> Line:
        plan = self.plan
        return {
            "id": plan["campaign"],
            "targets": {aim["name"]: bool(aim["deterministic"]) for aim in plan["aims"]},
            "engine": plan["engine"],
            "settings": dict(self.manifest["settings"]),
            "host": dict(self.manifest["host"]),
            "seed": plan["seed"],
            "cases": plan["cases"],
            "rounds": plan["rounds"],
            "shard_cases": plan["shard_cases"],
            "complete": self.complete,
            "stopped_by": self.manifest["stopped_by"] if self.complete else self.stopped_by,
            "planned": sum(each.planned for each in self.rounds),
            "shards": dict(Counter(row.status for row in self.rows)),
            "held": sum(each["cases"] for each in rounds),
            "seconds": round(sum(each.seconds for each in self.rounds), 1),
            "cpu_seconds": round(sum(row.cpu_ms for row in self.rows) / 1000, 1),
            "coverage": rounds[-1]["coverage"] if rounds else 0,
            "corpus": rounds[-1]["corpus"] if rounds else 0,
            "hash": hash_over(self.rows),
            "clashes": [*map(str, self.clashes)],
            "set_aside": [*map(str, self.set_aside)],
        }

    # ---- targets

    def _target(
        self,
        writer: Writer,
        aim: Mapping[str, Any],
        tallies: Mapping[Place, "Tally"],
        found: Findings,
        listed: Account,
        alone: bool,
    ) -> None:
        name, version = aim["name"], aim["version"]
        mine = [row for row in self.rows if row.target == name]
        self._troubles(writer, name, mine, alone)
        if not tallies and not any(each.line["target"] == name for each in found.failures):
            return
        writer.write("target", {"target": name, "version": version, "language": "", "issues": ""})
        for check in self.plan["checks"]:
            if check in CHECKS and not any(place.check == check for place in tallies):
                why = "no case of it was held: it does not play that role, claims nothing of it, or was not come to"
                writer.write("skip", {"target": name, "check": check, "why": why})
        # What there is to look at only the target says; and what was not come to by luck says nothing of a list.
        listed.begin(TargetInfo(name, version, "", "", frozenset()), "unknown")
        for place, (_, by) in tallies.items():
            verdicts = [{invariant: result} for invariant, results in by.items() for result in results]
            listed.look(place.check, (place.subject, place.version), verdicts)
        for each in found.flaky:
            if each.line["target"] == name:
                self._flaky(writer, each, _flaky_in(listed, each.line), "did not fail every time")
        steady: list[Failed] = []
        for each in found.failures:
            if each.line["target"] == name:
                entry = _flaky_in(listed, each.line)
                if entry is None:
                    steady.append(each)
                else:
                    self._flaky(writer, each, entry, "failed")
        lines = listed.judged([each.line for each in steady])
        for each, line in zip(steady, lines, strict=True):
            self._failure(writer, Failed(line, each.filed))
        self._stale(writer, (each for each in listed.settle() if each["kind"] in HEARD))

    def _failure(self, writer: Writer, failed: Failed) -> None:
        line = failed.line
        # That another one is expected there, and does not show, is luck here: it makes this one no less new.
        line.pop("changed", None)
        if line.get("known"):
            self.known_ones += 1
        else:
            self.failed[Grade(line["grade"])] += 1
            if line["grade"] == Grade.MUST.value:
                self.exits.add(exits.FAILED)
        line = file(line, failed.filed, self.out)
        writer.write("failure", line)
        if failed.filed is not None:
            path = OutputFolder(self.out).claim(f"{FOLDER}/{REGRESSIONS}/{line['id']}.json")
            path.write_text(regression({**failed.filed, **line}), "utf-8")

    def _flaky(self, writer: Writer, failed: Failed, entry: Line | None, alone: str) -> None:
        line = file(failed.line, failed.filed, self.out, FLAKY)
        told = {
            "id": line["id"], "target": line["target"], "check": line["check"], "invariant": line["invariant"],
            "requirements": [each["id"] for each in line["requirements"]], "subject": line["subject"],
            "version": line["subject_version"], "case": line["case_id"], "cases": line["cases"], "why": line["why"],
            "alone": alone, **(entry or {"entry": ""}),
        }  # fmt: skip
        writer.write("flaky", told)
        if entry is None:
            self.exits.add(exits.UNSTABLE)

    def _stale(self, writer: Writer, lines: Iterable[Line]) -> None:
        for line in lines:
            writer.write("stale", line)
            self.exits.add(exits.STALE)

    def _forget(self) -> None:
        """What was told after an earlier round: the least case of a failure may be another one now."""
        OutputFolder(self.out).remove(output_folder.FAILURES, output_folder.FLAKY, output_folder.REGRESSIONS)

    # ---- what went wrong besides cases

    def _troubles(self, writer: Writer, name: str, rows: Sequence[Row], alone: bool) -> None:
        missing = {row.unreached for row in rows if row.unreached}
        if missing and not any(row.cases for row in rows):
            why = "; ".join(sorted(missing))
            if alone:
                self.exits.add(exits.BROKEN)
                writer.write("trouble", {"target": name, "why": why})
            else:
                writer.write("skip", {"target": name, "check": "*", "why": why})
            return
        for why, code, some in _alike(rows):
            self.exits.add(code)
            writer.write("trouble", {"target": name, "why": f"{why} ({_shards(some)})"})

    # ---- the end

    def _end(self, writer: Writer, counts: Mapping[str, Mapping[str, Counter[str]]], listed: Account) -> None:
        names = {row.key: row.target for row in self.rows}
        for clash in self.clashes:
            self.exits.add(exits.OURS)
            writer.write(
                "trouble", {"target": names.get(clash.key, "*"), "why": f"{clash}: a defect of kipcheck's own"}
            )
        if not self.complete and self.stopped_by is None:
            return
        if not self.complete:
            self.exits.add(exits.UNDECIDED)
        code = exits.first(self.exits)
        writer.write(
            "footer",
            {
                "complete": self.complete,
                "stopped_by": None if self.complete else self.stopped_by,
                "exit": code,
                "exits": sorted(self.exits),
                "meaning": exits.MEANINGS[code],
                "counts": {name: {check: dict(c) for check, c in by.items()} for name, by in counts.items()},
                "known": {**listed.counts, "failures": self.known_ones} if self.known else None,
                "seconds": round(sum(each.seconds for each in self.rounds), 1),
            },
        )


Tally = tuple[Counter[str], dict[str, Counter[str]]]
"""What came of the cases in one place, in all and by invariant."""


def _tallies(rows: Iterable[Row]) -> dict[Place, Tally]:
    """In the order of targets as they come, of checks, and of subjects."""
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


def _flaky_in(listed: Account, line: Line) -> Line | None:
    """What a list says of a failure as of one that comes and goes, wherever it was seen."""
    entries = [
        listed.listed_flaky(line["check"], line["invariant"], place, line["shape"], line["why"])
        for place in where_places(line["where"])
    ]
    found = [each for each in entries if each is not None]
    return {"entry": found[0].at, **told_of(found[0])} if len(found) == len(entries) else None


ENDS: Final[Mapping[str, tuple[str, int]]] = {
    "infra": ("what ran it went down again and again, and when it was run apart too", exits.UNDECIDED),
    "lost": ("what ran it went down, and it was not run again", exits.UNDECIDED),
    "unlike": ("there is another Python or kipcheck there", exits.BROKEN),
    "timeout": ("it took more time than a shard may", exits.UNDECIDED),
    "memory": ("it took more memory than a shard may", exits.UNDECIDED),
    "crashed": ("its process went down", exits.UNDECIDED),
    "garbled": ("its process gave no result that can be read", exits.UNDECIDED),
}
"""What is said of shards that did not come to their end: their cases are lost. The one that ran stands as a failure."""


def _alike(rows: Iterable[Row]) -> Iterator[tuple[str, int, list[Row]]]:
    """What is said of shards in the same words, and the exit code that it stands for."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        said = [(each, exits.UNSTABLE) for each in row.troubles]
        said += [(each, exits.BROKEN) for each in row.breaches]
        said += [(row.unreached, exits.UNDECIDED)] if row.unreached else []
        if row.status in ENDS:
            why, code = ENDS[row.status]
            detail = row.detail.partition("\n")[0]  # what it said besides stands in the file of the failure
            said.append((f"{why}: {detail}" if detail else why, code))
        for each in said:
            found.setdefault(each, []).append(row)
    yield from ((why, code, some) for (why, code), some in found.items())


def _shards(rows: Sequence[Row]) -> str:
    first = f"round {rows[0].round}, shard {rows[0].shard}"
    return f"{first} and {len(rows) - 1} more" if len(rows) > 1 else first
