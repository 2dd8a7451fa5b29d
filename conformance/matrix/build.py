"""Runs a matrix: fetches jars, predicts, runs the cells, and collects the results."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kipcheck.conformance.matrix.cells import Cell
from kipcheck.conformance.matrix.known import Deviation
from kipcheck.conformance.matrix.predictions import Prediction, committed
from kipcheck.conformance.matrix.results import Found
from kipcheck.conformance.matrix.run import WORKERS, Kept, Tick, jars, play, predict


@dataclass(frozen=True, slots=True)
class Wanted:
    cells: Sequence[Cell]
    known: Sequence[Deviation] = ()
    full: bool = False
    out: Path = Path("kipcheck-out")
    budget: float | None = None
    """Seconds."""
    workers: int = WORKERS


def made(wanted: Wanted, tick: Tick) -> Found:
    """Errors: ``Unavailable`` without a JDK, or if no jar is available."""
    begun, started = datetime.now(UTC), time.monotonic()
    try:
        there = jars(wanted.cells)
    except KeyboardInterrupt:  # during the download, so there are no results
        return Found({}, {}, {}, False, wanted.known, full=wanted.full, out=wanted.out, begun=begun,
                     seconds=time.monotonic() - started)  # fmt: skip
    skipped = {cell: why for cell in wanted.cells if (why := there.why_not(cell)) is not None}
    playable = [cell for cell in wanted.cells if cell not in skipped]
    predictions, foretold = _predictions(playable, wanted, tick)
    left = None if wanted.budget is None else max(0.0, wanted.budget - (time.monotonic() - started))
    # If the predictions were interrupted, no cell is run.
    done, cached = play(playable, Kept(there.digests), tick, left if foretold else 0.0, wanted.workers)
    return Found(
        outcomes={cell: done.found[cell] for cell in wanted.cells if cell in done.found},
        predictions=predictions,
        skipped={cell: (skipped | done.failed)[cell] for cell in wanted.cells if cell in skipped | done.failed},
        complete=done.complete and foretold,
        known=wanted.known,
        cached=frozenset(cached),
        full=wanted.full,
        out=wanted.out,
        begun=begun,
        seconds=time.monotonic() - started,
    )


def _predictions(cells: Sequence[Cell], wanted: Wanted, tick: Tick) -> tuple[dict[Cell, Prediction], bool]:
    """The committed predictions, and new ones by reference models for the other cells, before the jars run. Also:
    whether all predictions were made in time.
    """
    known = committed()
    found = {cell: told for cell in cells if (told := known.of(cell)) is not None}
    done = predict([cell for cell in cells if cell not in found], tick, wanted.budget, wanted.workers)
    return found | {cell: Prediction.of(told) for cell, told in done.found.items()}, done.complete
