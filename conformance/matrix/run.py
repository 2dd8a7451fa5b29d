"""Many cells, played by two processes side by side, with what was played before taken from a cache."""

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
from kipcheck.conformance.engine.pool import Result, pool
from kipcheck.conformance.matrix.cells import Cell, Outcome, outcome
from kipcheck.conformance.matrix.groups import released
from kipcheck.conformance.matrix.predictions import Told, predicted
from kipcheck.conformance.models.streams.members import FUTURE
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.toolchains.maven import Unavailable

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
    programs.program()
    found = Jars()
    wanted = {
        each: programs.coordinates(each, ("streams",)) for each in {one: 0 for cell in cells for one in _patches(cell)}
    }
    with suppress(Unavailable):
        maven.fetch({each: None for group in wanted.values() for each in group})
    for patch, coordinates in wanted.items():
        try:
            paths = maven.fetch(coordinates)
        except Unavailable as why:
            found.missing[patch] = str(why)
        else:
            found.digests[patch] = _hashed(maven.sha256(path) for path in paths.values())
    if wanted and not found.digests:
        raise Unavailable(next(iter(found.missing.values())))
    return found


def _hashed(parts: Iterator[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# What was played before


def ours() -> str:
    """Of all that decides what comes of a cell besides the jars: our own sources, and the Java program's."""
    told = hashlib.sha256()
    for package in ("core", "wire", "machines", "models", "targets", "apis", "invariants", "clients", "matrix"):
        root = Path(str(files("kipcheck.conformance") / package))
        if not (root / "__init__.py").is_file():  # as empty, it would leave cells of other sources in their place
            raise FileNotFoundError(f"{root} is not a package of kipcheck, so results of its code cannot be cached")
        for path in sorted(root.rglob("*.*")):
            if path.suffix in (".py", ".java", ".json", ".toml") and path.is_file():
                told.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return told.hexdigest()[:16]


class Kept:
    """Outcomes of earlier runs, in a folder for each state of our sources."""

    def __init__(self, digests: Mapping[str, str], folder: Path | None = None) -> None:
        self._folder = folder or maven.cache() / "matrix" / ours()
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
        with suppress(OSError), maven.placing(self._path(cell)) as staged:
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
    until = math.inf if budget is None else time.monotonic() + budget
    left, playing = deque(todo), dict[int, Cell]()
    try:
        with pool(min(workers, len(todo)), work.does, partial(_within, work.releases)) as processes:
            while (left or playing) and time.monotonic() <= until:
                while left and processes.takes_more:
                    cell = left.popleft()
                    playing[processes.give(cell)] = cell
                for number, result in processes.take(WAIT_SECONDS).items():
                    cell = playing.pop(number)
                    _take(result, cell, done, work)
                    tick(work.name, len(todo) - len(left) - len(playing), len(todo), " ".join(cell.key))
    except KeyboardInterrupt:
        done.complete = False
    done.complete = done.complete and not (left or playing)


def _take(result: Result[T], cell: Cell, done: Done[T], work: Work[T]) -> None:
    try:
        done.found[cell] = result.get()
    except Unanswerable as why:
        done.failed[cell] = str(why)
    else:
        work.ended(cell, done.found[cell])


_given: dict[str, Any] = {}
"""Of a process that plays: its JVM."""


@contextmanager
def _within(releases: tuple[str, ...]) -> Iterator[None]:
    if not releases:
        yield
        return
    with open_jars(releases) as opened:
        _given["jars"] = opened.binary
        yield


def _outcome(cell: Cell) -> Outcome:
    return outcome(cell, released(_given["jars"], cell.edition))


def _prediction(cell: Cell) -> Told:
    return predicted(cell)
