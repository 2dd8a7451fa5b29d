"""Plays the cells of the scenario ``store-upgrade`` with released stores on RocksDB."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from kipcheck.conformance.clients.java.store_process import StoreEnded, StoreProcess, jars, store_process
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.matrix import store_cells
from kipcheck.conformance.matrix.scenario_names import STORE_UPGRADE
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

Tick = Callable[[str, int, int], None]


@dataclass(slots=True)
class Played:
    results: dict[store_cells.StoreCell, store_cells.StoreResult] = field(default_factory=dict)
    skipped: dict[store_cells.StoreCell, str] = field(default_factory=dict)

    @property
    def unlike(self) -> list[store_cells.StoreCell]:
        """The cells that differ from their predictions."""
        return [cell for cell, found in self.results.items() if differs(store_cells.predicted(cell), found)]


def differs(prediction: store_cells.Prediction, result: store_cells.StoreResult) -> bool:
    return prediction.verdict != result.verdict or (
        prediction.back is not None and prediction.back != result.back
    )  # fmt: skip


def play(cells: Sequence[store_cells.StoreCell], tick: Tick) -> Played:
    """Each phase starts a process for each release, which plays the cells that need it one after the other.

    Errors: ``Unavailable`` without a JDK, or if no jar is there.
    """
    played, lacking = Played(), _lacking(cells)
    for cell in cells:
        missing = [lacking[each] for each in (cell.old, cell.new) if each in lacking]
        if missing:
            played.skipped[cell] = missing[0]
    there = [each for each in cells if each not in played.skipped]
    if not there:
        raise Unavailable(next(iter(lacking.values()), "no cell is selected"))
    newest = store_cells.releases()[-1]
    with temporary_folder("store-upgrade") as folder:
        places = {cell: folder / "-".join(map(str, astuple(cell))) for cell in there}
        found: dict[store_cells.StoreCell, list[store_cells.Answers]] = {cell: [] for cell in there}
        phases: Sequence[
            tuple[str, Callable[[store_cells.StoreCell], str], Callable[[store_cells.StoreCell], Sequence[Step]]]
        ] = (
            ("written", lambda cell: cell.old, lambda cell: cell.writes),
            ("partly moved", lambda cell: cell.mover, lambda cell: cell.moves),
            ("upgraded", lambda cell: cell.new, lambda cell: cell.upgrades),
            ("read back", lambda cell: cell.new, lambda cell: cell.reads),
            ("opened by the writer again", lambda cell: cell.old, lambda cell: cell.back),
            (f"read by {newest}", lambda cell: newest, lambda cell: cell.reads),
        )
        for what, release_of, steps_of in phases:
            done, busy = 0, [each for each in there if steps_of(each)]
            for release in sorted({release_of(each) for each in busy}, key=Release.parse):
                own = [each for each in busy if release_of(each) == release]
                for cell, answers in _phase(release, own, places, steps_of):
                    found[cell].append(answers)
                    done += 1
                tick(what, done, len(busy))
    for cell in there:
        played.results[cell] = _result(cell, found[cell])
    return played


def _lacking(cells: Iterable[store_cells.StoreCell]) -> dict[str, str]:
    """The releases whose jars are not there, and why."""
    found = {}
    for release in sorted({each for cell in cells for each in (cell.old, cell.new)}, key=Release.parse):
        try:
            jars(release)
        except Unavailable as missing:
            found[release] = str(missing)
    return found


def _phase(
    release: str,
    cells: Sequence[store_cells.StoreCell],
    places: Mapping[store_cells.StoreCell, Path],
    steps_of: Callable[[store_cells.StoreCell], Sequence[Step]],
) -> Iterable[tuple[store_cells.StoreCell, store_cells.Answers]]:
    with store_process(release, places[cells[0]]) as process:
        for cell in cells:
            yield cell, [(each, _answer(process, each, places[cell])) for each in steps_of(cell)]


def _answer(process: StoreProcess, step: Step, place: Path) -> Mapping[str, Any]:
    try:
        return process.answer(step.verb, directory=str(place), **step.body)
    except StoreEnded as ended:
        return {"status": "rejected", "class": "StoreEnded", "message": str(ended)}


def _result(cell: store_cells.StoreCell, found: Sequence[store_cells.Answers]) -> store_cells.StoreResult:
    *before, upgraded, read, back, last = found
    forward = [*(each for part in before for each in part), *upgraded, *read]
    opened_again = back[0][1]["status"] == "accepted"
    # What the writer read, if it could, belongs to the life of the store: it moves values, too.
    whole = [*forward, *(back if opened_again else ()), *last]
    verdict, requirement, reason = store_cells.upgrade_result(store_cells.history_of(forward, cell.new))
    if verdict == "opens" and not opened_again:
        verdict, requirement, reason = store_cells.upgrade_result(store_cells.history_of(whole, cell.new))
    back_verdict, back_reason = store_cells.back_result(read, back)
    steps = OPERATIONS.shorthand(step for step, _ in forward)
    return store_cells.StoreResult(cell, verdict, back_verdict, requirement, reason, back_reason, steps)


def plain(played: Played) -> dict[str, Any]:
    """The results as JSON."""
    rows = []
    for cell, found in played.results.items():
        prediction = store_cells.predicted(cell)
        rows.append(
            {
                "from": cell.old, "to": cell.new, "wrote": cell.wrote, "opened": cell.opened,
                "rocksdb": [store_cells.library(cell.old), store_cells.library(cell.new)],
                "verdict": found.verdict, "requirement": found.requirement, "reason": found.reason or None,
                "back": found.back, "back_reason": found.back_reason or None,
                "predicted": asdict(prediction), "as_predicted": not differs(prediction, found),
                "history": found.history,
            }
        )  # fmt: skip
    skipped = [
        {"from": cell.old, "to": cell.new, "wrote": cell.wrote, "opened": cell.opened, "why": why}
        for cell, why in played.skipped.items()
    ]
    return {"scenario": STORE_UPGRADE, "cells": rows, "skipped": skipped, "unlike": len(played.unlike)}
