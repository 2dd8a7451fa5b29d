"""How strongly each requirement is tested: its halves, the mutants of their invariants, and what answered them.

Counts of mutants by seed, and the real targets of recorded runs, come from ``strength.json``, which
``python -m kipcheck.conformance.benchmarks.thin --record`` and ``... --asked DIR`` write.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from statistics import median
from typing import Any, Final

from kipcheck.conformance.core.values.requirement import Half, Requirement, requirements
from kipcheck.conformance.engine.catalogue.tables import coverage
from kipcheck.conformance.protocols.mutants import MUTANTS

FILE: Final = "strength.json"
REAL, MODEL, TEST, NOTHING = "real", "own model", "test", "nothing"
"""What stands behind a requirement: a real target that answered, the reference and mutants, or a test of kipcheck."""
LEAST_SHARE: Final = 0.9
LEAST_CASES: Final = 3
ENOUGH: Final = 5
"""No more violating cases of a seed are counted."""


@dataclass(frozen=True, slots=True)
class Found:
    """A mutant, and in how many default cases of its check it was found."""

    id: str
    by_seed: tuple[int, ...] = ()
    """For each seed the violating cases; empty: it was not counted."""
    enumerated: bool = False
    """A case that is not drawn violates its invariant."""

    @property
    def seeds(self) -> int:
        return sum(each > 0 for each in self.by_seed)

    @property
    def is_thin(self) -> bool:
        if not self.by_seed or self.enumerated:
            return False
        return self.seeds < LEAST_SHARE * len(self.by_seed) or median(self.by_seed) < LEAST_CASES

    @property
    def text(self) -> str:
        if not self.by_seed:
            return f"{self.id} (not counted)"
        if self.enumerated:
            return f"{self.id} (enumerated)"
        cases = median(self.by_seed)
        most = " or more" if cases == ENOUGH else ""
        return f"{self.id} ({self.seeds} of {len(self.by_seed)} seeds, {cases:g}{most} cases)"


@dataclass(frozen=True, slots=True)
class Strength:
    """What tests a requirement."""

    requirement: Requirement
    invariants: tuple[str, ...]
    """Those that cover it in some check."""
    shares: Mapping[str, tuple[str, ...]]
    """Of each invariant: the other requirements that stand on it, too."""
    mutants: tuple[Found, ...]
    asked: tuple[str, ...]
    """Real targets that answered it in the recorded runs, or in another one."""

    @property
    def behind(self) -> str:
        if self.asked:
            return REAL
        return MODEL if self.invariants else TEST if self.requirement.tests else NOTHING

    @property
    def plain(self) -> dict[str, Any]:
        of = self.requirement
        return {
            "id": of.id, "kip": of.kip, "does": of.does and of.does.plain, "never": of.never and of.never.plain,
            "invariants": [*self.invariants], "shares": {name: [*each] for name, each in self.shares.items()},
            "mutants": [
                {"id": each.id, "seeds": each.seeds, "of": len(each.by_seed), "cases": [*each.by_seed],
                 "enumerated": each.enumerated, "thin": each.is_thin}
                for each in self.mutants
            ],
            "asked": [*self.asked], "behind": self.behind,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        yield f"{self.requirement.id:<8} {self.behind:<10} {self.requirement.kip}"
        for name, half in (("does", self.requirement.does), ("never", self.requirement.never)):
            yield f"    {name}: {_words(half)}"
        yield f"    invariants: {', '.join(self.invariants) or 'none'}"
        for name, others in self.shares.items():
            yield from [f"    one check with {', '.join(others)}: {name}"] if others else []
        yield f"    mutants: {'; '.join(each.text for each in self.mutants) or 'none'}"
        yield f"    asked: {', '.join(self.asked) or 'no real target'}"


def _words(half: Half | None) -> str:
    if half is None:
        return "not stated"
    return f"absent: {half.absent}" if half.absent else f"{half.text} [{', '.join(half.invariants)}]"


def recorded() -> dict[str, Any]:
    """The content of the file: ``mutants`` by id, and ``asked`` by requirement."""
    found: dict[str, Any] = json.loads((files("kipcheck.conformance") / FILE).read_text("utf-8"))
    return found


def strengths(asked: Mapping[str, Sequence[str]] | None = None) -> list[Strength]:
    """All requirements, in the order of the file. ``asked``: of another run than the recorded one."""
    data = recorded()
    real: Mapping[str, Sequence[str]] = data["asked"] if asked is None else asked
    by_id = _invariants()
    standing: dict[str, list[str]] = {}
    for id, names in by_id.items():
        for name in names:
            standing.setdefault(name, []).append(id)
    return [
        Strength(
            each,
            names := by_id.get(id, ()),
            {name: tuple(other for other in standing[name] if other != id) for name in names},
            tuple(_found(name, data["mutants"]) for name in _mutants(each, names)),
            tuple(real.get(id, ())),
        )
        for id, each in requirements().items()
    ]


@cache
def _invariants() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for id, _, invariant, _ in coverage():
        found.setdefault(id, {})[invariant] = None
    return {id: tuple(sorted(each)) for id, each in found.items()}


def _mutants(of: Requirement, invariants: Iterable[str]) -> tuple[str, ...]:
    """Those that its halves name; without halves, all of its invariants."""
    stated = [name for half in (of.does, of.never) if half is not None for name in half.mutants]
    known = {*invariants}
    return tuple(dict.fromkeys(stated or (name for name, each in MUTANTS.items() if each.invariant in known)))


def _found(name: str, mutants: Mapping[str, Any]) -> Found:
    counted = mutants.get(name)
    return Found(name) if counted is None else Found(name, tuple(counted["by_seed"]), counted["enumerated"])


BEGIN, END = "<!-- strength -->\n", "<!-- end of strength -->\n"
HEAD: Final = (
    "| document | statements | invariants | both halves | mutants | thin | real | own model | test |",
    "|---|---|---|---|---|---|---|---|---|",
)


def table(rows: Sequence[Strength]) -> Iterator[str]:
    """By document, in Markdown. Its checks are the invariants on which its requirements stand, each once."""
    yield from HEAD
    ordered = sorted(rows, key=lambda each: each.requirement.kip)
    for kip, group in groupby(ordered, lambda each: each.requirement.kip):
        of = [*group]
        checks = {name for each in of for name in each.invariants}
        halves = sum(None not in (each.requirement.does, each.requirement.never) for each in of)
        mutants = {found.id: found for each in of for found in each.mutants}
        thin = sum(each.is_thin for each in mutants.values())
        behind = [sum(each.behind == word for each in of) for word in (REAL, MODEL, TEST)]
        cells = (kip, len(of), len(checks), halves, len(mutants), thin, *behind)
        yield f"| {' | '.join(map(str, cells))} |"
