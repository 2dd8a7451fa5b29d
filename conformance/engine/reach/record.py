"""Compares the branches of invariants in the sources with the recorded counts, ``reach.json``."""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import unwrap
from pathlib import Path
from typing import Any, Final

from kipcheck import conformance
from kipcheck.conformance.engine.reach.places import PROTOCOLS, Place, Sources, texts_of
from kipcheck.conformance.protocols.declare.invariant import Invariant

FOLDER: Final = Path(conformance.__file__).parent
RECORD: Final = FOLDER / "reach.json"
UNREACHABLE: Final = FOLDER / "reach.toml"
COMMAND: Final = "python -m kipcheck.conformance.benchmarks.reach"


def sources() -> Sources:
    """Those of all protocols."""
    return Sources.read(texts_of(FOLDER / "protocols", PROTOCOLS.rstrip(".")))


@dataclass(frozen=True, slots=True)
class Reached:
    """In how many default cases each branch applied."""

    checks: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Check -> invariant -> place -> cases of a target without a defect."""
    mutants: Mapping[str, str] = field(default_factory=dict)
    """Place or invariant -> a mutant that reaches it in the default cases: of those that only a defect reaches."""
    unreached: Sequence[str] = ()
    """The other places."""

    @classmethod
    def read(cls, path: Path = RECORD) -> "Reached":
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return cls(found["checks"], found["mutants"], found["unreached"])

    def text(self) -> str:
        plain = {"checks": self.checks, "mutants": self.mutants, "unreached": sorted(self.unreached)}
        return json.dumps(plain, indent=0, sort_keys=True) + "\n"

    def cases(self) -> dict[str, dict[str, int]]:
        """Invariant -> place -> cases of all checks."""
        found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for by_invariant in self.checks.values():
            for invariant, places in by_invariant.items():
                for place, cases in places.items():
                    found[invariant][place] += cases
        return found

    @property
    def by_cases(self) -> frozenset[str]:
        return frozenset(place for places in self.cases().values() for place in places)


def present(counts: Mapping[str, Mapping[str, int]], places: Mapping[str, Place]) -> Mapping[str, Mapping[str, int]]:
    """The counts without those of branches that are gone."""
    return {
        invariant: {place: cases for place, cases in by_place.items() if place in places}
        for invariant, by_place in counts.items()
    }


def excused() -> dict[str, str]:
    """Place or invariant -> why no default case reaches it. Written by hand."""
    rows = tomllib.loads(UNREACHABLE.read_text("utf-8")).get("unreached", ())
    return {each["id"]: each["reason"] for each in rows}


def searched(of: Sources, invariants: Iterable[Invariant]) -> dict[str, frozenset[str]]:
    """The places that the search of each invariant can come to."""
    found = {}
    for each in invariants:
        search = unwrap(each.search)
        found[each.id] = of.of_search(search.__module__, search.__name__)
    return found


def troubles(
    places: Mapping[str, Place],
    by_invariant: Mapping[str, frozenset[str]],
    reached: Reached,
    excuses: Mapping[str, str],
) -> Iterator[str]:
    """Error messages: for what was not counted, and for what no default case reaches."""
    by_cases, cases = reached.by_cases, reached.cases()
    counted = by_cases | (reached.mutants.keys() - by_invariant.keys()) | {*reached.unreached}
    for id, place in places.items():
        where = f"{place.module.removeprefix(PROTOCOLS)}, line {place.line}: {id}"
        if id not in counted:
            yield f"{where}: this branch is not counted: run {COMMAND}"
        elif id in reached.unreached and id not in excuses:
            yield f"{where}: no default case reaches this branch ({place.guard})"
    gone = sorted(counted - places.keys())
    yield from (f"{id}: {RECORD.name} counts it, and there is no such branch: run {COMMAND}" for id in gone)
    for invariant, own in by_invariant.items():
        if own & counted and not cases.get(invariant) and invariant not in {*reached.mutants, *excuses}:
            yield f"{invariant}: no default case reaches this invariant"
    unknown = excuses.keys() - places.keys() - by_invariant.keys()
    needless = {id for id in excuses if id in by_cases or id in reached.mutants or cases.get(id)}
    file = UNREACHABLE.name
    yield from (f"{id}: {file} excuses it, and there is no such branch or invariant" for id in sorted(unknown))
    yield from (f"{id}: {file} excuses it, and it is reached" for id in sorted(needless))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of reach: one invariant."""

    invariant: str
    branches: int
    by_cases: int
    """Those that a case of a target without a defect reaches."""
    by_mutants: int
    """Those that only a case of a mutant reaches: they judge what follows another wrong answer."""
    excused: int
    least: int
    """The cases of the branch that the fewest cases reach, of those by cases."""


def rows(by_invariant: Mapping[str, frozenset[str]], reached: Reached, excuses: Mapping[str, str]) -> Iterator[Row]:
    """A row for each invariant, in their order."""
    total: dict[str, int] = defaultdict(int)
    for places in reached.cases().values():
        for place, cases in places.items():
            total[place] = max(total[place], cases)
    for invariant, own in by_invariant.items():
        counts = [total[place] for place in own if place in total]
        mutants, without = sum(each in reached.mutants for each in own), sum(each in excuses for each in own)
        yield Row(invariant, len(own), len(counts), mutants, without, min(counts, default=0))
