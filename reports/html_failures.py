"""The failures of the page: the sentence broken, its clauses, why it is wrong, exhibits, how to see it again."""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.ledger import Line
from kipcheck.reports.campaigns import first
from kipcheck.reports.diagram import sequence
from kipcheck.reports.html_tables import word
from kipcheck.reports.markup import Child, Safe, joined, link, tag
from kipcheck.reports.phrases import asked, expected, some, where
from kipcheck.reports.summary import KNOWN, WORDS, Summary
from kipcheck.reports.text import around

OPEN = 12
"""So many failures are open when the page is: the first, which are the gravest."""
LONG = 400
"""Longer texts are shown by their beginning, and open on demand."""
KINDS: Sequence[tuple[str, str, str]] = (
    ("FAIL", "Failures", "Each breaks a MUST and fails the gate. Cases that fail in the same way stand as one."),
    ("WARN", "Warnings", "Each breaks a SHOULD: the gate lets it pass."),
    (KNOWN, "Known deviations", "Expected, with a reason and a place where it is discussed. They still run."),
    ("NOTE", "Notes", "Observed where a text leaves freedom. They decide nothing."),
)


def failures(found: Summary) -> Safe:
    by_kind: dict[str, list[Line]] = {}
    for each in found.failures:
        by_kind.setdefault(_kind(each), []).append(each)
    if not by_kind:
        nothing = "No case failed." if found.complete else "No failure is told of, but the run is incomplete."
        return joined(tag("h2", "Failures"), tag("p", nothing))
    parts: list[Safe] = [tag("h2", "Failures")]
    opened = OPEN
    for kind, name, meaning in KINDS:
        members = by_kind.get(kind, [])
        if not members:
            continue
        parts.append(tag("h3", f"{name} ({len(members)})"))
        parts.append(tag("p", meaning, class_="hint"))
        for each in members:
            parts.append(_failure(found, each, kind, is_open=kind == "FAIL" and opened > 0))
            opened -= 1
    return joined(parts)


def _kind(failure: Line) -> str:
    return KNOWN if failure.get("known") else WORDS[failure["grade"]]


def _failure(found: Summary, failure: Line, kind: str, is_open: bool) -> Safe:
    title = (
        word(kind),
        tag("span", failure["why"].partition("\n")[0], class_="why"),
        tag("span", f"{failure['target']} {failure['version']} · {failure['check']} · {_cases(failure)}", class_="who"),
    )
    # The id stands inside of what can be closed: so a link to it opens it.
    inner = tag("div", _told(found, failure), class_="inside", id=failure["id"])
    return tag("details", tag("summary", tag("span", title, class_="title")), inner, open=is_open)


def _cases(failure: Line) -> str:
    return some(failure["cases"], "case")


def _told(found: Summary, failure: Line) -> Iterator[Child]:
    if expected(failure):
        yield _listed(failure)
    yield tag("h4", "What is broken"), tag("p", failure["sentence"], class_="rule")
    yield tag("ul", (_clause(found, each) for each in failure["requirements"]), class_="clauses")
    yield tag("h4", "Why it is wrong"), tag("p", failure["why"])
    yield _versus(failure)
    shown = [_exhibit(each, failure) for each in failure["exhibits"]]
    if failure["steps"] and not any(each["kind"] == "sequence" for each in failure["exhibits"]):
        yield tag("h4", "What was asked"), tag("ol", _steps(failure), class_="steps")
    yield shown
    yield _remedies(found, failure)
    yield tag("h4", "To see it again"), tag("pre", tag("code", failure["reproduce"]), class_="command")
    yield tag("p", _where(failure), class_="hint")
    if failure.get("tags"):
        yield tag("p", tag("span", (tag("span", each) for each in failure["tags"]), class_="tags"))


def _listed(failure: Line) -> Safe:
    """What the lists of known deviations say of it, with the page where it is discussed."""
    entry = next(failure[key] for key in ("known", "beyond", "changed") if failure.get(key))
    said, address = expected(failure), str(entry.get("link") or "")
    before, found, after = said.partition(address) if address else (said, "", "")
    until = f", to be looked at again by {entry['expires']}" if entry.get("expires") else ""
    at = tag("span", f" ({entry.get('file')}:{entry.get('line')}{until})", class_="small")
    return tag("p", tag("b", "Listed: "), before, link(address, address) if found else None, after, at)


def _clause(found: Summary, requirement: Line) -> Safe:
    means = found.header.get("requirements", {}).get(requirement["id"], {}).get("means")
    name = tag("summary", tag("b", requirement["id"]), " ", requirement["clause"])
    plainly = tag("p", tag("b", "In plain words: "), means) if means else None
    return tag("li", tag("details", name, tag("p", requirement["text"]), plainly, class_="more"))


def _remedies(found: Summary, failure: Line) -> Child:
    """What to do about it, as far as the requirements that are broken tell."""
    about = found.header.get("requirements", {})
    fixes = dict.fromkeys(about.get(each["id"], {}).get("fix") for each in failure["requirements"])
    told = [tag("p", each) for each in fixes if each]
    return (tag("h4", "How to mend it"), told) if told else None


def _versus(failure: Line) -> Safe | None:
    rows = [
        (name, failure[key]) for name, key in (("at", "path"), ("offset", "offset")) if failure[key] not in (None, "")
    ]
    rows += [(name, failure[name]) for name in ("expected", "observed") if failure[name]]
    cells = (
        (tag("dt", name), tag("dd", tag("code", _long(str(value)), class_="bad" if name == "observed" else None)))
        for name, value in rows
    )
    return tag("dl", cells, class_="versus") if rows else None


def _where(failure: Line) -> Child:
    if not failure["case_id"]:
        return f"About {where(failure)}."
    filed = f"failures/{failure['id']}.json"
    met = f" First met in {first(failure)}." if first(failure) else ""
    seen = f"Seen in {_cases(failure)}: {where(failure)}.{met} The least of them is case "
    return seen, tag("code", failure["case_id"]), ", in ", tag("a", filed, href=filed), "."


def _steps(failure: Line) -> Iterator[Safe]:
    several = len(failure["steps"]) > 1
    for number, step in enumerate(failure["steps"]):
        what, given = asked(step)
        guilty = several and number == failure["guilty_step"]
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


def _exhibit(exhibit: Line, failure: Line) -> Child:
    if exhibit["kind"] == "bytes":
        return _bytes(exhibit["rows"], failure) if exhibit["rows"] else None
    if exhibit["kind"] == "table":
        return _table(exhibit)
    if exhibit["kind"] == "sequence":
        return tag("h4", "What happened"), sequence(exhibit["steps"])
    return None


def _bytes(rows: Sequence[Line], failure: Line) -> Child:
    low, high = around(rows)
    head = tag("tr", (tag("th", name, scope="col") for name in ("", "offset", "bytes", "field", "type", "value")))

    def shown(fields: Sequence[Line]) -> Iterator[Safe]:
        for row in fields:
            yield tag(
                "tr",
                tag("td", "▶" if row["guilty"] else None, class_="mark"),
                tag("td", str(row["offset"]), class_="num"),
                tag("td", _brief(row["bytes"]), class_="mono"),
                tag("td", row["path"]),
                tag("td", row["type"]),
                tag("td", _brief(row["value"])),
                class_="guilty" if row["guilty"] else None,
            )
            if row["guilty"] and (failure["expected"] or failure["observed"]):
                versus = f"expected {failure['expected'] or 'nothing'}; observed {failure['observed'] or 'nothing'}"
                yield tag(
                    "tr", tag("td"), tag("td", tag("span", _brief(versus), class_="bad"), colspan=5), class_="guilty"
                )

    def part(fields: Sequence[Line]) -> Safe:
        inner = tag("table", tag("thead", head), tag("tbody", shown(fields)), class_="exhibit")
        return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label="Bytes, a row for each field")

    def aside(fields: Sequence[Line], where: str) -> Safe | None:
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


def _table(exhibit: Line) -> Child:
    head = tag("tr", (tag("th", name, scope="col") for name in ("", *exhibit["columns"])))
    rows = (
        tag(
            "tr",
            tag("td", "▶" if row["guilty"] else None, class_="mark"),
            (tag("td", str(cell)) for cell in row["cells"]),
            class_="guilty" if row["guilty"] else None,
        )
        for row in exhibit["rows"]
    )
    inner = tag("table", tag("thead", head), tag("tbody", rows), class_="exhibit")
    name = str(exhibit.get("title", "Who got what"))
    return tag("h4", name), tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=name)
