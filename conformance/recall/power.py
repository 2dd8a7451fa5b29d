"""Renders how strong the suite is, in Markdown: the tables of ``docs/internals/power.md``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kipcheck.conformance.engine.catalogue.lint import lint_input
from kipcheck.conformance.engine.reach import record as reach
from kipcheck.conformance.engine.reach.record import Row
from kipcheck.conformance.recall.bugs import KINDS, RESULTS, Bug
from kipcheck.conformance.recall.floor import mutation_rows
from kipcheck.conformance.recall.measure import NOT_COUNTED, Measured
from kipcheck.conformance.recall.mutant_run import RESULTS as OUTCOMES
from kipcheck.conformance.recall.why import WHYS as FACTS

BUGS: Final = "<!-- bugs -->\n", "<!-- end of bugs -->\n"
TOTALS: Final = "<!-- totals of bugs -->\n", "<!-- end of totals of bugs -->\n"
MUTANTS: Final = "<!-- mutants -->\n", "<!-- end of mutants -->\n"
REACH: Final = "<!-- reach -->\n", "<!-- end of reach -->\n"
WHY: Final = "<!-- why missed -->\n", "<!-- end of why missed -->\n"
"""The marks around the tables of the page."""
WHYS: Final = (*FACTS, NOT_COUNTED)
"""Why a bug was missed, or a mutant survived: the first that is so."""
NOT_MEASURED: Final = "not measured"


def sections(bugs: Iterable[Bug], results: Mapping[str, Measured]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The tables of the page, each with its marks."""
    entered, rows = [*bugs], mutation_rows()
    yield TOTALS, [*totals_table(entered)]
    yield WHY, [*why_table(entered, results, rows)]
    yield MUTANTS, [*mutation_table(rows)]
    searched = reach.searched(reach.sources(), lint_input().invariants)
    yield REACH, [*reach_table(reach.rows(searched, reach.Reached.read(), reach.excused()))]
    yield BUGS, [*bug_table(entered)]


def bug_table(bugs: Iterable[Bug]) -> Iterator[str]:
    """A row for each kind: the bugs by today's result. A star marks a guard."""
    by_kind: dict[str, dict[str, list[str]]] = {}
    for bug in sorted(bugs, key=lambda each: (KINDS.index(each.kind), each.id)):
        link = f"[{bug.id}]({bug.link}){'*' if bug.is_guard else ''}"
        by_kind.setdefault(bug.kind, {}).setdefault(bug.today or NOT_MEASURED, []).append(link)
    words = [each for each in (*RESULTS, NOT_MEASURED) if any(each in by for by in by_kind.values())]
    yield from _head("kind", *words)
    for kind, by in by_kind.items():
        yield _row(kind, *(", ".join(by.get(each, ())) for each in words))


def totals_table(bugs: Iterable[Bug]) -> Iterator[str]:
    """The bugs of each kind, by today's result."""
    counted: dict[str, Counter[str]] = {}
    for bug in bugs:
        counted.setdefault(bug.kind, Counter())[bug.today or NOT_MEASURED] += 1
    words = [*(each for each in RESULTS if any(by[each] for by in counted.values())), NOT_MEASURED]
    yield from _head("kind", "bugs", *words)
    for kind in (each for each in KINDS if each in counted):
        yield _row(kind, counted[kind].total(), *(counted[kind][each] for each in words))
    yield _row(
        "all", *(sum(by.total() if each is None else by[each] for by in counted.values()) for each in (None, *words))
    )


def why_table(bugs: Iterable[Bug], results: Mapping[str, Measured], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many bugs were missed, and mutants survived, for each reason."""
    missed = Counter(found.why for bug in bugs if (found := results.get(bug.id)) is not None and found.why)
    survived: Counter[str] = Counter()
    for row in rows:
        survived.update(row.get("why", {}))
    yield from _head("why", "bugs missed", "mutants that survived")
    for each in (*WHYS, *sorted({*missed, *survived} - {*WHYS})):
        yield _row(each, missed[each], survived[each])


def mutation_table(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A row for each client, part and kind of changes: the number of mutants by outcome."""
    yield from _head("client", "release", "part", "changes", "all", *OUTCOMES)
    for row in rows:
        numbers = [row.get(each, 0) for each in OUTCOMES]
        yield _row(row["target"], row["release"], row["part"], row["kind"], sum(numbers), *numbers)


def reach_table(rows: Iterable[Row]) -> Iterator[str]:
    """The branches of all invariants."""
    yield from _head("families", "invariants", "branches", "by cases", "by mutants", "excused")
    every = [*rows]
    counts = (sum(getattr(row, name) for row in every) for name in ("branches", "by_cases", "by_mutants", "excused"))
    yield _row(len({row.invariant.partition("/")[0] for row in every}), len(every), *counts)


def _head(*cells: str) -> tuple[str, str]:
    return _row(*cells), f"|{'---|' * len(cells)}"


def _row(*cells: object) -> str:
    texts = (" ".join(str(each).split()).replace("|", "\\|") for each in cells)
    return "|" + "".join(f" {each} |" if each else " |" for each in texts)
