"""Derives the failures of a campaign from its summary: the distinct ones with their least cases, and the flaky ones."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kipcheck.conformance.campaign.summary import At, DownSummary, KindSummary, TargetSummary
from kipcheck.conformance.core.ledger import Failure, FiledFailure, FirstFound, where_of
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Died, History, Lost, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.worker import Finding, Unit
from kipcheck.conformance.engine.findings import failure_records
from kipcheck.conformance.engine.findings.causes import Context
from kipcheck.conformance.engine.findings.failures import DistinctFailure, distinct_failures, united
from kipcheck.conformance.engine.known.rules import SubjectVersion
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo

SURVIVES: Final = "survives"
"""The invariant that a target breaks when its process dies."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Their commands to reproduce them are empty: they depend on the place of the file."""

    failures: list[DistinctFailure] = field(default_factory=list)
    """Distinct ones, in the order in which they were found."""
    flaky: list[DistinctFailure] = field(default_factory=list)
    """Failures in a shard that did not occur, or not every time, when their cases were run alone."""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    """By id of the failure, of its least case."""


def findings(
    campaign: str,
    targets: Mapping[str, TargetSummary],
    names: Mapping[str, str] = MappingProxyType({}),
) -> Findings:
    """``names``: of targets in results, if they have others there."""
    failures: list[tuple[At, DistinctFailure]] = []
    flaky: list[tuple[At, DistinctFailure]] = []
    contexts: dict[tuple[str, str, str], Context] = {}
    """By target, invariant and least case."""
    for opened, target in targets.items():
        info = _info(opened, target, names)
        for kind in target.kinds.values():
            again = [each for _, each in kind.alone if each.line]
            stored = _stored(
                campaign, kind, FiledFailure.of(json.loads(again[0].line)) if again else _unreduced(kind, info)
            )
            (flaky if len(again) < len(kind.alone) else failures).append((kind.at, stored))
            if again and again[0].context:
                contexts[_least_case(stored.line)] = Context.read(json.loads(again[0].context))
    every = [each for _, each in sorted(failures, key=lambda found: found[0])]
    every += [each for _, each in sorted(_down(campaign, targets, names), key=lambda found: found[0])]
    every = [*_distinct(every)]
    known = {each.line.id: contexts[_least_case(each.line)] for each in every if _least_case(each.line) in contexts}
    return Findings(every, [*_distinct(each for _, each in sorted(flaky, key=lambda found: found[0]))], known)


def _info(opened: str, target: TargetSummary, names: Mapping[str, str]) -> TargetInfo:
    name = names.get(opened, opened)
    return TargetInfo(name, target.version, "", "", frozenset(), command=opened if name != opened else "")


def _down(
    campaign: str, targets: Mapping[str, TargetSummary], names: Mapping[str, str]
) -> Iterator[tuple[At, DistinctFailure]]:
    for opened, target in targets.items():
        info = _info(opened, target, names)
        for down in target.down.values():
            stored = failure_records.described(info, [_downed(info.name, down)])
            assert stored.filed is not None
            met = {"first": _met(campaign, down.met.first, down.before), "cases": down.met.times}
            yield down.met.first, DistinctFailure(stored.line.update(**met), stored.filed.update(**met))


def _least_case(line: Failure) -> tuple[str, str, str]:
    return line.target, line.invariant, line.case_id


def _met(campaign: str, at: At, cases: int) -> FirstFound:
    """Where it was found first, after so many cases with the target."""
    return FirstFound(campaign=campaign, round=at[0], shard=at[1], cases=cases)


def _distinct(found: Iterable[DistinctFailure]) -> Iterator[DistinctFailure]:
    for group in distinct_failures(found):
        stored = united(group)
        met = [each.line.first for each in group.members if each.line.first is not None]
        line = stored.line.update(first=min(met, key=lambda first: (first.round, first.shard)))
        yield DistinctFailure(line, None if stored.filed is None else stored.filed.with_line(line))


def _stored(campaign: str, kind: KindSummary, filed: FiledFailure) -> DistinctFailure:
    """With all cases and places of the group, and not only those of the shard that searched for the least case."""
    first = _met(campaign, kind.at, kind.before)
    filed = filed.update(cases=kind.cases, where=where_of(kind.where), first=first)
    return DistinctFailure(filed.line, filed)


def _unreduced(kind: KindSummary, info: TargetInfo) -> FiledFailure:
    """As the shard found it: there was no search for the least case, or the case did not fail when it was run alone."""
    found = kind.first
    case = Case.of(json.loads(found.case))
    history = History(case, info.name, tuple(Op(k, step, Lost("not kept")) for k, step in enumerate(case.steps)))
    violation = Violation(found.why, (len(case.steps) - 1,), shape=found.shape)
    finding = _finding(info.name, found.check, found.place, history, found.invariant, violation)
    # Rows do not contain the answers of the target: exhibits show the steps only.
    stored = failure_records.described(info, [finding])
    assert stored.filed is not None
    return stored.filed.update(shrunk=False)


def _downed(target: str, down: DownSummary) -> Finding:
    """The case that ran when the child process of a shard died, as a finding of a target that died in it.

    The guilty step is not known: the last one is named.
    """
    row = down.row
    case = Case.of(json.loads(row.case))
    detail, _, said = row.detail.partition("\n")
    died = Died(row.status, detail, said)
    last = len(case.steps) - 1
    ops = tuple(Op(k, step, died if k == last else Lost("it went down")) for k, step in enumerate(case.steps))
    history = History(case, target, ops)
    survives = next(each for each in all_invariants(case.role) if each.id == SURVIVES)
    return _finding(target, case.check, down.place, history, SURVIVES, next(survives.search(history)))


def _finding(
    target: str, check: str, place: SubjectVersion, history: History, invariant: str, violation: Violation
) -> Finding:
    unit = Unit(target, history.case.edition, check, *place, seed=0, values=None)
    return Finding(unit, history, {}, 0, "", invariant, violation, violation.shape)
