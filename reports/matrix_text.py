"""A matrix for a terminal, and as Markdown for the summary of a CI job."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from kipcheck.conformance.core.ledger import Json
from kipcheck.conformance.core.values.untrusted_text import harmless, one_line
from kipcheck.reports import matrix
from kipcheck.reports.markdown import fenced, plain
from kipcheck.reports.phrases import some

WIDTH: Final = 110
SIGNS: Final = (
    "2: at rest after two rebalances at most; X: breaks; R: refused by the configuration; !: unlike its prediction; "
    "?: skipped; .: no such cell"
)
WORDS: Final = (
    "ok 2: works, at rest after two rebalances at most; breaks: a requirement is violated, or a member dies; "
    "refused: a configuration error; !: unlike its prediction"
)
ADVICE: Final = {"bounce": "1", "two-bounce": "2", matrix.CONDITIONAL: "c", matrix.BROKEN: "X", matrix.UNKNOWN: "?"}
"""By the way that works, or by the result."""
ADVICE_MEANS: Final = (
    "1, 2: one rolling bounce, or two with upgrade.from, work, also if a member fails meanwhile; c: works under a "
    "condition, such as a stop of all members; X: no way that was run works; ?: not run"
)
MOST: Final = 60
"""The most cells that are listed one by one."""
STARS: Final = "*: needs the back-ported fix of KAFKA-6054, which 0.10.1 never got"
MARKS: Final = {"ok": "✅ ok", "breaks": "❌ breaks", "refused": "⛔ refused"}
ANSWERED: Final = {matrix.WORKS: "✅", matrix.CONDITIONAL: "⚠️", matrix.BROKEN: "❌", matrix.UNKNOWN: "❔"}
Sign: TypeAlias = Callable[[str, str], str]


def text(found: matrix.Matrix) -> str:
    lines = [*_answers(found), ""]
    lines += [*_small_table(found), ""] if found.is_small else _tables(found)
    lines += _cells("UNLIKE", found.differing)
    for id, cells in found.broken.items():
        lines += _broken(found, id, cells)
    for each in found.found["stale"]:
        lines += _wrapped("stale", f"{each['from']} to {each['to']}, {each['scenario']}: {each['why']}")
    at = "" if found.page is None else f"; {found.page}"
    lines += ["", *textwrap.wrap(matrix.NOT_COVERED, WIDTH), found.counted, found.predicted]
    lines += textwrap.wrap(matrix.EXIT_MEANS, WIDTH) if found.exit == 0 and found.result != matrix.WORKS else []
    lines.append(f"{found.verdict}{at}")
    return harmless("\n".join(map(one_line, lines))) + "\n"


def _answers(found: matrix.Matrix) -> Iterator[str]:
    """The answers of few pairs in words, those of many as a table."""
    yield from textwrap.wrap(found.head, WIDTH)
    if not found.is_small:
        signs = {(each["from"], each["to"]): ADVICE[_advised(each)] for each in found.answers}
        rows, columns = found.sides_of(signs)
        yield from _grid(rows, columns, lambda old, new: signs.get((old, new), "."))
        yield from textwrap.wrap(ADVICE_MEANS, WIDTH, initial_indent="  ", subsequent_indent="  ")
        return
    for each in found.answers:
        if len(found.answers) > 1:
            yield from ("", *textwrap.wrap(each["text"], WIDTH))
        for sentence in each["more"]:
            yield from _wrapped(matrix.IN_WORDS[sentence["result"]], sentence["text"])
        if each["configuration"]:
            yield from ("", *(f"  {line}" for line in each["configuration"]))


def _advised(answer: Json) -> str:
    found: str = answer["way"] if answer["result"] == matrix.WORKS and answer["way"] else answer["result"]
    return found


def _small_table(found: matrix.Matrix) -> Iterator[str]:
    """A row for each scenario, a column for each pair."""
    if not found.pairs:
        return
    scenarios = found.found["scenarios"]
    first = 2 + max((len(each["name"]) for each in scenarios), default=0)
    wide = 2 + max(len("breaks 10!"), *(len(f"from {name}") for name in found.releases))
    for names in (["from " + old for old, _ in found.pairs], ["to " + new for _, new in found.pairs]):
        yield "  " + " " * first + "".join(f"{name:<{wide}}" for name in names).rstrip()
    for each in scenarios:
        cells = (found.in_words(each["name"], *pair) for pair in found.pairs)
        yield f"  {each['name']:<{first}}" + "".join(f"{cell:<{wide}}" for cell in cells).rstrip()
    yield ""
    yield from textwrap.wrap(WORDS, WIDTH, initial_indent="  ", subsequent_indent="  ")
    for each in scenarios:
        yield from textwrap.wrap(
            f"{each['name']}: {each['about']}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def _tables(found: matrix.Matrix) -> Iterator[str]:
    if found.of_the_kip:
        rows, columns = found.sides_of(found.of_the_kip)
        names = tuple(matrix.DRAFT.get(each, each) for each in columns)
        grid = _grid(rows, names, _in_the_kip(found, columns))
        yield from ("KIP-268's own table (its 1.2 is 2.0)", *grid, f"  {STARS}", "")
    for table in found.tables:
        yield from (*textwrap.wrap(f"{table.scenario}: {table.about}", WIDTH), *_table(found, table), "")
    yield from (*textwrap.wrap(SIGNS, WIDTH, initial_indent="  ", subsequent_indent="  "), "")


def sign(found: matrix.Matrix, scenario: str, old: str, new: str) -> str:
    """Of a cell, three letters at most."""
    cell = found.cell(scenario, old, new)
    if cell is None:
        return "." if found.skipped(scenario, old, new) is None else "?"
    rounds = str(cell["rounds"] or "")
    text = {"ok": rounds, "breaks": f"X{rounds}", "refused": "R"}[cell["verdict"]]
    return f"{text}!" if cell["differs"] else text


def _in_the_kip(found: matrix.Matrix, columns: Sequence[str]) -> Sign:
    called = {matrix.DRAFT.get(each, each): each for each in columns}

    def content(old: str, new: str) -> str:
        cell = found.of_the_kip.get((old, called[new]))
        if cell is None:
            return "."
        return sign(found, cell["scenario"], old, called[new]) + ("*" if cell["needs_fix"] else "")

    return content


def _table(found: matrix.Matrix, table: matrix.Table) -> list[str]:
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


def _broken(found: matrix.Matrix, id: str, cells: Sequence[Json]) -> Iterator[str]:
    about = found.found["requirements"].get(id, {})
    yield from _wrapped(id or "?", f"{some(len(cells), 'cell')}: {about.get('clause', '')}: {about.get('text', '')}")
    first = cells[0]
    yield from _wrapped("such as", f"{first['from']} to {first['to']}, {first['scenario']}: {first['reason']}")
    yield f"  {'again':<9} {first['play']}"


def _cells(word: str, cells: Sequence[Json]) -> Iterator[str]:
    for each in cells[:MOST]:
        yield f"{word} {each['from']} to {each['to']}, {each['scenario']}"
        yield from _wrapped("found", f"{each['verdict']} {each['requirement'] or ''} {each['reason'] or ''}")
        yield from _wrapped("predicted", f"{each['predicted']}, by {matrix.BY[each['rule']]}")
        yield f"  {'again':<9} {each['play']}"
    if len(cells) > MOST:
        yield f"{word}: {len(cells) - MOST} more are in matrix.json"


def _wrapped(label: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 12, break_on_hyphens=False) or [""]
    return [f"  {label:<9} {lines[0]}", *(f"  {'':<9} {line}" for line in lines[1:])]


def markdown(found: matrix.Matrix) -> str:
    parts = [f"## {ANSWERED[found.result]} kipcheck matrix: {plain(found.head)}\n", *_answers_in_markdown(found)]
    parts += [f"{plain(matrix.NOT_COVERED)} {plain(matrix.EXIT_MEANS)}\n"]
    parts += [f"<sub>{plain(f'{found.verdict}. {found.counted}. {found.predicted}.')}</sub>\n"]
    if found.of_the_kip:
        parts += ["### KIP-268's own table\n", _kip(found), f"{plain(STARS)}\n"]
    if found.differing:
        parts.append("### Unlike what was predicted\n")
        parts.append("\n".join(map(_differing, found.differing[:MOST])) + "\n")
    if found.is_small:
        return "\n".join((*parts, fenced([*_small_table(found)])))
    for table in found.tables:
        grid = fenced([*_table(found, table), "", *textwrap.wrap(SIGNS, WIDTH)])
        title = plain(f"{table.scenario}: {table.about}")
        parts.append(f"<details><summary>{title}</summary>\n\n{grid}\n\n</details>\n")
    return "\n".join(parts)


def _answers_in_markdown(found: matrix.Matrix) -> Iterator[str]:
    if not found.is_small:
        yield fenced([*_answers(found)])
        return
    for each in found.answers:
        if len(found.answers) > 1:
            yield f"### {ANSWERED[each['result']]} {plain(each['text'])}\n"
        yield "".join(f"* {ANSWERED[more['result']]} {plain(more['text'])}\n" for more in each["more"])
        if each["configuration"]:
            yield fenced(each["configuration"]) + "\n"


def _differing(cell: Json) -> str:
    name = f"{cell['from']} to {cell['to']}, {cell['scenario']}"
    line = f"{name}: {cell['verdict']}, predicted {cell['predicted']}. {cell['reason'] or ''}"
    return f"* {plain(line)}"


def _kip(found: matrix.Matrix) -> str:
    cells = found.of_the_kip
    rows, columns = found.sides_of(cells)
    names = [plain(matrix.DRAFT.get(each, each)) for each in columns]
    lines = [f"| from \\ to | {' | '.join(names)} |", "|---" * (len(columns) + 1) + "|"]
    for old in rows:
        row = (_marked(cells[old, new]) if (old, new) in cells else "" for new in columns)
        lines.append(f"| {plain(old)} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _marked(cell: Json) -> str:
    rounds = f" {cell['rounds']}" if cell["rounds"] else ""
    return f"{MARKS[cell['verdict']]}{rounds}{' ★' if cell['needs_fix'] else ''}{' ≠' if cell['differs'] else ''}"
