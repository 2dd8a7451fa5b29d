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
from kipcheck.conformance.matrix.run import WORKERS, OutcomeCache, Tick, jars, play, predict


@dataclass(frozen=True, slots=True)
class MatrixRequest:
    cells: Sequence[Cell]
    known: Sequence[Deviation] = ()
    full: bool = False
    require: str | None = None
    """The result that all answers must have."""
    out: Path = Path("kipcheck-out")
    budget: float | None = None
    """Seconds."""
    workers: int = WORKERS


def run_matrix(request: MatrixRequest, tick: Tick) -> Found:
    """Errors: ``Unavailable`` without a JDK, or if no jar is available."""
    started_at, started = datetime.now(UTC), time.monotonic()
    try:
        there = jars(request.cells)
    except KeyboardInterrupt:  # during the download, so there are no results
        return Found({}, {}, {}, False, request.known, full=request.full, require=request.require,
                     out=request.out, begun=started_at, seconds=time.monotonic() - started)  # fmt: skip
    skipped = {cell: why for cell in request.cells if (why := there.why_not(cell)) is not None}
    playable = [cell for cell in request.cells if cell not in skipped]
    predictions, in_time = _predictions(playable, request, tick)
    remaining = None if request.budget is None else max(0.0, request.budget - (time.monotonic() - started))
    # If the predictions were interrupted, no cell is run.
    done, cached = play(playable, OutcomeCache(there.digests), tick, remaining if in_time else 0.0, request.workers)
    return Found(
        outcomes={cell: done.found[cell] for cell in request.cells if cell in done.found},
        predictions=predictions,
        skipped={cell: (skipped | done.failed)[cell] for cell in request.cells if cell in skipped | done.failed},
        complete=done.complete and in_time,
        known=request.known,
        cached=frozenset(cached),
        full=request.full,
        require=request.require,
        out=request.out,
        begun=started_at,
        seconds=time.monotonic() - started,
    )


def _predictions(cells: Sequence[Cell], request: MatrixRequest, tick: Tick) -> tuple[dict[Cell, Prediction], bool]:
    """The committed predictions, and new ones by reference models for the other cells, before the jars run. Also:
    whether all predictions were made in time.
    """
    known = committed()
    found = {cell: steps for cell in cells if (steps := known.of(cell)) is not None}
    done = predict([cell for cell in cells if cell not in found], tick, request.budget, request.workers)
    return found | {cell: Prediction.of(steps) for cell, steps in done.found.items()}, done.complete
