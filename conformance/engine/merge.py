"""One ledger of many: the parts of a run, runs of different targets or checks, made alike, or campaigns.

Cases of a campaign are its own: it may have another seed, and the same places, as a run or another campaign.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kipcheck.conformance.core import exits, output_folder
from kipcheck.conformance.core.ledger import NAME, Ledger, Line, Place, Writer, missing, place_of, read, spans
from kipcheck.conformance.core.output_folder import FAILURES, OF_A_RUN, REPORTS, OutputFolder
from kipcheck.conformance.core.part import Part
from kipcheck.conformance.engine.failures import FLAKY, Members, file, filed, gathered, united

ALIKE: Mapping[str, str] = {"seed": "--seed", "cases": "--cases"}
"""What has to be the same in all runs that are merged, and the option that says it."""


class Unlike(Exception):
    """What cannot be one ledger. Says which folders, what is not alike, and what would do."""


@dataclass(frozen=True, slots=True)
class Source:
    folder: Path
    ledger: Ledger

    @property
    def options(self) -> Line:
        return dict(self.ledger.header["options"])

    @property
    def part(self) -> Part | None:
        part = self.ledger.header.get("part")
        return Part(*part) if part else None

    @property
    def plan(self) -> tuple[Any, ...]:
        """What the parts of one run have in common."""
        return tuple(json.dumps(self.options[key]) for key in ("targets", "checks", "messages"))

    @property
    def places(self) -> Collection[Place]:
        """Where runs gave verdicts."""
        if not self.ledger.campaigns:
            return self.ledger.cases.keys()
        return dict.fromkeys(map(place_of, self.ledger.verdicts()))

    @property
    def is_run(self) -> bool:
        """Not of campaigns alone?"""
        return not self.ledger.campaigns or bool(self.places)

    @property
    def codes(self) -> set[int]:
        footer = self.ledger.footer
        return {exits.UNDECIDED} if footer is None else set(footer.get("exits", ())) | {int(footer["exit"])}


@dataclass(frozen=True, slots=True)
class Merged:
    ledger: Path
    exit_code: int
    missing: tuple[str, ...]
    """Why it is incomplete, a line each; empty where it is complete."""


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Errors: ``Unlike``; OSError and ``Unusable`` where ``out`` cannot be written. Until then nothing is changed."""
    sources = [_source(folder) for folder in folders]
    if out.resolve() in {each.folder.resolve() for each in sources}:
        raise Unlike(f"--out {out} is one of what is merged: name a folder of its own")
    _alike(sources)
    missing = tuple(_missing(sources))
    folder = OutputFolder(out)
    folder.check(*OF_A_RUN, output_folder.FLAKY)
    with folder.tried(NAME):
        path = folder.claim(NAME)
        folder.remove(REPORTS, FAILURES, output_folder.FLAKY)
    with Writer(path) as writer:
        code = _write(writer, sources, out, missing)
    return Merged(out / NAME, code, missing)


def _source(folder: Path) -> Source:
    path = folder if folder.is_file() else folder / NAME
    try:
        return Source(path.parent, read(path))
    except FileNotFoundError:
        raise Unlike(missing(folder)) from None
    except (OSError, ValueError) as wrong:
        raise Unlike(str(wrong)) from None


# ---- may they be merged?


def _alike(sources: Sequence[Source]) -> None:
    for one, other in pairwise(sources):
        pairs = [("kipcheck", one.ledger.header["kipcheck"], other.ledger.header["kipcheck"])]
        pairs.append(("--edition", one.options.get("edition"), other.options.get("edition")))
        _same(one, other, pairs)
    runs = [each for each in sources if each.is_run]
    for one, other in pairwise(runs):
        _same(one, other, [(name, one.options.get(key), other.options.get(key)) for key, name in ALIKE.items()])
    campaigns: dict[str, Path] = {}
    versions: dict[str, tuple[str, Path]] = {}
    places: dict[Place, Path] = {}
    parts: dict[tuple[Any, ...], Source] = {}
    for source in sources:
        for line in source.ledger.targets:
            version, where = versions.setdefault(line["target"], (line["version"], source.folder))
            if version != line["version"]:
                raise Unlike(
                    f"{line['target']} is {version} in {where} and {line['version']} in {source.folder}: "
                    "one of them is merged at a time"
                )
        if source.part is not None:
            first = parts.setdefault((source.plan, source.part), source)
            if first is not source:
                raise Unlike(f"part {source.part} is in {first.folder} and in {source.folder}: leave one out")
        for campaign in source.ledger.campaigns:
            where = campaigns.setdefault(campaign["id"], source.folder)
            if where != source.folder:
                raise Unlike(f"campaign {campaign['id']} is in {where} and in {source.folder}: leave one out")
        for place in source.places:
            if place in places:
                what = f"{place.check} on {place.subject} with {place.target}"
                raise Unlike(f"{what} is in {places[place]} and in {source.folder}: leave one out")
            places[place] = source.folder


def _same(one: Source, other: Source, pairs: Sequence[tuple[str, object, object]]) -> None:
    for name, here, there in pairs:
        if here != there:
            raise Unlike(f"{name} is {here} in {one.folder} and {there} in {other.folder}: run them alike, or apart")


def _missing(sources: Sequence[Source]) -> Iterator[str]:
    by_plan: dict[tuple[Any, ...], list[Part]] = {}
    for source in sources:
        if source.part is not None:
            by_plan.setdefault((source.plan, source.part.of), []).append(source.part)
    for (plan, of), parts in by_plan.items():
        there = {each.number for each in parts}
        for number in range(1, of + 1):
            if number not in there:
                yield f"part {number}/{of} of {', '.join(json.loads(plan[0]))} is missing"
    for source in sources:
        footer = source.ledger.footer
        if footer is None:
            yield f"{source.folder} was cut off"
        elif not footer["complete"]:
            yield f"{source.folder}: {footer['stopped_by']}"


# ---- the one ledger


def _write(writer: Writer, sources: Sequence[Source], out: Path, missing: Sequence[str]) -> int:
    writer.write("header", _header(sources, out))
    counts: dict[str, dict[str, Counter[str]]] = {}
    words = _Words(_targets(sources), apart=all(len(each.ledger.targets) < 2 for each in sources))
    for line in _verdicts(sources):
        words.add(line)
        counts.setdefault(line["target"], {}).setdefault(line["check"], Counter())[line["result"]] += 1
        writer.write("verdict", {key: each for key, each in line.items() if key != "type"})
    for place, (results, by) in _tallies(sources).items():
        counts.setdefault(place.target, {}).setdefault(place.check, Counter()).update(results)
        writer.write("tally", {**place._asdict(), "results": results, "by": by})
    failures = list(_failures(sources, out))
    _file_flaky(sources, out)
    differences = (("difference", each) for each in words.rows())
    for kind, line in (*_others(sources, counts), *(("failure", each) for each in failures), *differences):
        writer.write(kind, {key: each for key, each in line.items() if key != "type"})
    codes = {code for each in sources for code in each.codes - {exits.FAILED}} | (
        {exits.UNDECIDED} if missing else set()
    )
    if any(map(_decides, failures)) or any(map(_otherwise_failed, sources)):
        codes.add(exits.FAILED)
    code = exits.first(codes)
    footers = [each.ledger.footer for each in sources if each.ledger.footer is not None]
    writer.write(
        "footer",
        {
            "complete": not missing,
            "stopped_by": "; ".join(missing) or None,
            "exit": code,
            "exits": sorted(codes - {exits.CONFORMANT}),
            "meaning": exits.MEANINGS[code],
            "counts": {name: {check: dict(c) for check, c in by.items()} for name, by in counts.items()},
            "seconds": round(sum(float(each["seconds"]) for each in footers), 1),
        },
    )
    return code


def _decides(failure: Line) -> bool:
    return failure["grade"] == "MUST" and not failure.get("known") and not failure.get("changed")


def _otherwise_failed(source: Source) -> bool:
    """Did it fail by something else than a failure?"""
    return exits.FAILED in source.codes and not any(map(_decides, source.ledger.failures))


def _header(sources: Sequence[Source], out: Path) -> Line:
    first = dict(sources[0].ledger.header)
    options = sources[0].options
    for key in ("targets", "checks", "messages"):
        options[key] = list(dict.fromkeys(name for each in sources for name in each.options[key]))
    held: dict[str, Line] = {}
    requirements: dict[str, Line] = {}
    for source in sources:
        for id, about in source.ledger.header["invariants"].items():
            kept = held.setdefault(id, {**about, "checks": [], "besides": {}})
            kept["checks"] = list(dict.fromkeys([*kept["checks"], *about["checks"]]))
            kept["besides"].update(about["besides"])
        for id, about in source.ledger.header["requirements"].items():
            if len(about) > len(requirements.get(id, ())):
                requirements[id] = about  # in full, where a run could break it
    campaigns = [campaign for each in sources for campaign in each.ledger.campaigns]
    return {
        **{key: each for key, each in first.items() if key != "type"},
        "begun": min(str(each.ledger.header["begun"]) for each in sources),
        "options": {**options, "out": str(out), "part": None},
        "part": None,
        **({"campaigns": campaigns} if campaigns else {}),
        "merged": [
            {"folder": str(each.folder), "part": each.part, "complete": each.ledger.complete} for each in sources
        ],
        "invariants": held,
        "requirements": requirements,
    }


def _verdicts(sources: Sequence[Source]) -> Iterator[Line]:
    """Target by target, check by check and subject by subject, as a run has them."""
    targets = {name: number for number, name in enumerate(_targets(sources))}
    checks = {id: number for number, id in enumerate(sources[0].ledger.header["checks"])}

    def order(line: Line) -> tuple[int, int, str]:
        return targets[line["target"]], checks.get(line["check"], len(checks)), line["subject"]

    yield from sorted((line for each in sources for line in each.ledger.verdicts()), key=order)


def _tallies(sources: Sequence[Source]) -> dict[Place, tuple[Counter[str], dict[str, Counter[str]]]]:
    """Of all campaigns together."""
    found: dict[Place, tuple[Counter[str], dict[str, Counter[str]]]] = {}
    for source in sources:
        for line in source.ledger.lines.get("tally", ()):
            results, by = found.setdefault(place_of(line), (Counter(), {}))
            results.update(line["results"])
            for invariant, counted in line["by"].items():
                by.setdefault(invariant, Counter()).update(counted)
    return found


JUDGED = frozenset({"PASS", "FAIL", "WARN", "NOTE"})


class _Words:
    """What was said of the same case of targets that were run apart; those of one run were compared by it."""

    def __init__(self, targets: Sequence[str], apart: bool) -> None:
        self._targets = targets if apart else ()
        self._said: dict[tuple[str, str, int | None, str], dict[str, str]] = {}

    def add(self, line: Line) -> None:
        if len(self._targets) > 1 and line["case"] is not None:
            place = line["check"], line["subject"], line["version"], line["case"]
            self._said.setdefault(place, {})[line["target"]] = line["result"]

    def rows(self) -> Iterator[Line]:
        """As ``differences`` tells of one run, but for answers: a ledger does not hold them."""
        found: dict[tuple[str, ...], list[tuple[int | None, str]]] = {}
        for (check, subject, version, case), said in self._said.items():
            if len(JUDGED & set(said.values())) > 1:
                row = (said.get(name, "SKIP") for name in self._targets)
                found.setdefault((check, subject, *row), []).append((version, case))
        for (check, subject, *cells), cases in found.items():
            yield {
                "check": check,
                "subject": subject,
                "versions": spans(version for version, _ in cases if version is not None),
                "cells": dict(zip(self._targets, cells, strict=True)),
                "cases": len(cases),
                "case": cases[0][1],
                "grade": "INFO",
            }


def _targets(sources: Sequence[Source]) -> list[str]:
    asked = [name for each in sources for name in each.options["targets"]]
    held = [place.target for each in sources for place in each.ledger.cases]
    return list(dict.fromkeys([*asked, *held]))


MINE = frozenset({"failure", "footer", "begin", "check", "skip", "tally"})


def _others(sources: Sequence[Source], counts: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, Line]]:
    """All other lines, each once; what one part skipped and another held was held."""
    told: set[str] = set()
    checks: dict[tuple[str, str], Line] = {}
    for source in sources:
        for kind, lines in source.ledger.lines.items():
            for line in lines:
                held = kind == "skip" and line["check"] in counts.get(line["target"], {})
                text = json.dumps(line, sort_keys=True)
                if held or text in told or (kind in MINE and kind != "skip"):
                    continue
                told.add(text)
                yield kind, line
        for line in source.ledger.lines.get("check", ()):
            found = checks.setdefault(
                (line["target"], line["check"]), {**line, "units": 0, "seconds": 0.0, "counts": {}}
            )
            found["units"] += line["units"]
            found["seconds"] = round(found["seconds"] + line["seconds"], 3)
            found["counts"] = dict(Counter(found["counts"]) + Counter(line["counts"]))
    yield from (("check", line) for line in checks.values())


# ---- failures


def _failures(sources: Sequence[Source], out: Path) -> Iterator[Line]:
    by_id: dict[str, Members] = {}
    for source in sources:
        for line in source.ledger.failures:
            by_id.setdefault(line["id"], []).append((line, filed(source.folder, line["id"])))
    for members in gathered(by_id):
        yield file(*united(members), out)


def _file_flaky(sources: Sequence[Source], out: Path) -> None:
    """The cases of what comes and goes: the first that tells of each."""
    told: set[str] = set()
    for source in sources:
        for line in source.ledger.flaky:
            found = filed(source.folder, line["id"], FLAKY) if line.get("id") else None
            if found is not None and line["id"] not in told:
                told.add(line["id"])
                file(found, found, out, FLAKY)
