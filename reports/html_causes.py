"""The causes in the HTML page: the gravest first, with filters, and below each its failures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kipcheck.conformance.core.ledger import Failure
from kipcheck.conformance.core.values.impacts import Severity
from kipcheck.reports import links
from kipcheck.reports.html_failures import brief, details, listed
from kipcheck.reports.html_tables import word
from kipcheck.reports.markup import Child, Safe, joined, tag
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import CauseOf, Summary

ALL = "all"
MOST = 24
"""Parts and targets that can be chosen in a filter: the style has as many rules."""
SEVERITIES = tuple(each.value for each in Severity)
HINT = "The gravest first; known deviations and notes last. FAIL breaks a MUST and fails the gate, WARN a SHOULD."


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice among the causes; the style hides the others."""

    name: str
    """What it goes by, and the prefix of the classes."""
    classes: Mapping[str, int]
    """Value -> number in the class of an option and of its causes."""

    def of(self, values: Iterable[str]) -> str:
        return " ".join(f"{self.name}-{self.classes[each]}" for each in values if each in self.classes)


def causes(found: Summary) -> Safe:
    if not found.causes:
        nothing = "No case failed." if found.complete else "No failure so far, but the run is incomplete."
        return joined(tag("h2", "Causes"), tag("p", nothing))
    kinds, effects, parts, targets = filters = _filters(found)
    shown = []
    for number, each in enumerate(found.causes, 1):
        classes = [
            kinds.of([each.kind]),
            effects.of([_severity(each)]),
            parts.of(dict.fromkeys(_part(check) for line in each.failures for check in line.checks)),
            targets.of([each.failures[0].target]),
        ]
        shown.append(_cause(found, each, number, " ".join(filter(None, ["cause", *classes]))))
    return joined(
        tag("h2", "Causes"), tag("p", HINT, class_="hint"), _choices(filters), tag("div", shown, class_="causes")
    )


# ---- filters


def _filters(found: Summary) -> tuple[Filter, Filter, Filter, Filter]:
    kinds = dict.fromkeys(each.kind for each in found.causes)
    severities = [*dict.fromkeys(_severity(each) for each in found.causes)]
    parts = sorted({_part(check) for each in found.causes for line in each.failures for check in line.checks})
    targets = dict.fromkeys(line.target for each in found.causes for line in each.failures)
    return (
        Filter("result", {each: n for n, each in enumerate(kinds)}),
        Filter("effect", {each: n for n, each in enumerate(severities)}),
        Filter("part", {each: n for n, each in enumerate(parts[:MOST])}),
        Filter("target", {each: n for n, each in enumerate([*targets][:MOST])}),
    )


def _choices(filters: Iterable[Filter]) -> Safe | None:
    """A list to choose from for each filter with several values. The style applies it, where it can."""
    several = [each for each in filters if len(each.classes) > 1]
    choices = (
        tag(
            "label",
            f"{each.name} ",
            tag(
                "select",
                tag("option", ALL),
                (tag("option", value, class_=f"{each.name}-{n}") for value, n in each.classes.items()),
                autocomplete="off",
            ),
        )
        for each in several
    )
    return tag("div", choices, class_="filters", role="group", aria_label="Filters") if several else None


def _severity(each: CauseOf) -> str:
    return "no cause" if each.cause is None else each.cause.severity


def _part(check: str) -> str:
    """``member`` of ``member/callbacks``."""
    return check.partition("/")[0]


# ---- a cause


def _cause(found: Summary, each: CauseOf, number: int, classes: str) -> Safe:
    cause, first = each.cause, each.failures[0]
    title = first.why.partition("\n")[0] if cause is None else cause.title
    remedy = _remedy(each.failures)
    summary = (
        tag("span", f"{number}", class_="rank"),
        word(each.kind),
        tag(
            "span",
            tag("span", tag("b", title, class_="why"), tag("span", joined(_who(found, each)), class_="who")),
            tag("span", tag("b", "Fix: "), remedy, class_="remedy") if remedy else None,
            class_="about",
        ),
    )
    inner: list[Child] = [_facts(each), tag("h3", some(len(each.failures), "failure"))]
    if len(each.failures) == 1:
        inner.append(tag("div", details(found, first, remedy, is_titled=cause is None), id=first.id))
    else:
        inner += [_failure(found, line, remedy) for line in each.failures]
    anchor = f"cause-{number}"
    return tag("details", tag("summary", summary), tag("div", inner, class_="inside", id=anchor), class_=classes)


def _who(found: Summary, each: CauseOf) -> Iterator[Child]:
    cause, several = each.cause, len(found.targets) > 1
    if cause is not None:
        rank = SEVERITIES.index(cause.severity) if cause.severity in SEVERITIES else len(SEVERITIES)
        yield tag("span", cause.severity, class_=f"severity severity-{rank}")
    number = sum(line.cases for line in each.failures) if cause is None else cause.cases
    checks = dict.fromkeys(check for line in each.failures for check in line.checks)
    texts = [
        *([found.called(each.failures[0].target)] if several else []),
        some(number, "case"),
        some(len(each.failures), "failure"),
        ", ".join(checks),
    ]
    yield " · ".join(texts)


def _remedy(failures: Sequence[Failure]) -> str:
    """How to fix it: the remedy for the gravest of the failures that have one."""
    return next((line.fix for line in failures if line.fix), "")


def _facts(each: CauseOf) -> Safe | None:
    cause = each.cause
    rows: list[tuple[str, Child]] = []
    if cause is not None:
        least = next((line for line in each.failures if line.id == cause.least), each.failures[0])
        rows += [("reason", cause.reason)] if cause.reason else []
        if cause.page:
            status = f" ({cause.status})" if cause.status else None
            rows.append(("finding", joined(links.document(cause.page), status)))
        rows += [("in the code", tag("code", cause.at))] if cause.at else []
        if cause.kafka:
            rows.append(("Kafka", f"Kafka's own clients do the same: {', '.join(cause.kafka)}"))
        if len(each.failures) > 1:
            rows.append(("minimal case", joined(tag("a", least.id, href=f"#{least.id}"), f": {brief(least)}")))
    if listed_in := _entries(each):
        rows.append(("listed in", listed_in))
    return tag("dl", (tag("div", tag("dt", a), tag("dd", b)) for a, b in rows), class_="rows") if rows else None


def _entries(each: CauseOf) -> Safe | None:
    """The entries of lists of known deviations, by file."""
    lines: dict[str, set[int]] = {}
    for failure in each.failures:
        if entry := failure.known or failure.beyond or failure.changed:
            lines.setdefault(entry.file, set()).add(entry.line)
    named = [(links.document(file), f":{', '.join(map(str, sorted(numbers)))}") for file, numbers in lines.items()]
    return joined([("; " if place else None, parts) for place, parts in enumerate(named)]) if named else None


def _failure(found: Summary, failure: Failure, remedy: str) -> Safe:
    title = (
        word(listed(failure)),
        tag("span", brief(failure), class_="why"),
        tag("span", f"{failure.check} · {some(failure.cases, 'case')}", class_="who"),
    )
    # The id is inside of the element that can be closed, so that a link to it opens it.
    inner = tag("div", details(found, failure, remedy, is_titled=True), class_="inside", id=failure.id)
    return tag("details", tag("summary", tag("span", title, class_="title")), inner)
