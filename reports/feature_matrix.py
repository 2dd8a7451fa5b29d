"""Renders what each KRaft controller makes of its neighbours' features, as text and as a page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kipcheck.reports.markup import Safe, tag
from kipcheck.reports.page import page
from kipcheck.reports.phrases import some

METADATA: Final = "metadata.version"
LEGEND: Final = (
    "rows: the leading controller; columns: a broker and another controller of that release. =: nothing is held back; "
    "a number: the highest metadata.version that is accepted; -: another feature is held back; R: such a broker is "
    "refused by a new cluster of the row; X: unlike the prediction; ?: jars are missing"
)
Cell = Mapping[str, Any]


def sign(cell: Cell) -> str:
    """What a cell shows."""
    if cell["differs"]:
        return "X"
    refused = "" if cell["registers"] else "R"
    if cell["formatted"] is None:
        return refused or "-"
    if cell["played"] is None:
        return "?"
    held: dict[str, int] = {}
    for each in cell["held"].values():
        held |= each
    return f"{held.get(METADATA, '-' if held else '=')}{refused}"


def counted(found: Mapping[str, Any]) -> str:
    cells = found["cells"]
    run = sum(each["played"] is not None for each in cells)
    differing = sum(each["differs"] for each in cells)
    refused = sum(not each["registers"] for each in cells)
    return (
        f"{some(len(cells), 'cell')}, {run} run with the released controllers, {differing} unlike the prediction; in "
        f"{refused} a broker of the neighbour is refused by a new cluster"
    )


def text(found: Mapping[str, Any]) -> str:
    rows, columns = _sides(found["cells"])
    at = {(each["controller"], each["neighbour"]): each for each in found["cells"]}
    width = max(len(each) for each in (*rows, *columns)) + 1
    lines = [f"{'':{width}}" + "".join(f"{each:>{width}}" for each in columns)]
    for row in rows:
        signs = (sign(at[row, column]) if (row, column) in at else "" for column in columns)
        lines.append(f"{row:{width}}" + "".join(f"{each:>{width}}" for each in signs))
    lines += ["", LEGEND, counted(found), *_details(found)]
    return "\n".join(lines) + "\n"


def _sides(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    return [*dict.fromkeys(each["controller"] for each in cells)], [*dict.fromkeys(each["neighbour"] for each in cells)]


def _details(found: Mapping[str, Any]) -> Iterator[str]:
    """Cells unlike their prediction, and controllers that were not run."""
    for each in found["cells"]:
        if each["differs"]:
            yield f"{each['controller']} with {each['neighbour']}: {each['played']}, predicted {each['predicted']}"
    for release, why in found["skipped"].items():
        yield f"{release} was not run: {why}"


def html(found: Mapping[str, Any]) -> str:
    rows, columns = _sides(found["cells"])
    at = {(each["controller"], each["neighbour"]): each for each in found["cells"]}
    head = tag("tr", tag("th", ""), (tag("th", each, scope="col") for each in columns))
    body = (tag("tr", tag("th", row, scope="row"), (_cell(at.get((row, each))) for each in columns)) for row in rows)
    return page(
        "kipcheck matrix: features",
        tag("header", tag("h1", "What each controller makes of its neighbours' features"), tag("p", counted(found))),
        tag("main", tag("table", tag("thead", head), tag("tbody", body)), tag("p", LEGEND, class_="hint"),
            (tag("p", each) for each in _details(found))),
    )  # fmt: skip


def _cell(cell: Cell | None) -> Safe:
    if cell is None:
        return tag("td", "")
    held = (
        f"{kind}: {', '.join(f'{name} up to {level}' for name, level in each.items()) or 'nothing held back'}"
        for kind, each in cell["held"].items()
    )
    return tag("td", sign(cell), title="; ".join(held) or "no level of metadata.version suits both releases")
