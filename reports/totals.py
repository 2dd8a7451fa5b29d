"""What every form of a report counts, computed once: causes, distinct failures, and cases by result."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.ledger import Exchanges, HeldBack, LeastCases, Skip, plain
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.reports.coverage import Judged
from kipcheck.reports.phrases import named, some

KINDS = ("FAIL", "WARN", "KNOWN", "NOTE")
"""Of failures and causes: by the grade of what is broken, or KNOWN."""
TENTH = 10
FEWEST = 3
"""The most invariants that a line about those that were seldom judged names."""


@dataclass(frozen=True, slots=True)
class NotJudged:
    """What was not judged of a target, for one reason."""

    target: str
    what: str
    """``176 cases were held back behind a known deviation``"""
    which: Sequence[str]
    """Invariants, or checks with their subjects."""

    def text(self, most: int | None = None) -> str:
        """``kio: 2 invariants were not judged: wire/a, wire/b``. ``most``: the number of names; None: all of them."""
        left = "" if most is None or len(self.which) <= most else f" and {len(self.which) - most} more"
        return f"{self.target}: {self.what}: {', '.join(self.which[:most])}{left}"


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
    played: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Target -> the release whose broker kipcheck played for it, and what it sends that the newest does not serve."""
    held_back: Sequence[HeldBack] = ()
    """The cases that were not run because they look like known deviations."""
    least: LeastCases | None = None
    """None: no least case was searched for."""

    @property
    def not_judged(self) -> list[NotJudged]:
        """All sources of the line ``not judged``, in its order."""
        return [*_behind_deviations(self.held_back), *_of_invariants(self.unjudged)]

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
            "held_back_cases": sum(each.cases for each in self.held_back),
            **({} if self.least is None else {"least_cases": plain(self.least)}),
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
        rows += [] if self.least is None else [("searched", about_searches(self.least))]
        rows += [] if self.exchanges is None else about_exchanges(self.exchanges)
        rows += [("played", played(target, *which)) for target, which in self.played.items()]
        texts = [each.text() for each in self.not_judged]
        rows += [("unjudged", "; ".join(texts))] if texts else []
        return [*rows, *(("seldom", each) for each in seldom_judged(self.judged))]


def played(target: str, release: str, unserved: str) -> str:
    """``client:x: its broker was that of Kafka 3.9.2, since Kafka 4.4.0 does not serve ListOffsets 0``"""
    why = f", since Kafka {NEWEST} does not serve {unserved}, which it sends" if unserved else ""
    return f"{target}: its broker was that of Kafka {release}{why}"


def about_exchanges(found: Exchanges) -> Iterator[tuple[str, str]]:
    """``("judged", "5 exchanges: 2 JoinGroup, 3 Heartbeat")``; then what was not judged, and why."""
    judged = sum(found.judged.values())
    yield "judged", f"{some(judged, 'exchange')}{f': {_listed(found.judged)}' if judged else ''}"
    for reason, by_api in found.left.items():
        yield "unjudged", f"{_listed(by_api)}: {reason}"


def about_searches(found: LeastCases) -> str:
    """``least cases: 12 of 14 found, 2 cut after 30 s``"""
    searched = found.found + found.cut + found.gone
    unusable = "ended early, since the target could not be used"
    cut = unusable if found.limit_s is None else f"cut after {found.limit_s:g} s"
    numbers = {cut: found.cut, "did not fail again": found.gone, "left out": found.left_out}
    parts = [f"{found.found} of {searched} found"] if searched else []
    return f"least cases: {', '.join([*parts, *(f'{number} {what}' for what, number in numbers.items() if number)])}"


def counted(numbers: Mapping[str, int]) -> str:
    """``56: 40 FAIL, 10 WARN, 6 NOTE``; ``none``."""
    total = sum(numbers.values())
    return f"{total:,}: {_listed(numbers)}" if total else "none"


def held_back(line: HeldBack) -> str:
    """Why cases were not run."""
    behind = f"failure {line.failure}" if line.failure else "a death that did not occur when its case was run alone"
    place = named(line.subject, "" if line.version is None else str(line.version))
    return f"{some(line.cases, 'case')} of {place} held back: they look like {behind}"


def _behind_deviations(lines: Iterable[HeldBack]) -> Iterator[NotJudged]:
    cases: dict[str, Counter[str]] = {}
    for each in lines:
        cases.setdefault(each.target, Counter())[f"{each.check} on {each.subject}"] += each.cases
    for target, places in cases.items():
        what = f"{_were(places.total(), 'case')} held back behind a known deviation"
        yield NotJudged(target, what, [*places])


def _of_invariants(unjudged: Mapping[str, Sequence[str]]) -> Iterator[NotJudged]:
    for target, ids in unjudged.items():
        yield NotJudged(target, f"{_were(len(ids), 'invariant')} not judged", ids)


def _were(number: int, name: str) -> str:
    return f"{some(number, name)} {'was' if number == 1 else 'were'}"


def seldom_judged(judged: Mapping[str, Mapping[str, Judged]]) -> Iterator[str]:
    """``kio: 3 of 40 invariants were judged in few cases: wire/a in 1 of 90, wire/b in 2 of 90``: those that judged a
    tenth of their cases at most, and one at least; the fewest first, ``FEWEST`` of them."""
    for target, by in judged.items():
        few = [(each.judged, id, each) for id, each in by.items() if 0 < each.judged * TENTH <= each.cases]
        if few:
            shown = ", ".join(f"{id} in {each.judged} of {each.cases}" for _, id, each in sorted(few)[:FEWEST])
            were = "was" if len(few) == 1 else "were"
            yield f"{target}: {len(few)} of {some(len(by), 'invariant')} {were} judged in few cases: {shown}"


NO_ROLE: Final = "the target does not play the role"
"""The beginning of the reason why the checks of a role are skipped."""


def grouped_skips(skips: Iterable[Skip]) -> Iterator[tuple[str, list[str], str]]:
    """Target, checks and reason, together for all roles that a target does not play."""
    roles: dict[str, list[str]] = {}
    alike: dict[tuple[str, str], list[str]] = {}
    for each in skips:
        is_role = each.why.startswith(f"{NO_ROLE} ")
        if is_role and (role := each.why.removeprefix(NO_ROLE).strip()) not in roles.setdefault(each.target, []):
            roles[each.target].append(role)
        alike.setdefault((each.target, NO_ROLE if is_role else each.why), []).append(each.check)
    for (target, why), checks in alike.items():
        names = roles.get(target, [])
        yield target, checks, f"{why}{'s' * (len(names) > 1)} {', '.join(names)}" if why == NO_ROLE else why


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
