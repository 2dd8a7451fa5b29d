"""``kipcheck explore``: searches a model within a scope, and writes the result and a counter-example."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from kipcheck.conformance.core.files.output_folder import OutputFolder, of_a_search
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.exits import CONFORMANT, FAILED, UNDECIDED
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.explore.counter_examples import history, jsonl, rows
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.declare.play import Playable, Product, Scope
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.invariants import invariant_of
from kipcheck.reports import exploration
from kipcheck.reports.sequence_text import ladder

AT_ONCE = 20_000
"""States that are explored between two checks of the time."""


@dataclass(frozen=True)
class Explored:
    model: Playable
    edition: Edition
    scope: Scope
    world: Product
    search: Search[Any, Any, Any]
    seconds: float
    """CPU time of this process."""

    @property
    def exit_code(self) -> int:
        if self.search.breach is not None:
            return FAILED
        return CONFORMANT if self.search.complete else UNDECIDED

    def found(self, width: int) -> dict[str, Any]:
        """The value for ``--json``; the diagram has at most ``width`` columns, if it fits."""
        search = self.search
        return {
            "states": search.states,
            "transitions": search.transitions,
            "depth": search.depth,
            "complete": search.complete,
            "states_per_s": round(search.states / max(self.seconds, 1e-6)),
            "counter_example": self._counter_example(width),
        }

    def _counter_example(self, width: int) -> dict[str, Any] | None:
        breach = self.search.breach
        if breach is None:
            return None
        return {
            "invariant": breach.law,
            "requirements": list(invariant_of(breach.law).requirements),
            "why": breach.why,
            "events": history(self.world, breach),
            "diagram": ladder(self._rows(), width),
        }

    def text(self, found: Mapping[str, Any], out: Path) -> str:
        return exploration.text(self._about, found, list(self._clauses()), self._again(out))

    def write(self, found: Mapping[str, Any], out: Path) -> None:
        """Writes the counter-example, as events and as a page; if there is none, removes that of an earlier search.

        Errors: ``output_folder.Unusable``; OSError.
        """
        events, shown = self._files(out)
        if self.search.breach is None:
            OutputFolder(out).remove(of_a_search(self.model.name))
            return
        OutputFolder(out).claim(events.name, shown.name)
        events.write_text(jsonl(found["counter_example"]["events"]), "utf-8")
        page = (
            self._about,
            found,
            invariant_of(self.search.breach.law).statement,
            list(self._clauses()),
            self._rows(),
            self._again(out),
        )
        shown.write_text(exploration.html(*page), "utf-8")

    def _files(self, out: Path) -> tuple[Path, Path]:
        return out / f"explore-{self.model.name}.jsonl", out / f"explore-{self.model.name}.html"

    def _rows(self) -> list[dict[str, Any]]:
        assert self.search.breach is not None
        return rows(self.world, self.search.breach)

    @property
    def _about(self) -> str:
        return ", ".join(filter(None, (f"{self.model.name} in {self.edition}", self.model.scope_text(self.scope))))

    def _again(self, out: Path) -> str:
        words = ["kipcheck", "play", self.model.name, "--edition", str(self.edition)]
        if self.model.moves or self.model.conversation is None:
            words += ["--scope", self.model.scope_text(self.scope)]
        return shlex.join([*words, str(self._files(out)[0])])

    def _clauses(self) -> Iterator[dict[str, str]]:
        for id in invariant_of(self.search.breach.law).requirements if self.search.breach else ():
            each = requirements()[id]
            yield {"id": id, "clause": each.clause, "text": each.text}


def explored(
    model: Playable,
    edition: Edition,
    scope: Scope,
    product: Product,
    most_states: int,
    budget: float | None,
    progress: Callable[[int, int], None] = lambda states, depth: None,
) -> Explored:
    """Runs until the search is complete or a bound is reached; ``budget``: seconds of wall time."""
    started_at, until = process_time(), None if budget is None else monotonic() + budget
    search = Search(product, product.symmetry if isinstance(product, SingleMachine) else None)
    while not search.run(min(AT_ONCE, most_states)):
        progress(search.states, search.depth)
        if search.states >= most_states or (until is not None and monotonic() >= until):
            break
    return Explored(model, edition, scope, product, search, process_time() - started_at)
