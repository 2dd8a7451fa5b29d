"""A failure in the HTML page: expected and observed, the case that shows it, requirements, and the command."""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core import ledger as records
from kipcheck.reports import links
from kipcheck.reports.campaigns import first
from kipcheck.reports.diagram import sequence
from kipcheck.reports.markup import Child, Safe, joined, tag
from kipcheck.reports.phrases import expected, followed, operation, played_again, remarks, some, where
from kipcheck.reports.summary import KNOWN, WORDS, Summary
from kipcheck.reports.text import around

LONG = 400
"""Longer texts are abridged, and expanded on demand."""


def listed(failure: records.Failure) -> str:
    """KNOWN, or the word for its grade."""
    return KNOWN if failure.known else WORDS[failure.grade]


def brief(failure: records.Failure) -> str:
    """Why it is wrong, in a line."""
    return failure.why.partition("\n")[0]


def details(found: Summary, failure: records.Failure, remedy: str, is_titled: bool) -> Iterator[Child]:
    """All about a failure.

    ``remedy``: how to fix it, as it stands above; ``is_titled``: the first line of why it is wrong stands there too.
    """
    if failure.known or failure.beyond or failure.changed:
        yield _listed(failure)
    yield tag("p", failure.why.partition("\n")[2].strip() if is_titled else failure.why, class_="because")
    yield _versus(failure)
    if failure.steps and not any(isinstance(each, records.SequenceExhibit) for each in failure.exhibits):
        yield tag("h4", "Steps"), tag("ol", _steps(failure), class_="steps")
    yield [_exhibit(each) for each in failure.exhibits]
    if failure.fix and failure.fix != remedy:
        yield tag("h4", "How to fix it"), tag("p", failure.fix)
    if failure.followed_by:
        rows = (tag("li", followed(each)) for each in failure.followed_by)
        yield tag("h4", "What follows from it, and is no failure of its own"), tag("ul", rows)
    yield tag("h4", "What it breaks"), tag("p", failure.sentence, class_="rule")
    yield tag("ul", (_clause(found, each) for each in failure.requirements), class_="clauses")
    yield tag("h4", "To reproduce it"), tag("pre", tag("code", failure.reproduce), class_="command")
    if played_again(failure):
        yield tag("h4", "To vary it"), tag("pre", tag("code", played_again(failure)), class_="command")
    yield tag("p", _where(failure), class_="hint")
    if failure.tags:
        yield tag("p", tag("span", (tag("span", each) for each in failure.tags), class_="tags"))


def _listed(failure: records.Failure) -> Safe:
    """The entry of a list of known deviations, with a link to its discussion."""
    entry = failure.known or failure.beyond or failure.changed
    assert entry is not None
    text, address = expected(failure), entry.link
    before, found, after = text.partition(address) if address else (text, "", "")
    until = f"; it expires on {entry.expires}" if entry.expires else ""
    at = tag("span", " (", links.entry(entry), until, ")", class_="small")
    return tag("p", tag("b", "Listed: "), before, links.document(address) if found else None, after, at)


def _clause(found: Summary, requirement: records.BrokenRequirement) -> Safe:
    about = found.header.requirements.get(requirement.id)
    means = about.means if about is not None else None
    name = tag("summary", tag("b", requirement.id), " ", requirement.clause)
    plainly = tag("p", tag("b", "In plain words: "), means) if means else None
    return tag("li", tag("details", name, tag("p", requirement.text), plainly, class_="more"))


def _versus(failure: records.Failure) -> Child:
    """Expected and observed, side by side, and the field that differs."""
    if not failure.expected and not failure.observed:
        return None
    pairs = (("expected", failure.expected), ("observed", failure.observed))
    boxes = (
        tag("div", tag("dt", name), tag("dd", tag("code", _long(text or "nothing"))), class_=name)
        for name, text in pairs
    )
    at = [failure.path] if failure.path else []
    at += [f"byte {failure.offset}"] if failure.offset is not None else []
    return tag("dl", boxes, class_="versus"), tag("p", f"at {', '.join(at)}", class_="hint") if at else None


def _where(failure: records.Failure) -> Child:
    if not failure.case_id:
        return f"About {where(failure)}."
    filed = f"failures/{failure.id}.json"
    found_at = f" First found in {first(failure)}." if first(failure) else ""
    cases = f"{some(failure.cases, 'case')} of {', '.join(failure.checks)}"
    text = f"Found in {cases}: {where(failure)}.{found_at} The least of them is case "
    return text, tag("code", failure.case_id), ", in ", tag("a", filed, href=filed), f"{remarks(failure)}."


def _steps(failure: records.Failure) -> Iterator[Safe]:
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


def _exhibit(exhibit: records.Exhibit) -> Child:
    if isinstance(exhibit, records.BytesExhibit):
        return _bytes(exhibit.rows) if exhibit.rows else None
    if isinstance(exhibit, records.TableExhibit):
        return _table(exhibit)
    if isinstance(exhibit, records.SequenceExhibit):
        return tag("h4", "What happened"), sequence(exhibit.steps)
    return None


def _bytes(rows: Sequence[records.ByteRow]) -> Child:
    low, high = around(rows)
    head = _head("offset", "bytes", "field", "type", "value")

    def shown(fields: Sequence[records.ByteRow]) -> Iterator[Safe]:
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

    def part(fields: Sequence[records.ByteRow]) -> Safe:
        inner = tag("table", tag("thead", head), tag("tbody", shown(fields)), class_="exhibit")
        return tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label="Bytes, a row for each field")

    def aside(fields: Sequence[records.ByteRow], where: str) -> Safe | None:
        title = tag("summary", f"{some(len(fields), 'field')} {where}")
        return tag("details", title, part(fields), class_="more") if fields else None

    return (
        tag("h4", "The bytes"),
        aside(rows[:low], "before"),
        part(rows[low : high + 1]),
        aside(rows[high + 1 :], "after"),
    )


def _head(*names: str) -> Safe:
    """The column of marks has no name. Regions would need distinct names, so exhibits are groups."""
    return tag("tr", tag("td"), (tag("th", name, scope="col") for name in names))


def _brief(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"


def _table(exhibit: records.TableExhibit) -> Child:
    head = _head(*exhibit.columns)
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
    return tag("h4", name), tag("div", inner, class_="scroll", tabindex=0, role="group", aria_label=name)
