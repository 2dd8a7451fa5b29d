"""The tables of the HTML page: results by check and target, by subject, differences of targets, requirements."""

import re
from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.ledger import spans
from kipcheck.reports import cell_table
from kipcheck.reports.coverage import Judged
from kipcheck.reports.markup import Child, Safe, joined, tag
from kipcheck.reports.phrases import named, some
from kipcheck.reports.summary import Cell, Reached, Summary, all_pass, ways_to_differ

WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
SHOWN = 200
"""The most ways to differ in the page."""
MEANT = {
    "PASS": "kept",
    "FAIL": "a MUST is broken",
    "KNOWN": "broken, and a known deviation",
    "FLAKY": "failed, but not every time when run alone",
    "WARN": "a SHOULD is broken",
    "NOTE": "observed, decides nothing",
    "UNKNOWN": "undecided: does not count as a pass",
    "SKIP": "not supported or not claimed",
}


def word(name: str) -> Safe:
    """``FAIL``, with its colour."""
    return tag("span", name, class_=f"word {name.partition(' ')[0].lower()}")


def table(head: Sequence[Child], rows: Iterator[Safe], label: str, kind: str = "grid") -> Safe:
    """A table with its own scroll bar, which the keyboard reaches: a page on a phone does not get wider."""
    columns = tag("tr", (tag("th", each, scope="col") for each in head))
    inner = tag("table", tag("thead", columns), tag("tbody", rows), class_=kind)
    return tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label=label)


def results(found: Summary) -> Safe:
    """Checks by target, and below them the results of each check by subject."""
    targets = found.targets

    def rows() -> Iterator[Safe]:
        for check, by in found.table.items():
            sentence = found.header.checks.get(check, "")
            name = tag(
                "th", tag("a", check, href=f"#{_anchor(check)}"), tag("p", sentence, class_="small"), scope="row"
            )
            yield tag("tr", name, (tag("td", _counts(by.get(each))) for each in targets))

    meant = ((word(name), f" {what}; " if name != "SKIP" else f" {what}.") for name, what in MEANT.items())
    return joined(
        table(["check", *map(found.called, targets)], rows(), "Results by check and target")
        if found.table
        else tag("p", "No case was run."),
        tag("p", meant, class_="hint"),
        (tag("h3", "Checks by subject"), (_subjects(found, check) for check in found.cells)) if found.cells else None,
    )


def _counts(cell: Cell | None) -> Child:
    if cell is None:
        return tag("span", "no cases", class_="small")
    counted = ", ".join(f"{cell.counts[each]:,} {each.lower()}" for each in MEANT if cell.counts[each])
    return (word(cell.word), tag("p", counted, class_="small"))


def _anchor(check: str) -> str:
    return f"check-{check.replace('/', '-')}"


def _subjects(found: Summary, check: str) -> Safe:
    subjects = found.cells[check]
    came = (
        tag("span", f"{found.called(name)} ", word(found.table[check][name].word), class_="who")
        for name in found.targets
        if name in found.table[check]
    )
    title = (tag("b", check), tag("span", some(len(subjects), "subject"), class_="who"), came)

    def rows() -> Iterator[Safe]:
        for subject, by in subjects.items():
            cells = (tag("td", _cell(found, check, subject, each, by.get(each))) for each in found.targets)
            yield tag("tr", tag("th", breaking(subject), scope="row"), cells)

    inner = table(["subject", *map(found.called, found.targets)], rows(), f"{check} by subject and target")
    # The id is inside of the element that can be closed, so that a link to it opens it.
    return tag("details", tag("summary", tag("span", title, class_="title")), tag("div", inner, id=_anchor(check)))


def breaking(name: str) -> Child:
    """A long name that may be broken between its words."""
    first, *rest = WORDS.split(name)
    return first, ((tag("wbr"), each) for each in rest)


def _cell(found: Summary, check: str, subject: str, target: str, cell: Cell | None) -> Child:
    if cell is None:
        return tag("span", "–", class_="small")
    versions = f" v{cell.where}" if cell.where and cell.word not in ("PASS", "SKIP") else ""
    links = [
        (" ", tag("a", each.id[:6], href=f"#{each.id}", title=each.why, class_="small mono"))
        for each in found.breaches(target, check, subject)
    ]
    return (word(cell.word), " ", tag("span", f"{cell.tally}{versions}", class_="small"), links)


def differences(found: Summary) -> Safe:
    rows = found.ledger.differences
    targets = list(dict.fromkeys(name for row in rows for name in row.cells))
    ways = ways_to_differ(rows)

    def shown() -> Iterator[Safe]:
        for check, cells, members in ways[:SHOWN]:
            names = [named(each.subject, each.versions) for each in members]
            more = ", ".join(names[1:])
            subject = (
                names[0],
                tag("details", tag("summary", f"and {len(names) - 1} more"), tag("p", more), class_="more")
                if more
                else None,
            )
            cases = sum(int(each.cases) for each in members)
            yield tag(
                "tr",
                tag("th", check, scope="row"),
                tag("td", subject, class_="clause"),
                tag("td", f"{cases:,}", class_="num"),
                (tag("td", word(each)) for each in cells),
            )

    passing = sum(all_pass(members[0]) for _, _, members in ways)
    hint = (
        f"The same case with different results ({len(ways) - passing} ways), or passed by all with different answers "
        f"({passing} ways): then equal letters stand for equal answers. Only the verdicts show which target is right."
    )
    left = f"{len(ways) - SHOWN} more ways are in the ledger." if len(ways) > SHOWN else None
    return joined(
        tag("p", hint, class_="hint"),
        table(["check", "subject", "cases", *targets], shown(), "Where targets differ", "grid"),
        tag("p", left, class_="hint") if left else None,
    )


def invariants(found: Summary) -> Safe:
    """How many cases each invariant judged: without what it is about, an invariant is neither kept nor broken."""
    by = found.totals.judged
    ids = sorted(
        {id for each in by.values() for id in each}, key=lambda id: min(_share(each.get(id)) for each in by.values())
    )

    def rows() -> Iterator[Safe]:
        for id in ids:
            about = found.header.invariants.get(id)
            cells = (tag("td", _of_cases(by[name].get(id)), class_="num") for name in by)
            sentence = tag("p", about.sentence, class_="small") if about is not None else None
            yield tag("tr", tag("th", tag("b", id), sentence, scope="row", class_="clause"), cells)

    hint = "The cases that each invariant judged: in the others, what it is about did not occur, or nothing is known."
    name = "Invariants and the cases that they judged"
    return joined(tag("p", hint, class_="hint"), table(["invariant", *map(found.called, by)], rows(), name))


def _share(each: Judged | None) -> float:
    return 1.0 if each is None or not each.cases else each.judged / each.cases


def _of_cases(each: Judged | None) -> Child:
    if each is None:
        return tag("span", "no cases", class_="small")
    return f"{each.judged:,} of {each.cases:,}" if each.judged else tag("span", "not judged", class_="small")


def played_cells(found: Summary) -> Safe:
    """How many different events each request met, of how many, in each phase and kind of group."""
    parts: list[Safe] = []
    for each in found.ledger.cells:
        head, *rows = cell_table.table(each)
        body = (tag("tr", (tag("td" if place else "th", cell) for place, cell in enumerate(row))) for row in rows)
        parts += [
            tag("p", cell_table.line(each), class_="hint"),
            table(head, body, f"Events by request, {each.target}"),
        ]
    return joined(parts)


def coverage(found: Summary) -> Safe:
    reached = found.reached
    left = [each for each in found.coverage if not each.cases and each.checks]
    never = [each for each in found.coverage if not each.cases and not each.checks]
    head = ["requirement", "grade", "binds", "checks", *map(found.called, found.targets)]
    parts: list[Safe | None] = [
        tag(
            "p",
            f"{found.coverage_line}. A requirement is reached if an invariant that covers it judged a case; a result "
            "on some versions proves nothing on others.",
            class_="hint",
        ),
        table(head, (_row(found, each) for each in reached), "Requirements and how far this run reached")
        if reached
        else None,
    ]
    if left:
        rows = (_unreached(each) for each in left)
        name = f"{len(left)} more have checks, and no case of this run reached them"
        parts.append(
            tag("details", tag("summary", name), table(["requirement", "grade", "binds", "checks"], rows, name))
        )
    if never:
        rows = (_unreached(each) for each in never)
        name = f"{len(never)} have no check in this run"
        parts.append(
            tag("details", tag("summary", name), table(["requirement", "grade", "binds", "checks"], rows, name))
        )
    return joined(parts)


def _row(found: Summary, each: Reached) -> Safe:
    return tag("tr", *_about(each), (tag("td", _reached(each, name)) for name in found.targets))


def _unreached(each: Reached) -> Safe:
    return tag("tr", *_about(each))


def _about(each: Reached) -> Iterator[Safe]:
    about = each.about
    text = tag("details", tag("summary", "text"), tag("p", about.text), class_="more") if about.text else None
    yield tag(
        "th",
        tag("b", each.id),
        tag("p", about.clause, class_="small"),
        text,
        scope="row",
        class_="clause",
        id=f"requirement-{each.id}",
    )
    yield tag("td", about.grade)
    yield tag("td", about.role)
    yield tag("td", _between(each.checks), class_="checks")


def _between(names: Sequence[str]) -> Iterator[Child]:
    for number, each in enumerate(names):
        yield (tag("br") if number else None, each)


def _reached(each: Reached, target: str) -> Child:
    subjects = each.by.get(target)
    if not subjects:
        return tag("span", "not reached", class_="small")
    whole = each.cell(target)
    units = sum(max(1, len(set().union(*cell.versions.values()))) for cell in subjects.values())
    names = ", ".join(named(name, spans(set().union(*cell.versions.values()))) for name, cell in subjects.items())
    what = (
        f"{some(units, 'version')} of {some(len(subjects), 'subject')}"
        if units != len(subjects)
        else some(units, "subject")
    )
    return (
        word(whole.word),
        tag("p", f"{whole.cases:,} cases", class_="small"),
        tag("details", tag("summary", what), tag("p", names, class_="small"), class_="more"),
    )
