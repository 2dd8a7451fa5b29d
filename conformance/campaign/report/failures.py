"""Derives the failures of a campaign from its rows: the distinct ones with their least cases, and the flaky ones."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from kipcheck.conformance.campaign.rows import Found, Row
from kipcheck.conformance.core.ledger import Failure, FiledFailure, FirstFound, where_of
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Died, History, Lost, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.worker import Finding, Unit
from kipcheck.conformance.engine.findings import failure_records
from kipcheck.conformance.engine.findings.causes import Context
from kipcheck.conformance.engine.findings.failures import DistinctFailure, Kind, distinct_failures, united
from kipcheck.conformance.engine.known.rules import SubjectVersion
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo

DOWN: Final = frozenset({"timeout", "memory", "crashed", "garbled"})
"""Statuses of a row of the stage ``hold`` for a shard whose child process died, with the target in it."""
SURVIVES: Final = "survives"
"""The invariant that a target breaks when its process dies."""
Reduced: TypeAlias = tuple[str, Kind]
"""Target and kind of failure: a campaign shrinks it once."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Their commands to reproduce them are empty: they depend on the place of the file."""

    failures: list[DistinctFailure] = field(default_factory=list)
    """Distinct ones, in the order in which they were found."""
    flaky: list[DistinctFailure] = field(default_factory=list)
    """Failures in a shard that did not occur, or not every time, when their cases were run alone."""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    """By id of the failure, of its least case."""


@dataclass(slots=True)
class _Seen:
    """A kind of failure, in all shards."""

    first: Found
    info: TargetInfo
    met: FirstFound
    cases: int = 0
    where: set[SubjectVersion] = field(default_factory=set)
    alone: list[Found] = field(default_factory=list)
    """Of each shard that searched for the least case."""


def findings(rows: Iterable[Row], commands: Mapping[str, str] = MappingProxyType({})) -> Findings:
    """Of rows in the order of their keys. ``commands``: how targets are opened that have another name in results."""
    seen: dict[Reduced, _Seen] = {}
    down: list[tuple[TargetInfo, Finding, FirstFound]] = []
    held: dict[str, int] = {}
    for row in rows:
        command = commands.get(row.target, "")
        info = TargetInfo(row.target, row.target_version, "", "", frozenset(), command=command)
        before = held.get(row.target, 0)
        for each in row.found:
            kind = row.target, each.group
            if row.stage == "reduce":
                if kind in seen:
                    seen[kind].alone.append(each)
                continue
            if kind not in seen:
                seen[kind] = _Seen(each, info, _met(row, before + each.at_case))
            seen[kind].cases += each.cases
            seen[kind].where.update(each.where)
        if row.stage == "hold":
            if row.status in DOWN and row.case:
                down.append((info, _downed(row), _met(row, before + (row.at_case or 0))))
            held[row.target] = before + row.cases
    failures: list[DistinctFailure] = []
    flaky: list[DistinctFailure] = []
    contexts: dict[tuple[str, str, str], Context] = {}
    """By target, invariant and least case."""
    for some in seen.values():
        again = [each for each in some.alone if each.line]
        into = flaky if len(again) < len(some.alone) else failures
        into.append(_stored(some, FiledFailure.of(json.loads(again[0].line)) if again else _unreduced(some)))
        if again and again[0].context:
            contexts[_least_case(into[-1].line)] = Context.read(json.loads(again[0].context))
    for info, finding, met in down:
        stored = failure_records.described(info, [finding])
        assert stored.filed is not None
        failures.append(DistinctFailure(stored.line.update(first=met), stored.filed.update(first=met)))
    every = [*_distinct(failures)]
    known = {each.line.id: contexts[_least_case(each.line)] for each in every if _least_case(each.line) in contexts}
    return Findings(every, [*_distinct(flaky)], known)


def _least_case(line: Failure) -> tuple[str, str, str]:
    return line.target, line.invariant, line.case_id


def _met(row: Row, cases: int) -> FirstFound:
    """Where it was found first, after so many cases with the target."""
    return FirstFound(campaign=row.campaign, round=row.round, shard=row.shard, cases=cases)


def _distinct(found: Iterable[DistinctFailure]) -> Iterator[DistinctFailure]:
    for group in distinct_failures(found):
        stored = united(group)
        met = [each.line.first for each in group.members if each.line.first is not None]
        line = stored.line.update(first=min(met, key=lambda first: (first.round, first.shard)))
        yield DistinctFailure(line, None if stored.filed is None else stored.filed.with_line(line))


def _stored(some: _Seen, filed: FiledFailure) -> DistinctFailure:
    """With all cases and places of the group, and not only those of the shard that searched for the least case."""
    filed = filed.update(cases=some.cases, where=where_of(some.where), first=some.met)
    return DistinctFailure(filed.line, filed)


def _unreduced(some: _Seen) -> FiledFailure:
    """As the shard found it: there was no search for the least case, or the case did not fail when it was run alone."""
    found = some.first
    case = Case.of(json.loads(found.case))
    history = History(case, some.info.name, tuple(Op(k, step, Lost("not kept")) for k, step in enumerate(case.steps)))
    violation = Violation(found.why, (len(case.steps) - 1,), shape=found.shape)
    finding = _finding(some.info.name, found.check, found.place, history, found.invariant, violation)
    # Rows do not contain the answers of the target: exhibits show the steps only.
    stored = failure_records.described(some.info, [finding])
    assert stored.filed is not None
    return stored.filed.update(shrunk=False)


def _downed(row: Row) -> Finding:
    """The case that ran when the child process of a shard died, as a finding of a target that died in it.

    The guilty step is not known: the last one is named.
    """
    case = Case.of(json.loads(row.case))
    detail, _, said = row.detail.partition("\n")
    died = Died(row.status, detail, said)
    last = len(case.steps) - 1
    ops = tuple(Op(k, step, died if k == last else Lost("it went down")) for k, step in enumerate(case.steps))
    history = History(case, row.target, ops)
    survives = next(each for each in all_invariants(case.role) if each.id == SURVIVES)
    return _finding(row.target, case.check, _place(case), history, SURVIVES, next(survives.search(history)))


def _finding(
    target: str, check: str, place: SubjectVersion, history: History, invariant: str, violation: Violation
) -> Finding:
    unit = Unit(target, history.case.edition, check, *place, seed=0, values=None)
    return Finding(unit, history, {}, 0, "", invariant, violation, violation.shape)


def _place(case: Case) -> SubjectVersion:
    """Subject and version of a case that came without them."""
    family = CHECKS[case.check].family
    named = family.place(case.steps[0])
    subjects = [(each.name, each.version) for each in family.subjects(case.edition)]
    return named if named is not None and named in subjects else subjects[0]
