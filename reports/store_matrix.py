"""Renders the cells of stores that one release wrote and another one opened, as text and as a page."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kipcheck.reports.markup import Safe, tag
from kipcheck.reports.page import page

MARKS: Final = {"opens": ".", "refuses": "R", "loses": "L", "misreads": "M"}
LEGEND: Final = ". opens, R refuses, L loses, M misreads; first the upgrade, then the way back; ! unlike its prediction"
WROTE: Final = {
    "plain": "stores without timestamps",
    "timestamped": "stores with timestamps",
    "both": "stores whose values have timestamps in part",
    "headers": "stores with headers",
}
Row = Mapping[str, Any]


def text_of(found: Mapping[str, Any]) -> str:
    """A table for each format that a store had and was opened in: writers in rows, and in columns the releases that
    open their stores."""
    cells: Sequence[Row] = found["cells"]
    lines: list[str] = []
    for wrote, opened in dict.fromkeys((each["wrote"], each["opened"]) for each in cells):
        lines += ["", f"{WROTE[wrote]}, opened with {opened.replace('timestamped', 'timestamps')}:"]
        lines += _table([each for each in cells if (each["wrote"], each["opened"]) == (wrote, opened)])
    del lines[:1]
    lines += ["", LEGEND]
    lines += [
        f"{len(pairs)} cells, as {pairs[-1]}: {why}"
        for why, pairs in _grouped(cells, lambda each: f"{each['reason']} ({each['requirement']})", "reason").items()
    ]
    lines += [
        f"back, {len(pairs)} cells, as {' -> '.join(pairs[-1].split(' -> ')[::-1])}: {why}"
        for why, pairs in _grouped(cells, _short, "back_reason").items()
    ]
    pages = dict.fromkeys(each["predicted"].get("page") for each in cells if each["back"] == "loses")
    lines += [f"known: {each}" for each in pages if each]
    lines += [f"{each['from']} -> {each['to']}: skipped: {each['why']}" for each in found["skipped"]]
    lines.append(f"{len(cells)} cells, {found['unlike']} unlike their predictions, {len(found['skipped'])} skipped")
    return "\n".join(lines)


def _table(cells: Sequence[Row]) -> list[str]:
    by_pair = {(each["from"], each["to"]): each for each in cells}
    olds, news = _releases(cells, "from"), _releases(cells, "to")
    wide = max(map(len, (*olds, *news, "from"))) + 1
    lines = ["from".ljust(wide) + "".join(each.rjust(wide) for each in news)]
    for old in olds:
        marks = (_mark(by_pair.get((old, new))) for new in news)
        lines.append(old.ljust(wide) + "".join(each.rjust(wide) for each in marks))
    return lines


def page_of(found: Mapping[str, Any]) -> str:
    cells: Sequence[Row] = found["cells"]
    head = ("from", "to", "had", "opened as", "RocksDB", "upgrade", "requirement", "way back", "predicted", "why")
    rows = [
        tag(
            "tr",
            *(tag("td", str(each[name])) for name in ("from", "to", "wrote", "opened")),
            tag("td", " -> ".join(each["rocksdb"])),
            tag("td", each["verdict"]),
            tag("td", each["requirement"] or ""),
            tag("td", each["back"]),
            tag("td", _predicted(each)),
            tag("td", each["reason"] or each["back_reason"] or ""),
        )
        for each in cells
    ]
    table: Safe = tag("table", tag("thead", tag("tr", *(tag("th", each) for each in head))), tag("tbody", *rows))
    title = "Stores that another release opens"
    return page(title, tag("main", tag("h1", title), tag("pre", text_of(found)), table))


def _grouped(cells: Sequence[Row], text: Callable[[Row], str], key: str) -> dict[str, list[str]]:
    """The pairs of releases with each reason."""
    reasons: dict[str, list[str]] = {}
    for each in cells:
        if each[key]:
            reasons.setdefault(text(each), []).append(f"{each['from']} -> {each['to']}")
    return reasons


def _predicted(row: Row) -> str:
    prediction = row["predicted"]
    text = f"{prediction['verdict']}, back {prediction['back'] or 'unknown'} ({prediction['rule']})"
    text += f", known: {prediction['page']}" if prediction.get("page") else ""
    return text if row["as_predicted"] else f"{text}: differs"


def _mark(row: Row | None) -> str:
    if row is None:
        return ""
    return MARKS[row["verdict"]] + MARKS[row["back"]] + ("" if row["as_predicted"] else "!")


def _short(row: Row) -> str:
    """The reason without the place of the store."""
    return re.sub(r" in file \S+", " in its file", str(row["back_reason"]).rpartition("/rocksdb/store: ")[2])


def _releases(cells: Sequence[Row], side: str) -> list[str]:
    return sorted({each[side] for each in cells}, key=lambda each: [*map(int, each.split("."))])
