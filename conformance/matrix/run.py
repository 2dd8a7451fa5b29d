"""Many cells, played by two processes side by side, with what was played before taken from a cache."""

import hashlib
import json
import multiprocessing
import multiprocessing.util
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any, Final, Generic, TypeAlias, TypeVar

from conformance import artifacts
from conformance.artifacts import Unavailable
from conformance.matrix.cells import Cell, Outcome, outcome
from conformance.matrix.fleets import released
from conformance.matrix.predictions import Told, predicted
from conformance.models.streams.words import FUTURE
from conformance.targets import java
from conformance.targets.java_streams import Unanswerable, open_jars

WORKERS: Final = 2
WAIT_SECONDS: Final = 0.5
"""Between two looks at the clock and at what is done."""
KEPT: Final = 3
"""So many versions of kipcheck have results in the cache."""
T = TypeVar("T")
Tick: TypeAlias = Callable[[str, int, int, str], None]
"""What is done to cells, to how many by now, of how many, and to which one last."""


@dataclass(slots=True)
class Jars:
    """Which releases can be had."""

    digests: dict[str, str] = field(default_factory=dict)
    """Of the contents of the jars, by patch."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why not, by patch."""

    def why_not(self, cell: Cell) -> str | None:
        """What keeps a cell from being played."""
        return next((self.missing[each] for each in _patches(cell) if each in self.missing), None)


def _patches(cell: Cell) -> list[str]:
    return [each.patch for each in cell.pair if each.patch != FUTURE]


def jars(cells: Sequence[Cell]) -> Jars:
    """Fetched where they are not here yet. Errors: ``Unavailable`` without a JDK, or where there is no jar at all."""
    java.program()
    found = Jars()
    wanted = {
        each: java.coordinates(each, ("streams",)) for each in {one: 0 for cell in cells for one in _patches(cell)}
    }
    with suppress(Unavailable):
        artifacts.fetch({each: None for group in wanted.values() for each in group})
    for patch, coordinates in wanted.items():
        try:
            paths = artifacts.fetch(coordinates)
        except Unavailable as why:
            found.missing[patch] = str(why)
        else:
            found.digests[patch] = _hashed(artifacts.sha256(path) for path in paths.values())
    if wanted and not found.digests:
        raise Unavailable(next(iter(found.missing.values())))
    return found


def _hashed(parts: Iterator[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# What was played before


def ours() -> str:
    """Of all that decides what comes of a cell besides the jars: our own sources, and the Java program's."""
    told = hashlib.sha256()
    for package in ("core", "models", "apis", "invariants", "matrix", "targets", "wire"):
        root = Path(str(files("conformance") / package))
        for path in sorted(root.rglob("*.*")):
            if path.suffix in (".py", ".java", ".json", ".toml") and path.is_file():
                told.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return told.hexdigest()[:16]


class Kept:
    """Outcomes of earlier runs, in a folder for each state of our sources."""

    def __init__(self, digests: Mapping[str, str], folder: Path | None = None) -> None:
        self._folder = folder or artifacts.cache() / "matrix" / ours()
        self._digests = digests

    def _path(self, cell: Cell) -> Path:
        known = (self._digests.get(each.patch, each.patch) for each in cell.pair)
        return self._folder / f"{_hashed(iter((cell.scenario, *known)))[:32]}.json"

    def get(self, cell: Cell) -> Outcome | None:
        try:
            found = json.loads(self._path(cell).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, cell: Cell, found: Outcome) -> None:
        """Nothing is lost but time where it cannot be kept."""
        with suppress(OSError), artifacts.placing(self._path(cell)) as staged:
            staged.write_text(json.dumps(found), "utf-8")

    def tidy(self) -> None:
        """What older versions of kipcheck have left goes."""
        with suppress(OSError):
            folders = sorted(self._folder.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
            for old in [each for each in folders if each != self._folder][KEPT - 1 :]:
                for file in old.glob("*.json"):
                    file.unlink(missing_ok=True)
                old.rmdir()


# Side by side


@dataclass(slots=True)
class Done(Generic[T]):
    """As far as it came."""

    found: dict[Cell, T] = field(default_factory=dict)
    failed: dict[Cell, str] = field(default_factory=dict)
    """What could not be asked of a release, and why."""
    complete: bool = True


def play(
    cells: Sequence[Cell], kept: Kept, tick: Tick, budget: float | None = None, workers: int = WORKERS
) -> tuple[Done[Outcome], set[Cell]]:
    """And which of them were in the cache."""
    done: Done[Outcome] = Done()
    for cell in cells:
        if (known := kept.get(cell)) is not None:
            done.found[cell] = known
    cached = {*done.found}
    todo = [each for each in cells if each not in cached]
    releases = sorted({each for cell in todo for each in _patches(cell)})
    work = Work("played", _outcome, tuple(releases), kept.put)
    spread(todo, work, done, tick, budget, workers)
    kept.tidy()
    return done, cached


def predict(cells: Sequence[Cell], tick: Tick, budget: float | None = None, workers: int = WORKERS) -> Done[Told]:
    """By our machines."""
    done: Done[Told] = Done()
    spread(cells, Work("foretold", _prediction), done, tick, budget, workers)
    return done


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """What is done to each cell."""

    name: str
    """``played``."""
    does: Callable[[Cell], T]
    """In another process: a function of this module."""
    releases: tuple[str, ...] = ()
    """Whose jars it asks."""
    ended: Callable[[Cell, T], None] = lambda cell, found: None
    """Called here with what came of it."""


def spread(todo: Sequence[Cell], work: Work[T], done: Done[T], tick: Tick, budget: float | None, workers: int) -> None:
    """Ctrl-C, and a budget (seconds) that is used up, leave what is done till then."""
    done.complete = done.complete and not (todo and budget == 0)
    if not todo or budget == 0:
        return
    until = None if budget is None else time.monotonic() + budget
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(min(workers, len(todo)), context, _begin, (work.releases, stop)) as pool:
        waiting: dict[Future[T], Cell] = {}
        try:
            waiting.update((pool.submit(work.does, cell), cell) for cell in todo)
            while waiting:
                over, _ = wait(waiting, WAIT_SECONDS, FIRST_COMPLETED)
                for each in over:
                    cell = waiting.pop(each)
                    _take(each, cell, done, work)
                    tick(work.name, len(todo) - len(waiting), len(todo), " ".join(cell.key))
                if until is not None and time.monotonic() > until:
                    break
        except KeyboardInterrupt:
            pass
        if waiting:
            done.complete = False
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _take(each: Future[T], cell: Cell, done: Done[T], work: Work[T]) -> None:
    try:
        done.found[cell] = each.result()
    except Unanswerable as why:
        done.failed[cell] = str(why)
    else:
        work.ended(cell, done.found[cell])


class Stopped(Exception):
    """Somebody waits for the process to end."""


_held = ExitStack()
"""Of a process that plays: its JVM."""
_given: dict[str, Any] = {}


def _begin(releases: tuple[str, ...], stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent is asked to stop, and asks us.
    Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    _given["stop"] = stop
    if releases:
        opened = _held.enter_context(open_jars(releases))
        _given["jars"] = opened.binary
        multiprocessing.util.Finalize(None, _held.close, exitpriority=10)


def _end_with(parent: Any) -> None:
    """Who is left alone would wait for work for ever."""
    parent.join()
    os._exit(1)


def _stopped() -> bool:
    return bool(_given["stop"].is_set())


def _outcome(cell: Cell) -> Outcome:
    return outcome(cell, released(_given["jars"], cell.edition), _checked)


def _prediction(cell: Cell) -> Told:
    return predicted(cell, _checked)


def _checked() -> None:
    if _stopped():
        raise Stopped
