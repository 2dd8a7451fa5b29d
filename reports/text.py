"""The report with one block for each distinct failure, and nothing about cases that passed."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kipcheck.conformance.core import ledger as records
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.untrusted_text import clean, harmless, one_line
from kipcheck.reports import cell_table, phrases
from kipcheck.reports.campaigns import brief, first, stands, stopped, troubles
from kipcheck.reports.scripts import played
from kipcheck.reports.summary import RESULTS, WORDS, Summary, ways_to_differ
from kipcheck.reports.totals import NO_ROLE, grouped_skips, held_back, not_begun

WIDTH = 110
DIFFERENCES = 40
"""The most rows of the table of differences."""
AROUND = 6
"""The number of rows on each side of the guilty bytes of a long message."""


def exchanges(steps: Sequence[records.SequenceStep]) -> Iterator[str]:
    """The lines of a sequence."""
    for place, (number, step) in enumerate(phrases.numbered(steps)):
        mark = ">" if step.guilty else " "
        answer = f"  <- {step.answer}" if step.answer else ""
        to = "" if step.sender == step.receiver else f" -> {step.receiver}"
        yield from _wrapped(
            "" if place else "events", f"{mark} {number:<3}{step.sender}{to}: {step.says}{answer}", most=None
        )


def scripts(ledger: records.Ledger) -> Iterator[str]:
    """The conversations whose exchanges are in the ledger, each without line feeds, with its verdicts."""
    for script, result, by in played(ledger):
        yield one_line(f"{result} {script.target}  {script.subject}  case {script.case}")
        yield from map(one_line, (*_wrapped("script", script.script), *exchanges(script.steps)))
        verdicts = [*(f"{id} FAIL: {why}" for id, why in script.broken.items())]
        verdicts += [f"{word}: {', '.join(ids)}" for word, ids in by.items() if word != "FAIL"]
        for place, verdict in enumerate(verdicts):
            yield from map(one_line, _wrapped("" if place else "verdicts", verdict, most=None))
        yield ""


def render(found: Summary) -> str:
    lines: list[str] = []
    written: set[str] = set()
    known = [each for each in found.failures if each.known]
    for each in found.causes:
        if each.new and each.cause is not None:
            lines += [*cause_lines(each.cause), ""]
        for failure in each.new:
            lines += [*block(failure, written), ""]
    lines += _known(known)
    lines += scripts(found.ledger)
    lines += _table(found)
    lines += _differences(found)
    lines += _lists(found)
    lines += _skips(found)
    for trouble in found.ledger.troubles:
        lines += _trouble(trouble)
    lines += [f"{target}: {check}: {what}" for target, check, what in found.open_ends]
    lines += _played(found)
    lines += found.coverage_lines
    lines += _campaigns(found)
    lines += _totals(found)
    page = found.ledger.path.with_name("report.html")
    lines.append(f"{found.verdict}; {page if page.is_file() else found.ledger.path}")
    # Line feeds are escaped, so that no text of a target looks like the last line.
    return harmless("\n".join(map(one_line, lines))) + "\n"


def cause_lines(cause: records.Cause) -> Iterator[str]:
    """The lines above the failures of a cause, each without line feeds."""
    yield one_line(f"CAUSE {cause.title}")
    for name, text in phrases.about_cause(cause):
        yield from map(one_line, _wrapped(name, text))


def block(failure: records.Failure, written: set[str]) -> Iterator[str]:
    """The lines of a failure, each without line feeds. ``written``: the requirements whose text is in the report
    already.
    """
    return map(one_line, _block(failure, written))


def _block(failure: records.Failure, written: set[str]) -> Iterator[str]:
    word = WORDS[failure.grade]
    yield f"{word} {failure.id}  {titled(failure.target, failure.version)}  {failure.check}  ({failure.grade})"
    yield from _wrapped("broken", failure.sentence)
    for each in failure.requirements:
        text = f": {each.text}" if each.id not in written else " (text above)"
        written.add(each.id)
        yield from _wrapped(each.id, f"{each.clause}{text}")
    yield from _wrapped("what", failure.why)
    if failure.expected:
        yield from _wrapped("expected", failure.expected)
        yield from _wrapped("observed", failure.observed)
    is_sequence = any(isinstance(each, records.SequenceExhibit) for each in failure.exhibits)
    for number, step in enumerate(failure.steps if not is_sequence else ()):
        mark = ">" if number == failure.guilty_step and len(failure.steps) > 1 else " "
        what, given = phrases.operation(step)
        yield from _wrapped(f"step {number + 1} {mark}".rstrip(), f"{what}: {given}")
    for exhibit in failure.exhibits:
        yield from _exhibit(exhibit)
    found_at = f"; first found in {first(failure)}" if first(failure) else ""
    about = f"{phrases.where(failure)}{found_at}{phrases.remarks(failure)}"
    yield from _wrapped("found", f"{phrases.some(failure.cases, 'case')}: {about}")
    if phrases.expected(failure):
        yield from _wrapped("listed", phrases.expected(failure))
    for follower in failure.followed_by or ():
        yield from _wrapped("followed", phrases.followed(follower))
    if failure.fix:
        yield from _wrapped("fix", failure.fix)
    if failure.tags:
        yield from _wrapped("tags", ", ".join(failure.tags))
    if phrases.played_again(failure):
        yield f"  {'vary':<9} {phrases.played_again(failure)}"
    yield f"  {'again':<9} {failure.reproduce}"
    if phrases.leaves_events_out(failure):
        yield f"  {'all':<9} {failure.reproduce} --trace"


def _trouble(line: records.Trouble) -> Iterator[str]:
    """With the stderr of a crashed target below, marked so that it does not look like a line of the report."""
    first, *more = str(line.why).splitlines() or [""]
    yield phrases.named_once(line.target, first)
    yield from (f"  | {each}" for each in more)


def _wrapped(label: str, text: str, most: int | None = 6) -> list[str]:
    """``most``: lines; longer texts are cut off. None: as many as the text needs."""
    room = WIDTH - 12
    lines = textwrap.wrap(text, room, break_on_hyphens=False, max_lines=most, placeholder=" ...") or [""]
    return [f"  {label:<9} {lines[0]}", *(f"  {'':<9} {line}" for line in lines[1:])]


def _known(failures: Sequence[records.Failure]) -> Iterator[str]:
    """One or two lines for each: the other forms of the report show them in full."""
    if not failures:
        return
    yield "known deviations"
    for each in failures:
        head = f"{each.id}  {each.target}  {each.check}"
        yield from (
            f"  {line}"
            for line in textwrap.wrap(f"{head}: {phrases.reason(each.known) if each.known else ''}", WIDTH - 2)[:2]
        )
    yield ""


def _lists(found: Summary) -> Iterator[str]:
    """Stale entries of lists of known deviations, and flaky failures."""
    for each in found.stale:
        yield f"stale: {each.entry}: {each.why}"
    for flaky in found.flaky:
        what = f"{flaky.target}: {flaky.check} on {phrases.named(flaky.subject, flaky.version)}"
        listed = f" ({phrases.reason(flaky)})" if flaky.entry else ""
        yield f"flaky: {what}: {flaky.why}; alone it {flaky.alone}{listed}"


def _skips(found: Summary) -> Iterator[str]:
    """Checks that were skipped for the same reason, together: a number of those of other roles."""
    for target, checks, why in grouped_skips(found.ledger.skips):
        shown = phrases.some(len(checks), "check") if why.startswith(NO_ROLE) else ", ".join(checks)
        yield from textwrap.wrap(f"{target}: {shown} skipped: {why}", WIDTH, subsequent_indent="  ")
    yield from not_begun(found.ledger.not_begun)
    for line in found.ledger.held_back:
        if line.result == "SKIP":
            yield f"{line.target}: {line.check}: {held_back(line)}, a known deviation"


def _exhibit(exhibit: records.Exhibit) -> Iterator[str]:
    if isinstance(exhibit, records.BytesExhibit):
        yield from _bytes(exhibit.rows)
    elif isinstance(exhibit, records.TableExhibit):
        cells = [(">" if row.guilty else " ", *map(str, row.cells)) for row in exhibit.rows]
        yield from _columns("table", [("", *exhibit.columns), *(tuple(_cut(c, 34) for c in row) for row in cells)])
    elif isinstance(exhibit, records.SequenceExhibit):
        yield from exchanges(exhibit.steps)


def _bytes(rows: Sequence[records.ByteRow]) -> Iterator[str]:
    if not rows:
        return
    low, high = around(rows)
    cells = [
        (
            ">" if row.guilty else " ",
            str(row.offset),
            _cut(row.bytes, 34),
            _cut(row.path, 40),
            _cut(row.type, 22),
            _cut(row.value, 40),
        )
        for row in rows[low : high + 1]
    ]
    first, *rest = _columns("bytes", [("", "at", "bytes", "field", "type", "value"), *cells], right=(1,))
    if low > 0:
        yield f"  {'':<9}   ({low} fields before)"
    yield first
    yield from rest
    if len(rows) > high + 1:
        yield f"  {'':<9}   ({len(rows) - high - 1} fields after)"


def around(rows: Sequence[records.ByteRow]) -> tuple[int, int]:
    """The first and last of the rows near the guilty ones."""
    guilty = [index for index, row in enumerate(rows) if row.guilty]
    low, high = (min(guilty) - AROUND, max(guilty) + AROUND) if guilty else (0, 2 * AROUND)
    return max(0, low), high


def _columns(label: str, rows: Sequence[tuple[str, ...]], right: Iterable[int] = ()) -> Iterator[str]:
    for number, line in enumerate(_aligned(rows, right)):
        yield f"  {'' if number else label:<9} {line}"


def _aligned(rows: Sequence[tuple[str, ...]], right: Iterable[int]) -> Iterator[str]:
    rows = [tuple(clean(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield " ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()


def _cut(text: str, size: int) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= size else text[: size - 3] + "..."


def _table(found: Summary) -> Iterator[str]:
    for target in found.targets:
        rows = [
            (f" {check}", *(f" {by[target].counts[result]}" for result in RESULTS))
            for check, by in found.table.items()
            if target in by
        ]
        if rows:
            yield target
            head = (" check", *(f" {each}" for each in RESULTS))
            yield from (f" {line}" for line in _aligned([head, *rows], range(1, len(head))))


def _played(found: Summary) -> Iterator[str]:
    """How many different events each request met, of how many, in each phase and kind of group."""
    for each in found.ledger.cells:
        yield f"{each.target}: what happened to requests in {each.check}"
        rows = [(name, *(f" {cell}" for cell in cells)) for name, *cells in cell_table.table(each)]
        yield from (f"  {line}" for line in _aligned(rows, range(1, len(rows[0]))))


def _totals(found: Summary) -> Iterator[str]:
    for name, text in found.totals.lines:
        lines = textwrap.wrap(text, WIDTH - 10, break_on_hyphens=False, break_long_words=False)
        yield from (f"{name if not number else '':<9} {line}" for number, line in enumerate(lines))


def _campaigns(found: Summary) -> Iterator[str]:
    for each in found.ledger.campaigns:
        ended = f"; stopped by: {stopped(each)}" if stopped(each) else ""
        yield from textwrap.wrap(f"campaign {each.id}: {brief(each)}{ended}", WIDTH, subsequent_indent="  ")
        yield from (f"  {line}" for line in troubles(each))
    if found.ledger.campaigns:
        yield f"failures: {stands(found)}"


def _differences(found: Summary) -> Iterator[str]:
    """Each way to differ: different results, or passed by all with different answers."""
    rows = found.ledger.differences
    if not rows:
        return
    targets = list(dict.fromkeys(name for row in rows for name in row.cells))
    yield "where targets differ"
    shown = [(" check", " subject", " cases", *(f" {name}" for name in targets))]
    ways = ways_to_differ(rows)
    for check, cells, members in ways[:DIFFERENCES]:
        more = f" and {len(members) - 1} more" * (len(members) > 1)
        subject = f"{phrases.named(members[0].subject, members[0].versions)}{more}"
        cases = str(sum(int(row.cases) for row in members))
        shown.append((f" {check}", f" {subject}", f" {cases}", *(f" {cell}" for cell in cells)))
    yield from (f" {line}" for line in _aligned(shown, (2,)))
    if len(ways) > DIFFERENCES:
        yield f"  ({len(ways) - DIFFERENCES} more rows are in the ledger)"
