"""Runs one shard: draws values, runs their cases, judges them and counts the results; or reduces failures.

``run_shard`` is a function of its arguments: it returns the same row on any machine, in any process, whatever ran
before. So its budget is a number of cases and not a time, and all random numbers come from the shard's own seed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.campaign import coverage as campaign_coverage
from kipcheck.conformance.campaign.corpus.entries import Snapshot, plain_text
from kipcheck.conformance.campaign.corpus.value_text import loaded
from kipcheck.conformance.campaign.generate import Batch, batches
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.rows import Count, Found, Kept, Row
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.selection import subjects
from kipcheck.conformance.engine.execution.worker import Finding, Unit, UnitResult, Worker, judged
from kipcheck.conformance.engine.findings import failure_records
from kipcheck.conformance.engine.findings.causes import Context
from kipcheck.conformance.engine.findings.failures import Kind
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Sample
from kipcheck.conformance.targets.protocol import BATCH, Broken, Session, Target, TargetInfo, Unavailable, Unstable
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.session import Limits

BeforeCases: TypeAlias = Callable[[int, Sequence[Case]], None]
"""Called before cases are run: with the number of the first of them in the shard, and the cases."""
TargetFactory: TypeAlias = Callable[[str, Limits | None], Target]

GENEROUS_LIMITS: Final = Limits(batch_s=300.0, cpu_s=20.0, memory_times=10.0)
"""Ten times the usual limits of a case: a case that exceeds these, too, is not merely slow."""
MOST_IDLE_BATCHES: Final = 500
"""After so many consecutive batches without a case the shard ends: some subjects have no cases."""
MOST_RERUNS: Final = 3
"""So many failures of one kind at a limit are rerun alone with higher limits; later ones count as the same."""


def ignore_cases(number: int, cases: Sequence[Case]) -> None:
    """Notes nothing."""


def run_shard(
    shard: Shard, snapshot: Snapshot, note: BeforeCases = ignore_cases, find: TargetFactory = target_of
) -> Row:
    """Raises nothing that a target causes; an exception is a bug in kipcheck."""
    row = shard.empty_row()
    try:
        made = find(shard.target, None)
    except (Unavailable, LookupError) as missing:
        return replace(row, unreached=str(missing)).sealed()
    with ExitStack() as stack:
        worker = stack.enter_context(Worker(shard.target, made, shard.label))
        generous = stack.enter_context(Worker(shard.target, _generous(shard.target, find), shard.label))
        try:
            if shard.stage == "reduce":
                return _reduce(row, shard, worker).sealed()
            return _ShardRun(shard, snapshot, note, worker, generous).row(row).sealed()
        except (Unavailable, Broken, Unstable) as why:
            return replace(row, unreached=str(why)).sealed()


def _generous(name: str, find: TargetFactory) -> Target | Unavailable:
    try:
        return find(name, GENEROUS_LIMITS)
    except Unavailable as missing:
        return missing


# ---- cases


class _Drawn(NamedTuple):
    """A value, with the cases that it gives."""

    batch: Batch
    samples: list[Sample]


@dataclass(slots=True)
class _ShardRun:
    shard: Shard
    snapshot: Snapshot
    note: BeforeCases
    worker: Worker
    generous: Worker
    cases: int = 0
    steps: int = 0
    values: int = 0
    counts: dict[tuple[str, str, int | None, str, str], int] = field(default_factory=dict)
    coverage: set[int] = field(default_factory=set)
    kept: list[Kept] = field(default_factory=list)
    groups: dict[Kind, Found] = field(default_factory=dict)
    reruns: dict[tuple[str, str, str], int] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    unreached: str = ""

    def row(self, row: Row) -> Row:
        try:
            if units := self._units():
                self._run_all(units)
        except (Broken, Unstable) as why:
            self.unreached = str(why)
        counts = (Count(*place, cases) for place, cases in sorted(self.counts.items(), key=repr))
        return replace(
            row,
            cases=self.cases,
            steps=self.steps,
            counts=tuple(counts),
            coverage=tuple(sorted(self.coverage)),
            kept=tuple(self.kept),
            found=tuple(self.groups.values()),
            troubles=tuple(each for session in self.sessions for each in session.troubles),
            breaches=tuple(each for session in self.sessions for each in session.breaches),
            unreached=self.unreached,
        )

    def _units(self) -> Mapping[str, Sequence[Any]]:
        """Check -> its subjects among the target's claims. Errors: ``Unavailable``, ``Broken``."""
        checks = [CHECKS[id] for id in self.shard.checks]
        info = self.worker.info(self.shard.edition, checks[0].role)
        roles = {check.role: None for check in checks if check.role in info.roles}  # each may start a process
        claims = {role: self.worker.session(self.shard.edition, role).info for role in roles}
        found: dict[str, Sequence[Any]] = {}
        for check in checks:
            if check.role in claims:
                claimed = tuple(subjects(check, self.shard.edition, claims[check.role]))
                if claimed:
                    found[check.id] = claimed
        return found

    def _run_all(self, units: Mapping[str, Sequence[Any]]) -> None:
        """Runs values in portions of one edition and role, as large as what a session sends at once."""
        waiting: dict[tuple[str, Role], list[_Drawn]] = {}
        planned = idle = 0
        for batch in batches(self.shard, units, self.snapshot):
            check, before = CHECKS[batch.check], planned
            place = batch.subject.edition, check.role
            supports = self.worker.session(*place).info.claims.supports
            for drawn in self._samples(batch, check):
                samples = [each for each in drawn if supports(each.case)][: self.shard.cases - planned]
                if not samples:
                    continue  # the value gives no cases
                planned += len(samples)
                portion = waiting.setdefault(place, [])
                portion.append(_Drawn(batch, samples))
                if sum(len(each.samples) for each in portion) >= BATCH:
                    self._run_portion(place, waiting.pop(place))
                if planned == self.shard.cases:
                    break
            idle = 0 if planned > before else idle + 1
            if planned == self.shard.cases or idle == MOST_IDLE_BATCHES:
                break
        for place, portion in waiting.items():
            self._run_portion(place, portion)

    def _samples(self, batch: Batch, check: Check[Any]) -> Iterator[list[Sample]]:
        """The samples of each value."""
        for steps, kind in batch.given:
            self.values += 1
            yield [Sample(Case(check.id, batch.subject.edition, check.role, steps), {}, self.values, kind)]
        for value in batch.values:
            self.values += 1
            yield list(check.about_value(batch.subject, value, self.shard.own_seed, self.values))

    def _run_portion(self, place: tuple[str, Role], portion: Sequence["_Drawn"]) -> None:
        session = self.worker.session(*place)
        if session not in self.sessions:
            self.sessions.append(session)
        cases = [sample.case for drawn in portion for sample in drawn.samples]
        self.note(self.cases, cases)
        histories = iter([self._rerun_if_limited(history) for history in converse(cases, session)])
        for _, several in groupby(portion, lambda drawn: id(drawn.batch)):
            self._judge([(drawn, [*islice(histories, len(drawn.samples))]) for drawn in several])

    def _judge(self, several: Sequence[tuple["_Drawn", Sequence[History]]]) -> None:
        """Judges and counts values of one batch with their histories."""
        batch = several[0][0].batch
        check, subject = CHECKS[batch.check], batch.subject
        samples = [sample for drawn, _ in several for sample in drawn.samples]
        self.note(self.cases, [each.case for each in samples])  # that the verdicts take long has a case, too
        unit = Unit(
            self.shard.target, subject.edition, check.id, subject.name, subject.version, self.shard.own_seed, None
        )
        shown_by_all = (history for _, histories in several for history in histories)
        result = judged(unit, samples, shown_by_all, names_cases=False)
        before: dict[int, int] = {}
        """Number of a value -> the cases before it."""
        for drawn, histories in several:
            before[drawn.samples[0].number] = self.cases
            self.cases += len(drawn.samples)
            self.steps += sum(len(each.case.steps) for each in drawn.samples)
            shown = [campaign_coverage.keys(check, subject, each) for each in histories]
            new = self._new(shown)
            if new and not batch.given:
                self._keep(unit, drawn.samples[0], shown, new)
        for finding in result.findings:
            self._found(check, finding, before[finding.number])
        self._count(unit, result)

    def _rerun_if_limited(self, history: History) -> History:
        """Reruns a case that exceeded a limit of time or memory, alone and with ten times the limits.

        The rerun is the result that counts.
        """
        died = next((op for op in history.ops if isinstance(op.observation, Died)), None)
        if died is None:
            return history
        assert isinstance(died.observation, Died)
        if died.observation.cause not in ("timeout", "memory"):
            return history
        sort = history.case.check, died.step.verb, died.observation.cause
        if self.reruns.get(sort, 0) >= MOST_RERUNS:
            return history
        try:
            (rerun,) = converse([history.case], self.generous.session(history.case.edition, history.case.role))
        except (Broken, Unstable):
            self.generous.close()
            return history
        if any(isinstance(op.observation, Died) for op in rerun.ops):
            self.reruns[sort] = self.reruns.get(sort, 0) + 1
        return rerun

    def _count(self, unit: Unit, result: UnitResult) -> None:
        place = unit.check, unit.subject, unit.version
        for _, word, by in result.cases:
            for invariant, came in (("", word), *by.items()):
                key = (*place, invariant, came)
                self.counts[key] = self.counts.get(key, 0) + 1

    def _new(self, shown: Sequence[Sequence[Sequence[int]]]) -> set[int]:
        """The coverage keys that are new; ``shown``: the keys of each step of each case."""
        new = {key for steps in shown for keys in steps for key in keys} - self.snapshot.keys - self.coverage
        self.coverage |= new
        return new

    def _keep(self, unit: Unit, sample: Sample, shown: Sequence[Sequence[Sequence[int]]], new: set[int]) -> None:
        """Keeps the value with its new keys; a conversation is cut after the step that shows the last of them."""
        value = sample.value
        if len(shown) == 1 and value == sample.case.data:
            last = max(number for number, keys in enumerate(shown[0]) if new.intersection(keys))
            value, shown = value[: last + 1], [shown[0][: last + 1]]
        keys = tuple(sorted({key for steps in shown for keys in steps for key in keys}))
        place = unit.check, unit.edition, unit.subject, unit.version
        self.kept.append(Kept(*place, plain_text(value), keys, sum(len(each) for each in shown)))

    def _found(self, check: Check[Any], finding: Finding, before: int) -> None:
        """``before``: the number of cases before those of its value."""
        unit = finding.unit
        group = Kind.of(unit.check, finding.invariant, unit.subject, finding.violation.shape, check.shrinks)
        place = unit.subject, unit.version
        first = self.groups.get(group)
        if first is not None:
            where = first.where if place in first.where else tuple(sorted({*first.where, place}, key=repr))
            self.groups[group] = replace(first, cases=first.cases + 1, where=where)
            return
        case = finding.case
        self.groups[group] = Found(
            check=group.check,
            invariant=group.invariant,
            edition=unit.edition,
            subject=group.subject,
            shape=group.shape,
            why=finding.violation.why,
            case_id=case.id,
            case=json.dumps(case.plain),
            place=place,
            value="" if finding.value == {} else plain_text(finding.value),
            seed=unit.seed,
            number=finding.number,
            kind=finding.kind,
            cases=1,
            at_case=before,
            where=(place,),
        )


# ---- reductions


def _reduce(row: Row, shard: Shard, worker: Worker) -> Row:
    done = [_least(shard, each, worker) for each in shard.reduces]
    return replace(row, cases=len(done), found=tuple(done))


def _least(shard: Shard, found: Found, worker: Worker) -> Found:
    if worker.ran:
        worker.renew()  # earlier cases must have no influence
    worker.ran = True
    check = CHECKS[found.check]
    name, version = found.place
    case = Case.of(json.loads(found.case))
    unit = Unit(shard.target, found.edition, found.check, name, version, found.seed, None)
    value = loaded(found.value) if found.value else {}  # a check's first values may lie outside of its declaration
    history = History(case, shard.target, ())
    finding = Finding(
        unit, history, value, found.number, found.kind, found.invariant, Violation(found.why, (), shape=found.shape)
    )
    try:
        least = shrunk(worker, finding)
    except (Broken, Unstable):
        least = None
    if least is None:
        return found
    stored = failure_records.described(_info(worker, shard, check), [least])
    assert stored.filed is not None
    return replace(found, line=json.dumps(stored.filed.plain), context=json.dumps(Context.of(least).plain))


def _info(worker: Worker, shard: Shard, check: Check[Any]) -> TargetInfo:
    return worker.info(shard.edition, check.role)
