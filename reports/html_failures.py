"""The failures in the HTML page, by cause: broken invariant, requirements, reason, exhibits, and the command."""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.ledger import (
    BrokenRequirement,
    ByteRow,
    BytesExhibit,
    Cause,
    Exhibit,
    Failure,
    SequenceExhibit,
    TableExhibit,
)
from kipcheck.reports.campaigns import first
from kipcheck.reports.diagram import sequence
from kipcheck.reports.html_tables import word
from kipcheck.reports.markup import Child, Safe, joined, link, tag
from kipcheck.reports.phrases import about_cause, expected, operation, some, where
from kipcheck.reports.summary import KNOWN, WORDS, Summary
from kipcheck.reports.text import around

OPEN = 12
"""The number of failures that are expanded at first: the gravest ones."""
LONG = 400
"""Longer texts are abridged, and expanded on demand."""
SECTIONS: Sequence[tuple[str, tuple[str, ...], str]] = (
    (
        "New failures",
        ("FAIL", "WARN"),
        "By cause, the gravest first. FAIL breaks a MUST and fails the gate. Cases that fail alike are one failure.",
    ),
    (
        "Known deviations",
        (KNOWN,),
        "Expected, with a reason and a place where it is discussed. They still run.",
    ),
    ("Notes", ("NOTE",), "Observed where the specification leaves a choice. They decide nothing."),
)
"""Name, kinds of causes, and meaning."""


def failures(found: Summary) -> Safe:
    if not found.failures:
        nothing = "No case failed." if found.complete else "No failure so far, but the run is incomplete."
        return joined(tag("h2", "Failures"), tag("p", nothing))
    parts: list[Safe] = [tag("h2", "Failures")]
    opened = OPEN
    for name, kinds, meaning in SECTIONS:
        causes = [each for each in found.causes if each.kind in kinds]
        if not causes:
            continue
        parts.append(tag("h3", f"{name} ({sum(len(each.failures) for each in causes)})"))
        parts.append(tag("p", meaning, class_="hint"))
        for each in causes:
            members = [
                _failure(found, line, is_open=opened > n and not line.known) for n, line in enumerate(each.failures)
            ]
            opened -= len(members)
            parts.append(tag("div", _cause(each.cause), members, class_="cause") if each.cause else joined(members))
    return joined(parts)


def _cause(cause: Cause) -> Child:
    rows = (tag("div", tag("dt", name), tag("dd", _linked(text))) for name, text in about_cause(cause))
    return tag("h4", cause.title), tag("dl", rows, class_="facts")


def _linked(text: str) -> Safe:
    address, blank, after = text.partition(" ")
    return joined(link(address, address), blank, after) if address.startswith("https://") else joined(text)


def _kind(failure: Failure) -> str:
    return KNOWN if failure.known else WORDS[failure.grade]


def _failure(found: Summary, failure: Failure, is_open: bool) -> Safe:
    title = (
        word(_kind(failure)),
        tag("span", failure.why.partition("\n")[0], class_="why"),
        tag("span", f"{failure.target} {failure.version} · {failure.check} · {_cases(failure)}", class_="who"),
    )
    # The id is inside of the element that can be closed, so that a link to it opens it.
    inner = tag("div", _details(found, failure), class_="inside", id=failure.id)
    return tag("details", tag("summary", tag("span", title, class_="title")), inner, open=is_open)


def _cases(failure: Failure) -> str:
    return some(failure.cases, "case")


def _details(found: Summary, failure: Failure) -> Iterator[Child]:
    if expected(failure):
        yield _listed(failure)
    yield tag("h4", "What is broken"), tag("p", failure.sentence, class_="rule")
    yield tag("ul", (_clause(found, each) for each in failure.requirements), class_="clauses")
    yield tag("h4", "Why it is wrong"), tag("p", failure.why)
    yield _versus(failure)
    shown = [_exhibit(each, failure) for each in failure.exhibits]
    if failure.steps and not any(isinstance(each, SequenceExhibit) for each in failure.exhibits):
        yield tag("h4", "Steps"), tag("ol", _steps(failure), class_="steps")
    yield shown
    yield _fix(failure)
    yield tag("h4", "To reproduce it"), tag("pre", tag("code", failure.reproduce), class_="command")
    yield tag("p", _where(failure), class_="hint")
    if failure.tags:
        yield tag("p", tag("span", (tag("span", each) for each in failure.tags), class_="tags"))


def _listed(failure: Failure) -> Safe:
    """The entry of a list of known deviations, with a link to its discussion."""
    entry = failure.known or failure.beyond or failure.changed
    assert entry is not None
    text, address = expected(failure), entry.link
    before, found, after = text.partition(address) if address else (text, "", "")
    until = f"; it expires on {entry.expires}" if entry.expires else ""
    at = tag("span", f" ({entry.file}:{entry.line}{until})", class_="small")
    return tag("p", tag("b", "Listed: "), before, link(address, address) if found else None, after, at)


def _clause(found: Summary, requirement: BrokenRequirement) -> Safe:
    about = found.header.requirements.get(requirement.id)
    means = about.means if about is not None else None
    name = tag("summary", tag("b", requirement.id), " ", requirement.clause)
    plainly = tag("p", tag("b", "In plain words: "), means) if means else None
    return tag("li", tag("details", name, tag("p", requirement.text), plainly, class_="more"))


def _fix(failure: Failure) -> Child:
    return (tag("h4", "How to fix it"), tag("p", failure.fix)) if failure.fix else None


def _versus(failure: Failure) -> Safe | None:
    rows: list[tuple[str, object]] = [
        (name, value) for name, value in (("at", failure.path), ("offset", failure.offset)) if value not in (None, "")
    ]
    rows += [(name, text) for name, text in (("expected", failure.expected), ("observed", failure.observed)) if text]
    cells = (
        (tag("dt", name), tag("dd", tag("code", _long(str(value)), class_="bad" if name == "observed" else None)))
        for name, value in rows
    )
    return tag("dl", cells, class_="versus") if rows else None


def _where(failure: Failure) -> Child:
    if not failure.case_id:
        return f"About {where(failure)}."
    filed = f"failures/{failure.id}.json"
    found_at = f" First found in {first(failure)}." if first(failure) else ""
    text = f"Found in {_cases(failure)}: {where(failure)}.{found_at} The least of them is case "
    return text, tag("code", failure.case_id), ", in ", tag("a", filed, href=filed), "."


def _steps(failure: Failure) -> Iterator[Safe]:
    several = len(failure.steps) > 1
    for number, step in enumerate(failure.steps):
        what, given = operation(step)
        guilty = several and number == failure.guilty_step
        mark = tag("span", " ◀ here", class_="mark") if guilty else None
        yield tag("li", what, ": " if given else None, _long(given, tag("code", given)) if given else None, mark)


def _long(text: str, whole: Safe | None = None) -> Child:
    whole = whole if whole is not None else joined(text)
    if len(text) <= LONG:
        return whole
    return tag("code", f"{text[:LONG]}…"), tag(
        "details", tag("summary", f"all {len(text):,} characters"), whole, class_="more"
    )


# ---- exhibits


def _exhibit(exhibit: Exhibit, failure: Failure) -> Child:
    if isinstance(exhibit, BytesExhibit):
        return _bytes(exhibit.rows, failure) if exhibit.rows else None
    if isinstance(exhibit, TableExhibit):
        return _table(exhibit)
    if isinstance(exhibit, SequenceExhibit):
        return tag("h4", "What happened"), sequence(exhibit.steps)
    return None


def _bytes(rows: Sequence[ByteRow], failure: Failure) -> Child:
    low, high = around(rows)
    head = tag("tr", (tag("th", name, scope="col") for name in ("", "offset", "bytes", "field", "type", "value")))

    def shown(fields: Sequence[ByteRow]) -> Iterator[Safe]:
        for row in fields:
            yield tag(
                "tr",
                tag("td", "▶" if row.guilty else None, class_="mark"),
                tag("td", str(row.offset), class_="num"),
                tag("td", _brief(row.bytes), class_="mono"),
                tag("td", row.path),
                tag("td", row.type),
                tag("td", _brief(row.value)),
                class_="guilty" if row.guilty else None,
            )
            if row.guilty and (failure.expected or failure.observed):
                versus = f"expected {failure.expected or 'nothing'}; observed {failure.observed or 'nothing'}"
                yield tag(
                    "tr", tag("td"), tag("td", tag("span", _brief(versus), class_="bad"), colspan=5), class_="guilty"
                )

    def part(fields: Sequence[ByteRow]) -> Safe:
        inner = tag("table", tag("thead", head), tag("tbody", shown(fields)), class_="exhibit")
        return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label="Bytes, a row for each field")

    def aside(fields: Sequence[ByteRow], where: str) -> Safe | None:
        title = tag("summary", f"{some(len(fields), 'field')} {where}")
        return tag("details", title, part(fields), class_="more") if fields else None

    return (
        tag("h4", "The bytes"),
        aside(rows[:low], "before"),
        part(rows[low : high + 1]),
        aside(rows[high + 1 :], "after"),
    )


def _brief(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"


def _table(exhibit: TableExhibit) -> Child:
    head = tag("tr", (tag("th", name, scope="col") for name in ("", *exhibit.columns)))
    rows = (
        tag(
            "tr",
            tag("td", "▶" if row.guilty else None, class_="mark"),
            (tag("td", str(cell)) for cell in row.cells),
            class_="guilty" if row.guilty else None,
        )
        for row in exhibit.rows
    )
    inner = tag("table", tag("thead", head), tag("tbody", rows), class_="exhibit")
    name = exhibit.title or "Table"
    return tag("h4", name), tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=name)
