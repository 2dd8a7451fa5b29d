"""The components of the targets in the HTML page, by outcome: messages, assignors and machines."""

from collections.abc import Iterator, Mapping, Sequence

from kipcheck.reports.html_tables import MEANT, breaking, table, word
from kipcheck.reports.markup import Child, Safe, joined, tag
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import OUTCOMES, Component, Summary, broken

FEW = ("PASS", "SKIP")
"""Outcomes of which only names and cases are shown."""
OPEN = ("FAIL",)


def components(found: Summary) -> Safe:
    """The worst outcome first."""
    numbers = {line.id: number for number, each in enumerate(found.causes, 1) for line in each.failures}
    by_outcome: dict[str, list[Component]] = {}
    for each in found.components:
        by_outcome.setdefault(each.word, []).append(each)
    groups = (_outcome(found, each, by_outcome[each], numbers) for each in OUTCOMES if each in by_outcome)
    return joined(
        tag("h2", "Components"),
        tag("p", "What was checked, by its worst result in any check. Numbers lead to causes.", class_="hint"),
        groups,
    )


def _outcome(found: Summary, outcome: str, members: Sequence[Component], numbers: Mapping[str, int]) -> Safe:
    title = (
        word(outcome),
        tag("b", some(len(members), "component")),
        tag("span", MEANT[outcome], class_="who"),
    )
    inner = _names(found, members) if outcome in FEW else _table(found, members, numbers)
    return tag("details", tag("summary", tag("span", title, class_="title")), inner, open=outcome in OPEN)


def _names(found: Summary, members: Sequence[Component]) -> Safe:
    several = len(found.targets) > 1
    items = (
        tag(
            "li",
            f"{found.called(each.target)}: " if several else None,
            breaking(each.name),
            tag("span", f" {each.counts.total():,}", class_="small"),
        )
        for each in sorted(members, key=lambda each: (each.target, each.name))
    )
    return tag("ul", items, class_="names")


def _table(found: Summary, members: Sequence[Component], numbers: Mapping[str, int]) -> Safe:
    several = len(found.targets) > 1
    head = ["component", *(["target"] if several else []), "broken", "of cases", "causes", "checks"]

    def rows() -> Iterator[Safe]:
        for each in members:
            wrong = [check for check, cell in each.cells.items() if broken(cell.counts)]
            yield tag(
                "tr",
                tag("th", breaking(each.name), scope="row"),
                tag("td", found.called(each.target)) if several else None,
                tag("td", f"{broken(each.counts):,}", class_="num"),
                tag("td", f"{each.counts.total():,}", class_="num"),
                tag("td", _causes(found, each, numbers)),
                tag("td", ", ".join(wrong), class_="checks"),
            )

    return table(head, rows(), "Components")


def _causes(found: Summary, each: Component, numbers: Mapping[str, int]) -> Child:
    there = {
        numbers[line.id]
        for line in found.failures
        if line.target == each.target and each.name in line.where and line.id in numbers
    }
    return [
        (", " if place else None, tag("a", str(number), href=f"#cause-{number}", title=_title(found, number)))
        for place, number in enumerate(sorted(there))
    ]


def _title(found: Summary, number: int) -> str:
    each = found.causes[number - 1]
    return each.failures[0].why if each.cause is None else each.cause.title
