"""Runs the checks of a part against a client in a copy: ``python -m kipcheck.conformance.recall.mutant_process``.

Its argument is an ``Order`` as JSON. It writes into the folder of the run: ``ledger.jsonl``, the facts
of the cases, and ``end.json``.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TextIO

from kipcheck.conformance.core.ledger import Failure, read
from kipcheck.conformance.core.operations.field_kinds import from_json, to_json
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.exits import FAILED
from kipcheck.conformance.core.values.untrusted_text import harmless_json
from kipcheck.conformance.engine.execution.replay import replay
from kipcheck.conformance.engine.execution.run import Options, execute
from kipcheck.conformance.engine.findings.failures import FOLDER
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.launch import CASE, Launcher, Program
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.recall.facts import Recorded
from kipcheck.conformance.recall.python_copies import REACHED, count
from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.registry import is_live, target as target_of

FACTS: Final = "facts.jsonl"
END: Final = "end.json"
AGAIN: Final = 2
"""The most times that the case of a failure of a live client is run again, alone: it counts if it fails once more."""


@dataclass(frozen=True, slots=True)
class Order:
    target: str
    checks: tuple[str, ...]
    """Their ids, or globs."""
    seed: int
    out: str
    until_failure: bool = False
    counts: bool = False
    """Whether the client is instrumented."""
    edition: str = "apache"
    known: tuple[str, ...] = ("default",)
    """Lists of known deviations."""
    confirms: bool = True
    """Whether failures of a live client are run again."""
    usual: tuple[str, ...] = ()
    """The failures of the unchanged client, as ``way_of`` writes them: ``until_failure`` asks for another one."""

    @property
    def text(self) -> str:
        return json.dumps(to_json(self))


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended."""

    exit: int
    why: str
    confirmed: tuple[str, ...]
    """The ids of the failures that fail the run; of a live client those that occur again alone."""
    loaded: int
    """How often the changed line was run outside of any case, as when its module is imported."""

    @classmethod
    def read(cls, place: Path) -> "End":
        """That of a run, in its folder. Errors: FileNotFoundError where the run did not end by itself."""
        return from_json(cls, json.loads((place / END).read_text("utf-8")))


def main() -> None:
    order = from_json(Order, json.loads(sys.argv[1]))
    out = Path(order.out)
    with TemporaryDirectory(prefix="kipcheck-reached-") as folder, (out / FACTS).open("w", encoding="utf-8") as file:
        noted = _Noted(Path(folder), is_live(order.target)) if order.counts else None
        outcome = execute(_options(order), lambda name: _recorded(target_of(name), file, noted))
        loaded = 0 if noted is None else count(noted.place)
    os.environ.pop(REACHED, None)
    confirmed: tuple[str, ...] = ()
    if order.confirms and outcome.exit_code == FAILED and outcome.ledger is not None:
        found = [each for each in read(outcome.ledger).failures if each.decides]
        confirmed = _confirmed(order, out, found)
    end = End(outcome.exit_code, outcome.why, confirmed, loaded)
    (out / END).write_text(harmless_json(json.dumps(to_json(end))), "utf-8")


def _confirmed(order: Order, out: Path, failures: Sequence[Failure]) -> tuple[str, ...]:
    """The ids of those that occur again. A client that hangs takes 30 s to end each time, so no more are run again than
    are asked for."""
    if not is_live(order.target):
        return tuple(failure.id for failure in failures)
    found = []
    for failure in failures:
        if not _occurs_again(out, failure):
            continue
        found.append(failure.id)
        if order.until_failure and way_of(failure.invariant, failure.shape) not in order.usual:
            break
    return tuple(found)


def way_of(invariant: str, shape: tuple[Any, ...]) -> str:
    return repr((invariant, shape))


def _options(order: Order) -> Options:
    return Options(
        targets=(order.target,), edition=order.edition, checks=order.checks, seed=order.seed, workers=1,
        out=Path(order.out), known=order.known, least=0, until_failure=order.until_failure,
    )  # fmt: skip


def _occurs_again(out: Path, failure: Failure) -> bool:
    path = out / FOLDER / f"{failure.id}.json"
    return any(replay(path, failure.opened).exit_code == FAILED for _ in range(AGAIN))


def _recorded(target: Target, file: TextIO, noted: "_Noted | None") -> Target:
    if noted is None:
        return Recorded(target, file, lambda case: False, alone=False)
    if isinstance(target, LiveClient):
        target.launcher = _Counting(target.launcher, noted.place)
    else:
        os.environ[REACHED] = str(noted.place)
        target = target_of(target.name)  # whose command takes the variables of this process
    return Recorded(target, file, noted.was_reached, alone=not noted.by_case)


@dataclass(slots=True)
class _Noted:
    """The counts of how often the changed line was run."""

    folder: Path
    by_case: bool
    """Whether each case has a file of its own: the programs of several cases run at once."""
    last: int = 0

    @property
    def place(self) -> Path:
        """Of all cases; where each has its own, of programs that are started for none."""
        return self.folder / "count"

    def was_reached(self, case: Case) -> bool:
        if self.by_case:
            return count(_of_case(self.place, case.id)) > 0
        before, self.last = self.last, count(self.place)
        return self.last > before


def _of_case(place: Path, case: str) -> Path:
    return place.with_name(f"{place.name}-{case}") if case else place


@dataclass(frozen=True, slots=True)
class _Counting:
    """Starts the programs of another launcher, each with the file of its case."""

    launcher: Launcher
    place: Path

    @property
    def ends_on_errors(self) -> bool:
        return self.launcher.ends_on_errors

    def given(self, settings: Settings) -> Mapping[str, str]:
        return self.launcher.given(settings)

    async def start(self, settings: Settings) -> Program:
        os.environ[REACHED] = str(_of_case(self.place, CASE.get()))  # read before anything else can run
        return await self.launcher.start(settings)


if __name__ == "__main__":
    main()
