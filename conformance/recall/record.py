"""Records measurements: ``first`` and ``today`` of the entries, ``results.json``, and the totals in ``floor.toml``."""

import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import tomlkit

from kipcheck.conformance.recall.bugs import Bug, bugs, folder, tables
from kipcheck.conformance.recall.measure import Measured

RESULTS: Final = "results.json"
FLOOR: Final = "floor.toml"
MUTATION: Final = "mutation.json"
DECIDED: Final = ("found", "found with budget", "missed", "false alarm")
"""The results that ``first`` may be: a release that cannot be installed shows nothing."""
FOUND, WITH_BUDGET, KILLED = "found", "found-with-budget", "killed"
"""The tables of the floor: bugs by kind, in default cases and with the budget, too; mutants by client."""

Totals: TypeAlias = dict[str, dict[str, int]]


def results() -> dict[str, Measured]:
    """The recorded results, by id. Errors: ValueError for a file that was damaged."""
    path = folder() / RESULTS
    found = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return {each["id"]: Measured.of(each) for each in found}


def record(measured: Iterable[Measured]) -> None:
    """Writes ``first``, once, and ``today`` of these bugs, their results, and raises the totals of the floor."""
    new = {each.id: each for each in measured}
    for path in dict.fromkeys(path for path, table in tables("bug") if table["id"] in new):
        _replace(path, _with_results(path.read_text("utf-8"), new))
    bugs.cache_clear()
    kept = {id: each for id, each in {**results(), **new}.items() if id in bugs()}
    rows = (json.dumps(kept[id].plain, ensure_ascii=False) for id in sorted(kept))
    _replace(folder() / RESULTS, "[\n" + ",\n".join(rows) + "\n]\n")
    raise_floor(totals(bugs().values()))


def _with_results(text: str, new: Mapping[str, Measured]) -> str:
    document: Any = tomlkit.parse(text)
    for entry in document["bug"]:
        if (measured := new.get(str(entry["id"]))) is not None:
            if measured.result in DECIDED and "first" not in entry:
                _put(entry, "first", measured.result)
            _put(entry, "today", measured.result)
    return tomlkit.dumps(document)


def _put(entry: Any, key: str, value: str) -> None:
    """Writes a key behind the others: before the blank lines and comments at the end of the table."""
    if key in entry:
        entry[key] = value
        return
    behind = []
    while entry.value.body and entry.value.body[-1][0] is None:
        behind.append(entry.value.body.pop())
    entry[key] = value
    entry.value.body.extend(reversed(behind))


def _replace(path: Path, text: str) -> None:
    staged = path.with_suffix(".part")
    staged.write_text(text, "utf-8")
    os.replace(staged, path)


# ---- totals


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
    _replace(path, tomlkit.dumps(document))
