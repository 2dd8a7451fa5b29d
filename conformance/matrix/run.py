"""Runs cells in two processes, and caches their results."""

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.streams_members import Unanswerable, open_jars
from kipcheck.conformance.engine.execution.pool import Result, pool
from kipcheck.conformance.matrix.cells import Cell, Outcome, outcome
from kipcheck.conformance.matrix.groups import released_binaries
from kipcheck.conformance.matrix.predictions import VerdictSteps, predicted
from kipcheck.conformance.protocols.streams.model.members import FUTURE
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import jar_digests, maven

WORKERS: Final = 2
WAIT_SECONDS: Final = 0.5
"""Between two checks of the time and of finished cells."""
MOST_CACHED_VERSIONS: Final = 3
"""The number of kipcheck versions whose results stay in the cache."""
T = TypeVar("T")
Tick: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the kind of work, the number of finished cells, the number of all cells, and the last one."""


@dataclass(slots=True)
class Jars:
    """The available releases."""

    digests: dict[str, str] = field(default_factory=dict)
    """Digests of the contents of the jars, by patch."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a jar is not available, by patch."""

    def why_not(self, cell: Cell) -> str | None:
        """Why a cell cannot be run; None if it can."""
        return next((self.missing[each] for each in _patches(cell) if each in self.missing), None)


def _patches(cell: Cell) -> list[str]:
    return [each.patch for each in cell.pair if each.patch != FUTURE]


def jars(cells: Sequence[Cell]) -> Jars:
    """Fetches missing jars. Errors: ``Unavailable`` without a JDK, or if no jar is available."""
    programs.program()
    found = Jars()
    by_patch = {
        each: programs.coordinates(each, ("streams",)) for each in {one: 0 for cell in cells for one in _patches(cell)}
    }
    with suppress(Unavailable):
        maven.fetch({each: None for group in by_patch.values() for each in group})
    for patch, coordinates in by_patch.items():
        try:
            paths = maven.fetch(coordinates)
        except Unavailable as why:
            found.missing[patch] = str(why)
        else:
            found.digests[patch] = _hashed(jar_digests.sha256(path) for path in paths.values())
    if by_patch and not found.digests:
        raise Unavailable(next(iter(found.missing.values())))
    return found


def _hashed(parts: Iterator[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# Cached results


def source_digest() -> str:
    """A digest of everything that determines a result besides the jars: kipcheck's sources and the Java program's."""
    digest = hashlib.sha256()
    for package in ("core", "wire", "machines", "targets", "protocols", "clients", "matrix"):
        root = Path(str(files("kipcheck.conformance") / package))
        if not (root / "__init__.py").is_file():  # an empty folder would let stale results match
            raise FileNotFoundError(f"{root} is not a package of kipcheck, so results of its code cannot be cached")
        for path in sorted(root.rglob("*.*")):
            if path.suffix in (".py", ".java", ".json", ".toml") and path.is_file():
                digest.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class OutcomeCache:
    """The results of earlier runs, in a folder for each version of the sources."""

    def __init__(self, digests: Mapping[str, str], folder: Path | None = None) -> None:
        self._folder = folder or maven.cache() / "matrix" / source_digest()
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
        """A result that cannot be written is only computed again later."""
        with suppress(OSError), maven.placing(self._path(cell)) as staged:
            staged.write_text(json.dumps(found), "utf-8")

    def tidy(self) -> None:
        """Removes the results of older versions of kipcheck."""
        with suppress(OSError):
            folders = sorted(self._folder.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
            for old in [each for each in folders if each != self._folder][MOST_CACHED_VERSIONS - 1 :]:
                for file in old.glob("*.json"):
                    file.unlink(missing_ok=True)
                old.rmdir()


# Worker processes


@dataclass(slots=True)
class Done(Generic[T]):
    """Results so far."""

    found: dict[Cell, T] = field(default_factory=dict)
    failed: dict[Cell, str] = field(default_factory=dict)
    """Cells that a release could not run, and why."""
    complete: bool = True


def play(
    cells: Sequence[Cell], cache: OutcomeCache, tick: Tick, budget: float | None = None, workers: int = WORKERS
) -> tuple[Done[Outcome], set[Cell]]:
    """The results, and the cells that were in the cache."""
    done: Done[Outcome] = Done()
    for cell in cells:
        if (known := cache.get(cell)) is not None:
            done.found[cell] = known
    cached = {*done.found}
    todo = [each for each in cells if each not in cached]
    releases = sorted({each for cell in todo for each in _patches(cell)})
    work = Work("played", _outcome, tuple(releases), cache.put)
    spread(todo, work, done, tick, budget, workers)
    cache.tidy()
    return done, cached


def predict(
    cells: Sequence[Cell], tick: Tick, budget: float | None = None, workers: int = WORKERS
) -> Done[VerdictSteps]:
    """The predictions of reference models."""
    done: Done[VerdictSteps] = Done()
    spread(cells, Work("predicted", _prediction), done, tick, budget, workers)
    return done


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """The work to do for each cell."""

    name: str
    """``played`` or ``predicted``."""
    does: Callable[[Cell], T]
    """A function of this module, which runs in another process."""
    releases: tuple[str, ...] = ()
    """Releases whose jars it needs."""
    ended: Callable[[Cell, T], None] = lambda cell, found: None
    """Called in this process with the result."""


def spread(todo: Sequence[Cell], work: Work[T], done: Done[T], tick: Tick, budget: float | None, workers: int) -> None:
    """Runs the work in several processes. Ctrl-C and the end of the budget (seconds) keep the results so far."""
    done.complete = done.complete and not (todo and budget == 0)
    if not todo or budget == 0:
        return
    until = math.inf if budget is None else time.monotonic() + budget
    waiting, playing = deque(todo), dict[int, Cell]()
    try:
        with pool(min(workers, len(todo)), work.does, partial(_within, work.releases)) as processes:
            while (waiting or playing) and time.monotonic() <= until:
                while waiting and processes.takes_more:
                    cell = waiting.popleft()
                    playing[processes.give(cell)] = cell
                for number, result in processes.take(WAIT_SECONDS).items():
                    cell = playing.pop(number)
                    _take(result, cell, done, work)
                    tick(work.name, len(todo) - len(waiting) - len(playing), len(todo), " ".join(cell.key))
    except KeyboardInterrupt:
        done.complete = False
    done.complete = done.complete and not (waiting or playing)


def _take(result: Result[T], cell: Cell, done: Done[T], work: Work[T]) -> None:
    try:
        done.found[cell] = result.get()
    except Unanswerable as why:
        done.failed[cell] = str(why)
    else:
        work.ended(cell, done.found[cell])


_process_state: dict[str, Any] = {}
"""The JVM of this worker process."""


@contextmanager
def _within(releases: tuple[str, ...]) -> Iterator[None]:
    if not releases:
        yield
        return
    with open_jars(releases) as opened:
        _process_state["jars"] = opened.binary
        yield


def _outcome(cell: Cell) -> Outcome:
    return outcome(cell, released_binaries(_process_state["jars"], cell.edition))


def _prediction(cell: Cell) -> VerdictSteps:
    return predicted(cell)
