"""A matrix for a terminal, and as Markdown for the summary of a CI job."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from kipcheck.conformance.core.foreign import harmless, one_line
from kipcheck.conformance.core.ledger import Json
from kipcheck.reports.markdown import fenced, plain
from kipcheck.reports.matrix import BY, DRAFT, Matrix, Table
from kipcheck.reports.phrases import some

WIDTH: Final = 110
SIGNS: Final = (
    "2: at rest after two rebalances at most; X: breaks; R: refused by the configuration; !: unlike its prediction; "
    "?: skipped; .: no such cell"
)
MOST: Final = 60
"""The most cells that are listed one by one."""
STARS: Final = "*: needs the back-ported fix of KAFKA-6054, which 0.10.1 never got"
MARKS: Final = {"ok": "✅ ok", "breaks": "❌ breaks", "refused": "⛔ refused"}
Sign: TypeAlias = Callable[[str, str], str]


def text(found: Matrix) -> str:
    lines: list[str] = []
    if found.of_the_kip:
        rows, columns = found.sides_of(found.of_the_kip)
        names = tuple(DRAFT.get(each, each) for each in columns)
        grid = _grid(rows, names, _in_the_kip(found, columns))
        lines += ["KIP-268's own table (its 1.2 is 2.0)", *grid, f"  {STARS}", ""]
    for table in found.tables:
        lines += [*textwrap.wrap(f"{table.scenario}: {table.about}", WIDTH), *_table(found, table), ""]
    lines += [*textwrap.wrap(SIGNS, WIDTH, initial_indent="  ", subsequent_indent="  "), ""]
    lines += _cells("UNLIKE", found.differing)
    for id, cells in found.broken.items():
        lines += _broken(found, id, cells)
    for each in found.found["stale"]:
        lines += _wrapped("stale", f"{each['from']} to {each['to']}, {each['scenario']}: {each['why']}")
    at = "" if found.page is None else f"; {found.page}"
    lines += ["", found.counted, found.predicted, f"{found.verdict}{at}"]
    return harmless("\n".join(map(one_line, lines))) + "\n"


def sign(found: Matrix, scenario: str, old: str, new: str) -> str:
    """Of a cell, three letters at most."""
    cell = found.cell(scenario, old, new)
    if cell is None:
        return "." if found.skipped(scenario, old, new) is None else "?"
    rounds = str(cell["rounds"] or "")
    text = {"ok": rounds, "breaks": f"X{rounds}", "refused": "R"}[cell["verdict"]]
    return f"{text}!" if cell["differs"] else text


def _in_the_kip(found: Matrix, columns: Sequence[str]) -> Sign:
    called = {DRAFT.get(each, each): each for each in columns}

    def content(old: str, new: str) -> str:
        cell = found.of_the_kip.get((old, called[new]))
        if cell is None:
            return "."
        return sign(found, cell["scenario"], old, called[new]) + ("*" if cell["needs_fix"] else "")

    return content


def _table(found: Matrix, table: Table) -> list[str]:
    return _grid(table.rows, table.columns, lambda old, new: sign(found, table.scenario, old, new))


def _grid(rows: Sequence[str], columns: Sequence[str], content: Sign) -> list[str]:
    """With vertical names of columns, so that thirty of them fit."""
    cells = {old: [content(old, new) for new in columns] for old in rows}
    apart = 1 + max((len(each) for row in cells.values() for each in row), default=1)
    first = max(map(len, rows), default=0) + 4
    height = max(map(len, columns), default=0)
    lines = []
    for level in range(height):
        letters = (name.rjust(height)[level].rjust(apart) for name in columns)
        lines.append((" " * first + "".join(letters)).rstrip())
    lines += [f"  {old:<{first - 2}}" + "".join(each.rjust(apart) for each in row) for old, row in cells.items()]
    return lines


def _broken(found: Matrix, id: str, cells: Sequence[Json]) -> Iterator[str]:
    about = found.found["requirements"].get(id, {})
    yield from _wrapped(id or "?", f"{some(len(cells), 'cell')}: {about.get('clause', '')}: {about.get('text', '')}")
    first = cells[0]
    yield from _wrapped("such as", f"{first['from']} to {first['to']}, {first['scenario']}: {first['reason']}")
    yield f"  {'again':<9} {first['play']}"


def _cells(word: str, cells: Sequence[Json]) -> Iterator[str]:
    for each in cells[:MOST]:
        yield f"{word} {each['from']} to {each['to']}, {each['scenario']}"
        yield from _wrapped("found", f"{each['verdict']} {each['requirement'] or ''} {each['reason'] or ''}")
        yield from _wrapped("predicted", f"{each['predicted']}, by {BY[each['rule']]}")
        yield f"  {'again':<9} {each['play']}"
    if len(cells) > MOST:
        yield f"{word}: {len(cells) - MOST} more are in matrix.json"


def _wrapped(label: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 12, break_on_hyphens=False) or [""]
    return [f"  {label:<9} {lines[0]}", *(f"  {'':<9} {line}" for line in lines[1:])]


def markdown(found: Matrix) -> str:
    mark = "✅" if found.exit == 0 else "❌" if found.exit == 1 else "❔"
    parts = [
        f"## {mark} kipcheck matrix: {plain(found.verdict)}\n",
        f"{plain(found.counted)}. {plain(found.predicted)}.\n",
    ]
    if found.of_the_kip:
        parts += ["### KIP-268's own table\n", _kip(found), f"{plain(STARS)}\n"]
    if found.differing:
        parts.append("### Unlike what was predicted\n")
        parts.append("\n".join(map(_differing, found.differing[:MOST])) + "\n")
    for table in found.tables:
        grid = fenced([*_table(found, table), "", *textwrap.wrap(SIGNS, WIDTH)])
        title = plain(f"{table.scenario}: {table.about}")
        parts.append(f"<details><summary>{title}</summary>\n\n{grid}\n\n</details>\n")
    return "\n".join(parts)


def _differing(cell: Json) -> str:
    name = f"{cell['from']} to {cell['to']}, {cell['scenario']}"
    line = f"{name}: {cell['verdict']}, predicted {cell['predicted']}. {cell['reason'] or ''}"
    return f"* {plain(line)}"


def _kip(found: Matrix) -> str:
    cells = found.of_the_kip
    rows, columns = found.sides_of(cells)
    names = [plain(DRAFT.get(each, each)) for each in columns]
    lines = [f"| from \\ to | {' | '.join(names)} |", "|---" * (len(columns) + 1) + "|"]
    for old in rows:
        row = (_marked(cells[old, new]) if (old, new) in cells else "" for new in columns)
        lines.append(f"| {plain(old)} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _marked(cell: Json) -> str:
    rounds = f" {cell['rounds']}" if cell["rounds"] else ""
    return f"{MARKS[cell['verdict']]}{rounds}{' ★' if cell['needs_fix'] else ''}{' ≠' if cell['differs'] else ''}"
