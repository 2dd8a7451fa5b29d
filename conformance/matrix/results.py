"""The results of a matrix as plain data (``reports/matrix.schema.json``), and their files."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from kipcheck.conformance.core.files.output_folder import OutputFolder
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.untrusted_text import harmless_json
from kipcheck.conformance.matrix.advice import detour, verdict
from kipcheck.conformance.matrix.answers import WAYS, Answer, PairCells, Ran, answer
from kipcheck.conformance.matrix.cells import Cell, Outcome
from kipcheck.conformance.matrix.known import Deviation
from kipcheck.conformance.matrix.predictions import AFTER_THE_FACT, BY_KIP, BY_RELEASES, Prediction
from kipcheck.conformance.matrix.release_lines import Version, has_star, in_table, needs_fix
from kipcheck.conformance.matrix.scenario_names import ABOUT, SCENARIOS
from kipcheck.conformance.matrix.scenarios import Pair
from kipcheck.conformance.protocols.streams.blobs import latest
from kipcheck.reports.matrix import FEW, HISTORIES, NAME

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a run."""

    outcomes: Mapping[Cell, Outcome]
    predictions: Mapping[Cell, Prediction]
    skipped: Mapping[Cell, str]
    """Why."""
    complete: bool
    known: Sequence[Deviation] = ()
    cached: frozenset[Cell] = frozenset()
    full: bool = False
    require: str | None = None
    """The result that all answers must have."""
    out: Path = Path("kipcheck-out")
    begun: datetime | None = None
    seconds: float = 0.0

    def expected(self, cell: Cell) -> Deviation | None:
        """The known deviation that covers the cell, if it is unlike its prediction."""
        verdict = self.outcomes[cell]["cell"]["verdict"]
        if cell in self.predictions and self.predictions[cell].verdict == verdict:
            return None
        return next((each for each in self.known if each.expects(cell, verdict)), None)


def plain(found: Found) -> Plain:
    cells = [_cell(found, cell) for cell in found.outcomes]
    named = {id: requirements()[id] for id in sorted({*_named(found)})}
    requested = [*found.outcomes, *found.skipped]
    result: Plain = {
        "answers": [each.plain for each in answers(found)],
        "cells": cells,
        "complete": found.complete,
        "kipcheck": version("kipcheck"),
        "full": found.full,
        "scenarios": [
            {"name": each, "about": ABOUT[each]} for each in SCENARIOS if any(one.scenario == each for one in requested)
        ],
        "releases": [*map(_release, sorted({each for cell in requested for each in cell.pair}))],
        "skipped": [_place(cell) | {"why": why} for cell, why in found.skipped.items()],
        "requirements": {
            id: {"clause": each.clause, "text": each.text, "grade": each.grade.value} for id, each in named.items()
        },
        "counts": _counts(found, cells),
        "stale": [*_stale(found)],
        "seconds": round(found.seconds, 1),
    }
    if found.require is not None:
        result["require"] = found.require
    return result if found.begun is None else result | {"begun": found.begun.strftime("%Y-%m-%dT%H:%M:%SZ")}


def answers(found: Found) -> list[Answer]:
    """Of many pairs only those with a way of an upgrade, because most pairs of a matrix have a join only."""
    cells: dict[Pair, set[str]] = {}
    for each in (*found.outcomes, *found.skipped):
        cells.setdefault(each.pair, set()).add(each.scenario)
    few = len(cells) <= FEW
    return [_answer(found, pair) for pair in sorted(cells) if few or cells[pair] & {*WAYS}]


def _answer(found: Found, pair: Pair) -> Answer:
    there = {each: found.outcomes.get(Cell(each, pair)) for each in SCENARIOS}
    ran = {each: Ran(*(outcome["cell"][key] for key in Ran._fields)) for each, outcome in there.items() if outcome}
    return answer(PairCells(pair, ran, lambda scenario: verdict(Cell(scenario, pair))), detour)


def _named(found: Found) -> Iterator[str]:
    """The requirements of cells that break or are refused, and those that their histories violate."""
    for each in found.outcomes.values():
        if (requirement := each["cell"]["requirement"]) is not None:
            yield requirement
        for violation in each["history"]["broken"]:
            yield from violation["requirements"]


def _place(cell: Cell) -> Plain:
    return {"from": cell.pair.old.name, "to": cell.pair.new.name, "scenario": cell.scenario}


def _cell(found: Found, cell: Cell) -> Plain:
    folded = found.outcomes[cell]["cell"]
    prediction, expected = found.predictions.get(cell), found.expected(cell)
    differs = prediction is not None and prediction.verdict != folded["verdict"] and expected is None
    pair = cell.pair
    return {
        **_place(cell),
        "verdict": folded["verdict"],
        "rounds": folded["rounds"],
        "requirement": folded["requirement"],
        "reason": folded["reason"],
        "effect": folded["effect"],
        "predicted": prediction.verdict if prediction else None,
        "case": folded["case"],
        "rule": prediction.rule if prediction else None,
        "foreseen": prediction.foreseen if prediction else None,
        "differs": differs,
        "known": {"reason": expected.reason, "link": expected.link} if expected else None,
        "needs_fix": needs_fix(*pair),
        "starred": has_star(*pair),
        "in_kip": in_table(*pair),
        "scripts": folded["scripts"],
        "broken": folded["broken"],
        "play": _again(found.out, folded["case"]),
    }


def _again(out: Path, case: str) -> str:
    return shlex.join(("kipcheck", "matrix", "--case", f"{out / HISTORIES / case}.json"))


def _release(each: Version) -> Plain:
    return {"name": each.name, "patch": each.patch, "latest": latest(each.patch), "kind": each.kind}


def _counts(found: Found, cells: Sequence[Plain]) -> Plain:
    verdicts, rules = [each["verdict"] for each in cells], [each["rule"] for each in cells]
    return {
        **{each: verdicts.count(each) for each in ("ok", "breaks", "refused")},
        "skipped": len(found.skipped),
        **{each: rules.count(each) for each in (BY_KIP, BY_RELEASES, AFTER_THE_FACT)},
        "differing": sum(each["differs"] for each in cells),
        "known": sum(each["known"] is not None for each in cells),
        "cached": len(found.cached),
        "histories": sum(each["scripts"] for each in cells),
    }


def _stale(found: Found) -> list[Plain]:
    """Known deviations that did not occur, although a cell that they name was run."""
    stale = []
    for each in found.known:
        named = [cell for cell in found.outcomes if each.names(cell)]
        if named and not any(found.expected(cell) == each for cell in named):
            why = f"{each.verdict} was expected from {each.old} to {each.new} against the prediction, and did not occur"
            stale.append(_place(named[0]) | {"why": why})
    return stale


# Files


def write(found: Found, results: Plain) -> Path:
    """``matrix.json`` and the worst history of each cell, under ``out``; gives the first.

    Errors: OSError; ``output_folder.Unusable``.
    """
    folder = found.out / HISTORIES
    entries = (f"{HISTORIES}/{outcome['history']['case']}.json" for outcome in found.outcomes.values())
    OutputFolder(found.out).claim(NAME, *entries)
    for cell, outcome in found.outcomes.items():
        history = outcome["history"] | _place(cell)
        case = history["case"]
        _put(folder / f"{case}.json", history | {"play": _again(found.out, case)})
    _put(found.out / NAME, results)
    return found.out / NAME


def _put(path: Path, results: Plain) -> None:
    aside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    aside.write_text(harmless_json(json.dumps(results, ensure_ascii=False, indent=1)) + "\n", "utf-8")
    aside.replace(path)
