"""Compares totals with those of ``floor.toml``, which may only rise: ``python -m kipcheck.conformance.recall.floor``
compares the recorded ones. Exit code 1: one has fallen.
"""

import json
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import tomlkit

from kipcheck.conformance.recall.bugs import Bug, bugs, folder
from kipcheck.conformance.recall.measure import Measured

FLOOR: Final = "floor.toml"
MUTATION: Final = "mutation.json"
FOUND, WITH_BUDGET, KILLED = "found", "found-with-budget", "killed"
"""The tables of the floor: bugs by kind, in default cases alone and with the budget, and mutants by client and part."""

Totals: TypeAlias = dict[str, dict[str, int]]


def totals(of: Iterable[Bug], measured: Mapping[str, Measured] | None = None) -> Totals:
    """The bugs that are found, by kind. ``measured``: results that take the place of the recorded ones, unless a
    release could not be installed.
    """
    found: dict[str, Counter[str]] = {FOUND: Counter(), WITH_BUDGET: Counter()}
    for bug in of:
        new = (measured or {}).get(bug.id)
        result = bug.today if new is None or new.result == "skipped" else new.result
        found[FOUND][bug.kind] += result == "found"
        found[WITH_BUDGET][bug.kind] += result in ("found", "found with budget")
    return {name: dict(each) for name, each in found.items()}


def mutation_rows() -> Sequence[Mapping[str, Any]]:
    """What ``kipcheck mutate --record`` wrote, for each client, part and kind of changes; empty without a record."""
    path = folder() / MUTATION
    found: Sequence[Mapping[str, Any]] = json.loads(path.read_text("utf-8")) if path.is_file() else ()
    return found


def killed(rows: Iterable[Mapping[str, Any]]) -> Totals:
    """The mutants that are killed, as a table of the floor."""
    return {KILLED: {f"{each['target']} {each['part']} {each['kind']}": each["killed"] for each in rows}}


def floor() -> Totals:
    """The totals that may only rise."""
    path = folder() / FLOOR
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


def below(present: Totals) -> list[str]:
    """What has fallen below the floor, in words. Only the tables of ``present`` are compared."""
    return [
        f"{name}, {key}: {present[name].get(key, 0)}, the floor is {least}"
        for name, by in floor().items()
        for key, least in by.items()
        if name in present and present[name].get(key, 0) < least
    ]


def raise_floor(present: Totals) -> None:
    """Writes the totals that are above the floor."""
    path = folder() / FLOOR
    document: Any = tomlkit.parse(path.read_text("utf-8")) if path.is_file() else tomlkit.document()
    for name, by in present.items():
        table = document.setdefault(name, tomlkit.table())
        for key, number in by.items():
            table[key] = max(number, table.get(key, 0))
    replace_text(path, tomlkit.dumps(document))


def replace_text(path: Path, text: str) -> None:
    """Replaces a file as a whole."""
    staged = path.with_suffix(".part")
    staged.write_text(text, "utf-8")
    os.replace(staged, path)


def main() -> int:
    fallen = below({**totals(bugs().values()), **killed(mutation_rows())})
    for line in fallen:
        print(f"a total is below {folder() / FLOOR}: {line}")
    return int(bool(fallen))


if __name__ == "__main__":
    sys.exit(main())
