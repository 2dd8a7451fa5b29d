"""A summary for the page of a CI job: the results, and each failure with the command that reproduces it."""

import re
from collections.abc import Iterable, Iterator

from kipcheck.conformance.core.ledger import Cause, Failure
from kipcheck.conformance.core.values.untrusted_text import COMMAND, clean, harmless, one_line
from kipcheck.reports.campaigns import brief, stands, stopped, troubles
from kipcheck.reports.phrases import about_cause, to_do
from kipcheck.reports.summary import FLAKY, KNOWN, WORDS, Cell, Summary
from kipcheck.reports.text import block

MOST = 900_000
"""Bytes: a CI service that shows the summary drops it if it is longer than 1 MiB."""
MOST_CAUSES = 200
"""Rows of the table of causes."""
MARKS = {
    "PASS": "✅ pass",
    "FAIL": "❌ fail",
    "WARN": "⚠️ warn",
    KNOWN: "☑️ known",
    "NOTE": "ℹ️ note",
    "UNKNOWN": "❔ unknown",
    "SKIP": "➖ skip",
    FLAKY: "🎲 flaky",
}
SPECIAL = re.compile(r"[\\`*_\[\]~$]")
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"})


def render(found: Summary) -> str:
    parts = [_head(found), _totals(found), *_causes(found), *_troubles(found), *_campaigns(found)]
    parts += [_table(found), *_known(found)]
    parts += [f"{plain(line)}\n" for line in found.coverage_lines]
    blocks = [
        ((_cause(each.cause, place) if each.cause is not None and not number else "") + _block(failure), failure.id)
        for place, each in enumerate(found.causes, 1)
        for number, failure in enumerate(each.new)
    ]
    size = sum(len(part.encode()) for part in parts)
    for number, (text, _) in enumerate(blocks):
        size += len(text.encode())
        if size > MOST:
            left = [id for _, id in blocks[number:]]
            parts.append(_cut(f"{len(left)} more are in the ledger: {', '.join(left)}\n", 20_000))
            break
        parts.append(text)
    return "\n".join(parts)


def plain(text: str) -> str:
    """Text as one line without effect: no mark-up of Markdown or HTML, no link, no mention."""
    text = " ".join(clean(text).split()).translate(ENTITIES)
    text = SPECIAL.sub(r"\\\g<0>", text)
    text = COMMAND.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", text)
    return text.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def fenced(lines: Iterable[str]) -> str:
    """Lines in a fenced block; the fence is longer than any in them."""
    text = harmless("\n".join(map(one_line, lines)))
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _head(found: Summary) -> str:
    names = ", ".join(found.called(each) for each in found.targets) or "nothing"
    mark = "❔" if found.exit is None else "✅" if found.exit == 0 and found.complete else "❌"
    part = " (part {} of {})".format(*found.header.part) if found.header.part else ""
    return f"## {mark} kipcheck: {plain(names)}{part}\n\n{plain(found.verdict)}\n"


def _totals(found: Summary) -> str:
    """What is to be done, and the counts that all forms have."""
    rows = [("to do", to_do(found.exit)), *found.totals.lines]
    return "".join(f"- {name}: {plain(text)}\n" for name, text in rows if text)


def _causes(found: Summary) -> Iterator[str]:
    """A table of causes, the gravest first."""
    if not found.causes:
        return
    several = len(found.targets) > 1
    names = ["", "", "effect", "cause", *(["target"] if several else []), "cases", "failures"]
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for number, each in enumerate(found.causes[:MOST_CAUSES], 1):
        cause, first = each.cause, each.failures[0]
        title = first.why.partition("\n")[0][:300] if cause is None else cause.title
        cells = [str(number), MARKS[each.kind], "" if cause is None else cause.severity, title]
        cells += [found.called(first.target)] if several else []
        cells += [
            f"{first.cases if cause is None else cause.cases:,}",
            ", ".join(line.id for line in each.failures[:12]),
        ]
        rows.append(f"| {' | '.join(map(plain, cells))} |")
    yield "\n".join(rows) + "\n"
    if (left := len(found.causes) - MOST_CAUSES) > 0:
        yield f"{left} more causes are in report.html.\n"


def _campaigns(found: Summary) -> Iterator[str]:
    for each in found.ledger.campaigns:
        yield f"Campaign {plain(each.id)}: {plain(brief(each))}. {plain(stopped(each))}\n"
        rounds = [line for line in found.ledger.rounds if line.campaign == each.id]
        if rounds:
            head = "| round | cases | new kinds of behaviour | in all | failures first found |"
            rows = [head, "|---|---|---|---|---|"]
            for line in rounds:
                cells = line.round + 1, line.cases, line.new, line.coverage, len(line.failures)
                rows.append(f"| {' | '.join(map(str, cells))} |")
            yield "\n".join(rows) + "\n"
        for trouble in troubles(each):
            yield f"**trouble** {plain(trouble)}\n"
    if found.ledger.campaigns:
        yield f"Failures: {stands(found)}\n"


def _table(found: Summary) -> str:
    if not found.table:
        return ""
    targets = found.targets
    rows = [
        "| check | " + " | ".join(plain(found.called(each)) for each in targets) + " |",
        "|---" * (1 + len(targets)) + "|",
    ]
    for check, by in found.table.items():
        rows.append(f"| {plain(check)} | " + " | ".join(_cell(by.get(each)) for each in targets) + " |")
    return "\n".join(rows) + "\n"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{MARKS[cell.word]} {cell.tally}"


def _known(found: Summary) -> Iterator[str]:
    known = [each for each in found.failures if each.known]
    if known:
        lines = [f"{each.id}  {each.target}  {each.check}: {each.why}" for each in known]
        listed = fenced([_cut(line, 400) for line in lines[:200]])
        title = f"{len(known)} known {'deviation' if len(known) == 1 else 'deviations'}"
        yield f"<details><summary>{title}</summary>\n\n{listed}\n\n</details>\n"


def _troubles(found: Summary) -> Iterator[str]:
    for each in found.ledger.troubles:
        yield f"**trouble** {plain(each.target)}: {plain(str(each.why)[:2000])}\n"
    for stale in found.stale:
        yield f"**stale** {plain(stale.entry)}: {plain(stale.why)}\n"
    for flaky in found.flaky:
        yield f"**flaky** {plain(flaky.target)}: {plain(flaky.check)}: {plain(flaky.why)}\n"
    for target, check, what in found.open_ends:
        yield f"**undecided** {plain(target)}: {plain(check)}: {plain(what)}\n"


def _cause(cause: Cause, place: int) -> str:
    rows = "".join(f"- {plain(name)}: {plain(text)}\n" for name, text in about_cause(cause))
    return f"### {place}. {plain(cause.title)}\n\n{rows}\n"


def _block(failure: Failure) -> str:
    title = f"{WORDS[failure.grade]} {failure.target}: {' '.join(failure.why.split())[:300]} ({failure.cases})"
    # Markdown parses text between HTML tags too, so it is escaped for both.
    return f"<details><summary>{plain(title)}</summary>\n\n{fenced(block(failure, set()))}\n\n</details>\n"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[:size]}…"
