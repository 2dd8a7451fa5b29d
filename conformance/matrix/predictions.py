"""The predictions for the matrix, committed before the jars were run, each with its basis.

``foreseen``: predicted by the KIP's text and release numbers alone (``Rules.of(..., fitted=False)``); ``fitted``: by
all known facts about releases; ``observed``: the rules were corrected after the cell had been run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.matrix.cells import Cell, verdict
from kipcheck.conformance.matrix.groups import reference_binaries
from kipcheck.conformance.matrix.release_lines import Version, named
from kipcheck.conformance.matrix.scenario_names import SCENARIOS

NAME: Final = "predictions.json"
BY_KIP, BY_RELEASES, AFTER_THE_FACT = "foreseen", "fitted", "observed"
VerdictSteps: TypeAlias = str | list[str]
"""One verdict, or a list: the verdict predicted by the KIP, the one by known releases, and the one after a
correction."""
Table: TypeAlias = dict[str, dict[str, dict[str, VerdictSteps]]]
"""Scenario, from, to (exact patches)."""


class Prediction(NamedTuple):
    verdict: str
    foreseen: str
    rule: str
    """The basis of the verdict."""

    @classmethod
    def of(cls, steps_read: VerdictSteps) -> "Prediction":
        steps = [steps_read] if isinstance(steps_read, str) else steps_read
        return cls(steps[-1], steps[0], (BY_KIP, BY_RELEASES, AFTER_THE_FACT)[len(steps) - 1])


class Predictions:
    """``table``: the form in the file."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def of(self, cell: Cell) -> Prediction | None:
        scenario, old, new = cell.key
        steps_read = self.table.get(scenario, {}).get(old, {}).get(new)
        return None if steps_read is None else Prediction.of(steps_read)


@cache
def committed() -> Predictions:
    return Predictions(json.loads((files("kipcheck.conformance.matrix") / NAME).read_text("utf-8"))["cells"])


def read(path: Path) -> dict[str, Any]:
    """The contents of the file; an empty table if it does not exist. Errors: OSError, ValueError."""
    if not path.is_file():
        return {"played": None, "cells": {}}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def predicted(cell: Cell) -> VerdictSteps:
    """By reference models. Takes as long as running the cell twice."""
    # Rules that are not those of a release are checked only for the state that the group reaches.
    by_kip = verdict(cell, reference_binaries(False, cell.edition), outcomes=True)
    by_releases = verdict(cell, reference_binaries(True, cell.edition))
    return by_kip if by_kip == by_releases else [by_kip, by_releases]


def merged(steps_read: Mapping[Cell, VerdictSteps], before: Mapping[str, Any]) -> dict[str, Any]:
    """The file with new predictions for these cells; other cells are kept. ``before``: its current contents.

    Once ``played`` has the date since when jars have been run, changed predictions count as observed.
    """
    table: Table = {scenario: {old: {**row} for old, row in rows.items()} for scenario, rows in before["cells"].items()}
    for cell, now in steps_read.items():
        scenario, old, new = cell.key
        row = table.setdefault(scenario, {}).setdefault(old, {})
        was = row.get(new) if before["played"] else None
        row[new] = now if was is None else _revised(was, now)
    return {"played": before["played"], "cells": _sorted(table)}


def _revised(was: VerdictSteps, now: VerdictSteps) -> VerdictSteps:
    verdict, first = Prediction.of(now).verdict, [was] if isinstance(was, str) else was[:2]
    if verdict == first[-1]:
        return was if isinstance(was, str) else first
    return [first[0], first[-1], verdict]


def _sorted(table: Table) -> Table:
    """In the order of SCENARIOS, releases from the oldest to the newest."""
    return {
        scenario: {old: dict(sorted(row.items(), key=_at)) for old, row in sorted(table[scenario].items(), key=_at)}
        for scenario in SCENARIOS
        if scenario in table
    }


def _at(item: tuple[str, object]) -> Version:
    return named(item[0])


def written(table: Mapping[str, Any]) -> str:
    """The text of the file: a line for each release in ``from``."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    yield f'{{"played": {json.dumps(table["played"])}, "cells": {{'
    for number, (scenario, rows) in enumerate(table["cells"].items()):
        yield f'"{scenario}": {{'
        yield from _joined(f'"{old}": {json.dumps(row)}' for old, row in rows.items())
        yield "}," if number + 1 < len(table["cells"]) else "}"
    yield "}}"


def _joined(rows: Iterable[str]) -> Iterator[str]:
    listed = [*rows]
    yield from (f"{each}," for each in listed[:-1])
    yield from listed[-1:]
