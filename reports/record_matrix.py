"""Renders who reads what brokers persist, as text and as a page."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kipcheck.reports.markup import Safe, tag
from kipcheck.reports.page import page

MARKS: Final = {"reads": ".", "fails": "X", "skips": "s", "none": "-"}
LEGEND: Final = ". reads, X fails, s skips the record, - has no such format; ! unlike its prediction"
Row = Mapping[str, Any]


def text_of(found: Mapping[str, Any]) -> str:
    """A table: versions of formats in rows with the releases that write them, and readers in columns."""
    cells: Sequence[Row] = found["cells"]
    readers = list(dict.fromkeys(each["reader"] for each in cells))
    rows = list(dict.fromkeys((each["format"], each["version"], _writers(each)) for each in cells))
    marks = {(each["format"], each["version"], each["reader"]): _mark(each) for each in cells}
    names = [f"{format} {version}" for format, version, _ in rows]
    wide = max(map(len, names), default=0) + 2
    by = max((len(writers) for *_, writers in rows), default=0) + 2
    lines = ["format".ljust(wide) + "written by".ljust(by) + " ".join(each.rjust(5) for each in readers)]
    for name, (format, version, writers) in zip(names, rows, strict=True):
        line = " ".join(marks.get((format, version, each), "").rjust(5) for each in readers)
        lines.append(name.ljust(wide) + writers.ljust(by) + line)
    lines += ["", LEGEND]
    lines += [
        f"{each['format']} {each['version']}, {each['reader']}: {each['result']}, predicted {each['predicted']}"
        + (f": {each['detail']}" if each["detail"] else "")
        for each in cells
        if not each["as_predicted"]
    ]
    lines.append(f"{len(cells)} cells, {found['unlike']} unlike their predictions")
    return "\n".join(lines)


def page_of(found: Mapping[str, Any]) -> str:
    head = ("format", "version", "written by", "read by", "result", "predicted", "requirement", "why")
    rows = [
        tag(
            "tr",
            *(
                tag("td", str(each))
                for each in (
                    cell["format"], cell["version"], _writers(cell), cell["reader"], cell["result"], cell["predicted"],
                    cell["requirement"] or "", cell["detail"],
                )
            ),
        )
        for cell in found["cells"]
    ]  # fmt: skip
    table: Safe = tag("table", tag("thead", tag("tr", *(tag("th", each) for each in head))), tag("tbody", *rows))
    title = "What brokers persist, and who reads it"
    return page(title, tag("main", tag("h1", title), tag("pre", text_of(found)), table))


def _writers(cell: Row) -> str:
    by = cell["writers"]
    if setting := cell.get("setting"):
        return f"{by[0]} at {setting}"
    return "no default" if not by else by[0] if len(by) == 1 else f"{by[0]} to {by[-1]}"


def _mark(cell: Row) -> str:
    return MARKS[cell["result"]] + ("" if cell["as_predicted"] else "!")
