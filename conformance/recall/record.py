"""Records measurements: ``first`` and ``today`` of the entries, ``results.json``, and the totals of the floor."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import tomlkit

from kipcheck.conformance.recall.bugs import bugs, folder, tables
from kipcheck.conformance.recall.floor import raise_floor, replace_text, totals
from kipcheck.conformance.recall.measure import Measured

RESULTS: Final = "results.json"
DECIDED: Final = ("found", "found with budget", "missed", "false alarm")
"""The results that ``first`` may be: a release that cannot be installed shows nothing."""


def results() -> dict[str, Measured]:
    """The recorded results, by id. Errors: ValueError for a file that was damaged."""
    path = folder() / RESULTS
    found = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return {each["id"]: Measured.of(each) for each in found}


def record(measured: Iterable[Measured]) -> None:
    """Writes ``first``, once, and ``today`` of these bugs, their results, and raises the totals of the floor.

    A result of fewer seeds than the recorded one changes nothing.
    """
    before = results()
    new = {each.id: each for each in measured if each.id not in before or each.of_seeds >= before[each.id].of_seeds}
    for path in dict.fromkeys(path for path, table in tables("bug") if table["id"] in new):
        replace_text(path, _with_results(path.read_text("utf-8"), new))
    bugs.cache_clear()
    kept = {id: each for id, each in {**before, **new}.items() if id in bugs()}
    rows = (json.dumps(kept[id].plain, ensure_ascii=False) for id in sorted(kept))
    replace_text(folder() / RESULTS, "[\n" + ",\n".join(rows) + "\n]\n")
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
