"""What every form of a report counts, computed once: causes, distinct failures, and cases by result."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kipcheck.conformance.core.ledger import Exchanges
from kipcheck.reports.coverage import Judged
from kipcheck.reports.phrases import some

KINDS = ("FAIL", "WARN", "KNOWN", "NOTE")
"""Of failures and causes: by the grade of what is broken, or KNOWN."""
TENTH = 10
FEWEST = 3
"""The most invariants that a line about those that were seldom judged names."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Its numbers stand in each form; ``plain`` is their JSON and ``lines`` their text."""

    causes: Mapping[str, int]
    """By kind, in the order of ``KINDS``. A failure without a cause counts as one."""
    severities: Mapping[str, int]
    """Causes of the kinds FAIL and WARN, by severity, the gravest first."""
    failures: Mapping[str, int]
    """Distinct ones, by kind."""
    cases: Mapping[str, int]
    """By result, of all checks and targets; at least the usual ones."""
    flaky: int
    stale: int
    skipped: int
    """Checks that were not run with a target."""
    unjudged: Mapping[str, Sequence[str]]
    """Target -> invariants that no case judged; targets without such are left out."""
    judged: Mapping[str, Mapping[str, Judged]] = field(default_factory=dict)
    """Target -> invariant -> cases."""
    exchanges: Exchanges | None = None
    """Of a watch; None: the ledger is of no watch."""
    played: Mapping[str, str] = field(default_factory=dict)
    """Target -> the release whose broker kipcheck played for it."""

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "causes": dict(self.causes),
            "severities": dict(self.severities),
            "failures": dict(self.failures),
            "cases": dict(self.cases),
            "flaky": self.flaky,
            "stale": self.stale,
            "skipped_checks": self.skipped,
            "unjudged_invariants": {target: list(ids) for target, ids in self.unjudged.items()},
            **({} if self.exchanges is None else {"exchanges": {
                "judged": sum(self.exchanges.judged.values()),
                "not judged": sum(sum(by.values()) for by in self.exchanges.left.values()),
            }}),
        }  # fmt: skip

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Name and text: ``("failures", "56: 40 FAIL, 10 WARN, 6 NOTE")``. Numbers of zero are left out."""
        rows = [(name, counted(getattr(self, name))) for name in ("causes", "failures", "cases")]
        if self.severities:
            rows.insert(1, ("effects", _listed(self.severities)))
        besides = {"flaky failure": self.flaky, "skipped check": self.skipped}
        texts = [some(number, name) for name, number in besides.items() if number]
        texts += [f"{self.stale} stale {'entry' if self.stale == 1 else 'entries'}"] if self.stale else []
        rows += [("besides", ", ".join(texts))] if texts else []
        rows += [] if self.exchanges is None else about_exchanges(self.exchanges)
        rows += [("played", played(target, release)) for target, release in self.played.items()]
        rows += [("unjudged", not_judged(target, ids)) for target, ids in self.unjudged.items()]
        return [*rows, *(("seldom", each) for each in seldom_judged(self.judged))]


def played(target: str, release: str) -> str:
    """``client:x: its broker was that of Kafka 3.9.2``"""
    return f"{target}: its broker was that of Kafka {release}"


def about_exchanges(found: Exchanges) -> Iterator[tuple[str, str]]:
    """``("judged", "5 exchanges: 2 JoinGroup, 3 Heartbeat")``; then what was not judged, and why."""
    judged = sum(found.judged.values())
    yield "judged", f"{some(judged, 'exchange')}{f': {_listed(found.judged)}' if judged else ''}"
    for reason, by_api in found.left.items():
        yield "unjudged", f"{_listed(by_api)}: {reason}"


def counted(numbers: Mapping[str, int]) -> str:
    """``56: 40 FAIL, 10 WARN, 6 NOTE``; ``none``."""
    total = sum(numbers.values())
    return f"{total:,}: {_listed(numbers)}" if total else "none"


def not_judged(target: str, ids: Sequence[str], most: int | None = None) -> str:
    """``kio: 2 invariants were not judged: wire/a, wire/b``. ``most``: the number of ids; None: all of them."""
    left = "" if most is None or len(ids) <= most else f" and {len(ids) - most} more"
    were = "was" if len(ids) == 1 else "were"
    return f"{target}: {some(len(ids), 'invariant')} {were} not judged: {', '.join(ids[:most])}{left}"


def seldom_judged(judged: Mapping[str, Mapping[str, Judged]]) -> Iterator[str]:
    """``kio: 3 of 40 invariants were judged in few cases: wire/a in 1 of 90, wire/b in 2 of 90``: those that judged a
    tenth of their cases at most, and one at least; the fewest first, ``FEWEST`` of them."""
    for target, by in judged.items():
        few = [(each.judged, id, each) for id, each in by.items() if 0 < each.judged * TENTH <= each.cases]
        if few:
            shown = ", ".join(f"{id} in {each.judged} of {each.cases}" for _, id, each in sorted(few)[:FEWEST])
            were = "was" if len(few) == 1 else "were"
            yield f"{target}: {len(few)} of {some(len(by), 'invariant')} {were} judged in few cases: {shown}"


def not_begun(cases: Mapping[tuple[str, str, str], int]) -> Iterator[str]:
    """``client:x: client/groups: 4 cases skipped: the command lacks {instance}``."""
    for (target, check, why), number in cases.items():
        yield f"{target}: {check}: {some(number, 'case')} skipped: {why}"


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number)


def by_kind(kinds: Iterable[str]) -> dict[str, int]:
    found = Counter(kinds)
    return {each: found[each] for each in KINDS}


def by_result(results: Iterable[str], counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several counts, with these results in this order, and others after them."""
    found = Counter(dict.fromkeys(results, 0))
    for each in counts:
        found.update(each)
    return dict(found)
