"""What the rows of a campaign say of failures: each distinct one, with its least case, and what comes and goes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kipcheck.conformance.campaign.rows import Found, Group, Row
from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.core.case import Case
from kipcheck.conformance.core.history import Died, History, Lost, Op
from kipcheck.conformance.core.ledger import Line
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.engine import failure_records
from kipcheck.conformance.engine.failures import Members, gathered, united
from kipcheck.conformance.engine.known.match import where_of
from kipcheck.conformance.engine.known.rules import Place
from kipcheck.conformance.engine.worker import Finding, Unit
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo

DOWN: Final = frozenset({"timeout", "memory", "crashed", "garbled"})
"""What a row of the stage ``hold`` says where the child of its shard went down, and took the target with it."""
BESIDES: Final = ("format", "case", "stderr")
"""What the file of a failure holds and its line does not."""
SURVIVES: Final = "survives"
"""The invariant that a target breaks by going down."""
Kind: TypeAlias = tuple[str, Group]
"""Target and group: what is reduced once in a campaign."""


@dataclass(frozen=True, slots=True)
class Told:
    line: Line
    """Of the ledger; how to reproduce it is not told yet."""
    filed: Line | None
    """What its file holds."""


@dataclass(frozen=True, slots=True)
class Findings:
    failures: list[Told] = field(default_factory=list)
    """Distinct ones, in the order in which they were met."""
    flaky: list[Told] = field(default_factory=list)
    """What failed in a shard and did not, or not always, when it was run alone."""


@dataclass(slots=True)
class _Seen:
    """Of all shards."""

    first: Found
    info: TargetInfo
    met: Line
    cases: int = 0
    where: set[Place] = field(default_factory=set)
    alone: list[str] = field(default_factory=list)
    """``Found.line`` of each shard that looked for the least case."""


def findings(rows: Iterable[Row]) -> Findings:
    """Of rows in the order of their keys."""
    seen: dict[Kind, _Seen] = {}
    down: list[tuple[TargetInfo, Finding, Line]] = []
    held: dict[str, int] = {}
    for row in rows:
        info = TargetInfo(row.target, row.target_version, "", "", frozenset())
        before = held.get(row.target, 0)
        for each in row.found:
            kind = row.target, each.group
            if row.stage == "reduce":
                if kind in seen:
                    seen[kind].alone.append(each.line)
                continue
            if kind not in seen:
                seen[kind] = _Seen(each, info, _met(row, before + each.at_case))
            seen[kind].cases += each.cases
            seen[kind].where.update(each.where)
        if row.stage == "hold":
            if row.status in DOWN and row.case:
                down.append((info, _downed(row), _met(row, before + (row.at_case or 0))))
            held[row.target] = before + row.cases
    by_id: dict[str, Members] = {}
    flaky: dict[str, Members] = {}
    for some in seen.values():
        again = [each for each in some.alone if each]
        told = _told(some, json.loads(again[0]) if again else _unreduced(some))
        into = flaky if len(again) < len(some.alone) else by_id
        into.setdefault(told[0]["id"], []).append(told)
    for info, finding, met in down:
        line, filed = failure_records.told(info, [finding])
        by_id.setdefault(line["id"], []).append(({**line, "first": met}, {**filed, "first": met}))
    return Findings([*_distinct(by_id)], [*_distinct(flaky)])


def _met(row: Row, cases: int) -> Line:
    """Where it was met first, after so many cases with the target."""
    return {"campaign": row.campaign, "round": row.round, "shard": row.shard, "cases": cases}


def _distinct(by_id: Mapping[str, Members]) -> Iterator[Told]:
    for members in gathered(by_id):
        line, filed = united(members)
        met = min((each["first"] for each, _ in members), key=lambda first: (first["round"], first["shard"]))
        line = {**line, "first": met}
        yield Told(line, None if filed is None else {**filed, **line})


def _told(some: _Seen, filed: Line) -> tuple[Line, Line]:
    """With all cases and places of the group, and not only those that were looked at for the least one."""
    filed = {**filed, "cases": some.cases, "where": where_of(some.where), "first": some.met}
    return {key: each for key, each in filed.items() if key not in BESIDES}, filed


def _unreduced(some: _Seen) -> Line:
    """As the shard told of it, where nobody has looked for the least case, or it did not fail alone."""
    found = some.first
    case = Case.of(json.loads(found.case))
    history = History(case, some.info.name, tuple(Op(k, step, Lost("not kept")) for k, step in enumerate(case.steps)))
    violation = Violation(found.why, (len(case.steps) - 1,), shape=found.shape)
    finding = _finding(some.info.name, found.check, found.place, history, found.invariant, violation)
    # What came back is not kept, so there is nothing to show but the sentences.
    _, filed = failure_records.told(some.info, [finding])
    return {**filed, "shrunk": False}


def _downed(row: Row) -> Finding:
    """The case that ran when the child of a shard went down, as it is told where a target in a child of its own does.

    Which of its steps it was nobody knows: the last one is named, up to which it may have come.
    """
    case = Case.of(json.loads(row.case))
    detail, _, said = row.detail.partition("\n")
    died = Died(row.status, detail, said)
    last = len(case.steps) - 1
    ops = tuple(Op(k, step, died if k == last else Lost("it went down")) for k, step in enumerate(case.steps))
    history = History(case, row.target, ops)
    survives = next(each for each in all_invariants(case.role) if each.id == SURVIVES)
    return _finding(row.target, case.check, _place(case), history, SURVIVES, next(survives.search(history)))


def _finding(target: str, check: str, place: Place, history: History, invariant: str, violation: Violation) -> Finding:
    unit = Unit(target, history.case.edition, check, *place, seed=0, values=None)
    return Finding(unit, history, {}, 0, "", invariant, violation, violation.shape)


def _place(case: Case) -> Place:
    """Subject and version of a case that came without them."""
    family = CHECKS[case.check].family
    named = family.place(case.steps[0])
    subjects = [(each.name, each.version) for each in family.subjects(case.edition)]
    return named if named is not None and named in subjects else subjects[0]
