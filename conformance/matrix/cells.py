"""Runs the scripts of matrix cells, and combines their results into a verdict."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from typing import Any, Final, NamedTuple, final

from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.matrix import history_text
from kipcheck.conformance.matrix.attribution import Cause, first_cause, refusal
from kipcheck.conformance.matrix.groups import BinaryFactory, mixed_group
from kipcheck.conformance.matrix.highlights import with_highlights
from kipcheck.conformance.matrix.play import JudgedScript, judged, played
from kipcheck.conformance.matrix.release_lines import THE_FUTURE, Version, behaviours, in_table, lines
from kipcheck.conformance.matrix.scenario_names import JOIN
from kipcheck.conformance.matrix.scenarios import Pair, possible, scripts

OK, BREAKS, REFUSED = "ok", "breaks", "refused"
SEVERITY: Final = {OK: 0, REFUSED: 1, BREAKS: 2}


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """A scenario with the two releases of an upgrade."""

    scenario: str
    pair: Pair

    @property
    def key(self) -> tuple[str, str, str]:
        """Scenario and exact patches, whatever the names of the releases."""
        return self.scenario, self.pair.old.patch, self.pair.new.patch

    @property
    def edition(self) -> str:
        """The edition whose rebalance protocols members of the future offer: so that one bounce can suffice."""
        return f"apache@{self.pair.old.patch}"

    @property
    def target(self) -> str:
        return f"java:kafka-streams:{self.pair.old.patch} -> {self.pair.new.patch}"


class ScriptResult(NamedTuple):
    """The result of one script."""

    verdict: str
    judged: JudgedScript
    cause: Cause | None


def cells(scenarios: Iterable[str], old: Iterable[Version], new: Iterable[Version], full: bool = False) -> list[Cell]:
    """The cells that exist. ``old``, ``new``: empty for the default releases, which are all with ``full``."""
    froms, tos = tuple(old), tuple(new)
    return [
        Cell(scenario, pair)
        for scenario in scenarios
        for pair in sorted({*_pairs(scenario, froms, tos, full)})
        if not possible(scenario, pair)
    ]


def _pairs(scenario: str, froms: Sequence[Version], tos: Sequence[Version], full: bool) -> Iterator[Pair]:
    usual = lines() if full or scenario == JOIN else behaviours()
    for one in froms or usual:
        yield from (Pair(one, other) for other in tos or (*usual, THE_FUTURE))
    if not froms and not tos and scenario != JOIN:
        # The complete table of the KIP, too, so that each of its cells can be looked up.
        there = starmap(Pair, product(lines(), (*lines(), THE_FUTURE)))
        yield from (pair for pair in there if in_table(*pair))


def verdict_of(judged: JudgedScript, scenario: str) -> ScriptResult:
    """REFUSED if a configuration was refused; effects of the refusal do not count as failures."""
    if judged.refused is not None:
        return ScriptResult(REFUSED, judged, refusal(judged))
    found = first_cause(judged, scenario)
    return ScriptResult(OK if found is None else BREAKS, judged, found)


def worst(found: Iterable[ScriptResult]) -> ScriptResult:
    """The shortest of the worst results; if all are OK, one with the most rebalances."""

    def rank(each: ScriptResult) -> tuple[int, int, int]:
        length = len(each.judged.history.case.steps)
        return SEVERITY[each.verdict], _severity(each), -length

    return max(found, key=rank)


def _severity(result: ScriptResult) -> int:
    """Rank: the death of a thread, then a broken MUST, then other violations; for OK the number of rebalances."""
    if result.verdict == OK:
        return result.judged.rounds
    grades = {each.invariant.grade for each in result.judged.broken}
    return 2 if any(result.judged.deaths) else 1 if Grade.MUST in grades else 0


Outcome = dict[str, Any]
"""The result of a cell as plain data: ``cell`` and ``history`` as in ``reports/matrix.schema.json``, without the
parts that depend on predictions and names."""


def outcome(cell: Cell, made: BinaryFactory) -> Outcome:
    found = [*_script_results(cell, made)]
    bad = worst(found)
    reason = bad.cause
    folded = {
        "verdict": bad.verdict,
        "rounds": max(each.judged.rounds for each in found) if bad.verdict != REFUSED else 0,
        "requirement": reason.requirement if reason else None,
        "reason": reason.reason if reason else None,
        "effect": reason.effect if reason else None,
        "case": bad.judged.history.case.id,
        "scripts": len(found),
        "broken": sum(each.verdict == BREAKS for each in found),
    }
    history = with_highlights(history_text.history_json(bad.judged), bad.judged)
    history |= {key: folded[key] for key in ("verdict", "requirement", "reason")}
    return {"cell": folded, "history": history}


def verdict(cell: Cell, made: BinaryFactory, outcomes: bool = False) -> str:
    """Only the verdict, as soon as it is known. ``outcomes``: see ``judged``."""
    bad = OK
    for each in _script_results(cell, made, outcomes):
        bad = max(bad, each.verdict, key=SEVERITY.__getitem__)
        if bad == BREAKS:
            break
    return bad


def _script_results(cell: Cell, made: BinaryFactory, outcomes: bool = False) -> Iterator[ScriptResult]:
    for script, events in played(mixed_group(made), scripts(cell.scenario, cell.pair)):
        found = judged(script, events, f"matrix/{cell.scenario}", cell.target, cell.edition, outcomes)
        yield verdict_of(found, cell.scenario)
