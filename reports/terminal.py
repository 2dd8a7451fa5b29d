"""The report for a terminal: at most 40 lines, with the gravest causes first and a command for everything else."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from kipcheck.conformance.core.values.untrusted_text import WATCHED, harmless, is_data, one_line
from kipcheck.reports.campaigns import brief, stands, stopped, troubles
from kipcheck.reports.phrases import named, named_once, some
from kipcheck.reports.styled import coloured
from kipcheck.reports.summary import KNOWN, RESULTS, WORDS, CauseOf, Summary, ways_to_differ
from kipcheck.reports.totals import about_exchanges, about_searches, grouped_skips, not_begun, played, seldom_judged

LINES: Final = 40
"""The most lines of the report."""
CAUSES: Final = 25
"""The most causes in it."""
UNJUDGED: Final = 20
"""The most invariants, or places of cases, that the line names for one reason."""
NOT_JUDGED: Final = "not judged: "
"""A line with it is not cut at the width of the terminal."""
TITLE: Final = 40
"""A title is not cut below this many characters; the page is left out instead."""
DEFAULT_FOLDER: Final = "kipcheck-out"
LONG: Final = 1000
"""Characters of a line that is not for a terminal."""


def render(found: Summary, width: int | None = None) -> str:
    """``width``: the columns of the terminal, which no line of a cause exceeds; None: lines are not cut."""
    head = [*_head(found), *_causes(found, width)]
    tail = [*_commands(found), _last(found)]
    notes = _fitted(list(_notes(found)), LINES - len(head) - len(tail), _details(found))
    lines = [*head, *(_cut(each, LONG if NOT_JUDGED in each else width or LONG) for each in notes), *tail]
    # Line feeds are escaped, so that no text of a target looks like the last line.
    return harmless("\n".join(map(one_line, lines))) + "\n"


def _head(found: Summary) -> Iterator[str]:
    new = [each for each in found.causes if each.new]
    targets = ", ".join(map(found.called, found.targets or found.options.targets))
    if not new:
        yield f"{targets}: {_without_failures(found)}"
        return
    grades = [failure.grade for each in new for failure in each.new]
    words = (("MUST", "failure"), ("SHOULD", "warning"), ("INFO", "note"))
    what = ", ".join(some(grades.count(grade), word) for grade, word in words if grade in grades)
    if any(each.cause is not None for each in new):  # a run that was cut short has none
        what += f" of {some(len(new), 'cause')}"
    if {*grades} == {"INFO"}:
        yield f"{targets}: no unexpected failure; {what}"
    else:
        yield f"{targets}: {what}, the gravest first"


def _without_failures(found: Summary) -> str:
    if not found.ledger.cases and not found.ledger.campaigns:
        return "nothing was tested"
    return "no unexpected failure" + (", but too little was tested" if found.ledger.inconclusive else "")


@dataclass(frozen=True, slots=True)
class _Row:
    """The line of a cause."""

    effect: str
    cases: str
    id: str
    title: str
    page: str


def _causes(found: Summary, width: int | None) -> Iterator[str]:
    new = [each for each in found.causes if each.new]
    several = len({each.failures[0].target for each in new}) > 1
    rows = [_row(each, several) for each in new[:CAUSES]]
    if not rows:
        return
    effects, cases = max(len(each.effect) for each in rows), max(len(each.cases) for each in rows)
    for each in rows:
        yield _line(f"{each.effect:<{effects}} {each.cases:>{cases}} {each.id}", each, width)
    if len(new) > CAUSES:
        left = new[CAUSES:]
        more = f"and {some(len(left), 'cause')} more, of {some(sum(len(each.new) for each in left), 'failure')}"
        yield f"{more}: {_details(found)}"


def _row(each: CauseOf, several: bool) -> _Row:
    """``several``: whether failures of several targets are listed."""
    first, cause = each.new[0], each.cause
    title = cause.title if cause is not None else first.sentence
    return _Row(
        # The effect is that of a violation, and a NOTE is none.
        effect=WORDS[first.grade] if cause is None or each.kind == "NOTE" else cause.severity,
        cases=f"{cause.cases if cause is not None else first.cases:,}",
        id=cause.least if cause is not None and cause.least in {line.id for line in each.new} else first.id,
        title=f"{first.target}: {title}" if several else title,
        page=_short(cause.page) if cause is not None and cause.page else "",
    )


def _short(page: str) -> str:
    """``findings/kafka-python-endless-varint``; an address as it is."""
    path = PurePosixPath(page)
    return page if "://" in page else f"{path.parent.name}/{path.stem}"


def _line(head: str, row: _Row, width: int | None) -> str:
    page = f"  {row.page}" if row.page else ""
    if width is None:
        return f"{head}  {row.title}{page}"
    room = width - len(head) - 2
    if room - len(page) < min(TITLE, len(row.title)):
        page = ""  # ``show`` has it
    return f"{head}  {_cut(row.title, room - len(page))}{page}"


# ---- totals, and what else a reader should know


def _notes(found: Summary) -> Iterator[tuple[str, list[str]]]:
    """Lines in the order of their weight, each kind with its name."""
    searches = [] if found.totals.least is None else [about_searches(found.totals.least)]
    yield "totals", [*_totals(found), *_not_judged(found), *searches]
    exchanges = found.totals.exchanges
    yield "exchanges", [] if exchanges is None else [f"{name}: {text}" for name, text in about_exchanges(exchanges)]
    yield "releases played", [played(target, *which) for target, which in found.totals.played.items()]
    yield "errors of targets", [named_once(each.target, each.why) for each in found.ledger.troubles]
    yield "parts undecided", [f"{target}: {check}: {what}" for target, check, what in found.open_ends]
    yield "stale entries", [f"stale: {each.entry}: {each.why}" for each in found.stale]
    yield (
        "flaky failures",
        [
            f"flaky: {each.target}: {each.check} on {named(each.subject, each.version)}: {each.why}"
            for each in found.flaky
        ],
    )
    yield "campaigns", list(_campaigns(found))
    yield "differences between targets", list(_differences(found))
    yield "skipped checks", list(_skips(found))
    yield "seldom judged invariants", list(seldom_judged(found.totals.judged))
    yield "coverage", found.coverage_lines


def _totals(found: Summary) -> Iterator[str]:
    for target in found.targets:
        cells = [by[target] for by in found.table.values() if target in by]
        if cells:
            counts = {result: sum(cell.counts[result] for cell in cells) for result in RESULTS}
            shown = ", ".join(f"{number:,} {result}" for result, number in counts.items() if number)
            known = sum(cell.word == KNOWN for cell in cells)
            more = f"; {some(known, 'check')} as expected" if known else ""
            yield f"{target}: {some(sum(counts.values()), 'case')} in {some(len(cells), 'check')}: {shown}{more}"


def _campaigns(found: Summary) -> Iterator[str]:
    for each in found.ledger.campaigns:
        ended = f"; stopped by: {stopped(each)}" if stopped(each) else ""
        yield f"campaign {each.id}: {brief(each)}{ended}"
        yield from troubles(each)
    if found.ledger.campaigns:
        yield f"failures: {stands(found)}"


def _differences(found: Summary) -> Iterator[str]:
    for check, cells, rows in ways_to_differ(found.ledger.differences):
        more = f" and {len(rows) - 1} more" * (len(rows) > 1)
        cases = some(sum(int(row.cases) for row in rows), "case")
        targets = dict.fromkeys(name for row in found.ledger.differences for name in row.cells)
        shown = ", ".join(f"{name} {cell}" for name, cell in zip(targets, cells, strict=True))
        yield f"differ: {check} on {named(rows[0].subject, rows[0].versions)}{more}, {cases}: {shown}"


def _skips(found: Summary) -> Iterator[str]:
    for target, checks, why in grouped_skips(found.ledger.skips):
        yield f"{target}: {checks[0] if len(checks) == 1 else some(len(checks), 'check')} skipped: {why}"
    yield from not_begun(found.ledger.not_begun)


def _not_judged(found: Summary) -> Iterator[str]:
    """One line, whatever the reasons are."""
    every = found.totals.not_judged
    if every:
        rest = f": {_details(found)}" if any(len(each.which) > UNJUDGED for each in every) else ""
        yield "; ".join(each.text(UNJUDGED) for each in every) + rest


def _fitted(notes: Sequence[tuple[str, list[str]]], room: int, details: str) -> Iterator[str]:
    """The lines of all kinds; where they do not fit, the first lines of each kind, and a line that counts the rest."""
    kinds = [(name, lines) for name, lines in notes if lines]
    if sum(len(lines) for _, lines in kinds) <= room:
        yield from (line for _, lines in kinds for line in lines)
        return
    shown = _shares([len(lines) for _, lines in kinds], room - 1)
    for (_, lines), number in zip(kinds, shown, strict=True):
        yield from lines[:number]
    left = [
        f"{len(lines) - number} of {len(lines)} {name}"
        for (name, lines), number in zip(kinds, shown, strict=True)
        if number < len(lines)
    ]
    yield f"not shown: {', '.join(left)}: {details}"


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How many lines of each kind are shown: one of each, in their order, then more of the first ones."""
    shown = [0 for _ in sizes]
    for most in (1, max(sizes, default=0)):
        for number, size in enumerate(sizes):
            more = max(0, min(min(size, most) - shown[number], room - sum(shown)))
            shown[number] += more
    return shown


# ---- commands


def _commands(found: Summary) -> Iterator[str]:
    """Up to three commands, if there is a failure."""
    new = [each for each in found.causes if each.new]
    if not new:
        return
    id = _row(new[0], several=False).id
    target = found.ledger.opened(new[0].new[0].target)
    trust = "" if is_data(target) else " --trust"
    replay = (f"kipcheck replay {id}{_out(found)}{trust}", "runs the case again")
    rows = (
        (f"kipcheck show {id}{_out(found)}", "its requirement, steps and bytes"),
        *([] if target.startswith(WATCHED) else [replay]),
        (_details(found), "all failures in this way"),
    )
    wide = max(len(command) for command, _ in rows)
    yield from (f"  {command:<{wide}}  {what}" for command, what in rows)


def _details(found: Summary) -> str:
    folder = str(found.ledger.path.parent)
    return shlex.join(["kipcheck", "report", *([] if folder == DEFAULT_FOLDER else [folder]), "--details"])


def _out(found: Summary) -> str:
    folder = str(found.ledger.path.parent)
    return "" if folder == DEFAULT_FOLDER else f" --out {shlex.quote(folder)}"


def _last(found: Summary) -> str:
    page = found.ledger.path.with_name("report.html")
    return f"{found.verdict}; {page if page.is_file() else found.ledger.path}"


def _cut(text: str, size: int) -> str:
    """The first line of a text, cut to the size."""
    first = next(iter(text.splitlines()), "")
    return first if len(first) <= size else f"{first[: size - 4]} ..."


def paint(text: str) -> str:
    """The report with colours for a terminal: effects and the verdict. ``text``: from ``render``."""
    return "\n".join(map(_painted, text.split("\n")))


GRAVE: Final = ("double processing", "stuck group", "crash or hang", "FAIL", "CAUSE")
LESS: Final = ("wrong data", "refused peer", "WARN", "INCOMPLETE", "stale:", "flaky:")
LEAST: Final = ("trivia", "NOTE", "  kipcheck ")


def _painted(line: str) -> str:
    for words, style in ((GRAVE, "red"), (LESS, "yellow"), (LEAST, "dim")):
        for word in words:
            if line.startswith(word):
                return coloured(word, style) + line[len(word) :]
    if line.startswith("complete: "):
        return coloured(line, "green" if "exit 0" in line else "red")
    return line
