"""The share of a run that one process does: one check on one subject, and the shrinking of a failure."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from kipcheck.conformance.checks import CHECKS, Check
from kipcheck.conformance.checks.declare import Sample
from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Result, Verdict, Violation, worst
from kipcheck.conformance.engine.answer_digest import gist
from kipcheck.conformance.engine.converse import converse, judge
from kipcheck.conformance.engine.pool import pool
from kipcheck.conformance.invariants.registry import Invariant, all_invariants
from kipcheck.conformance.targets.protocol import Broken, NotPlayed, Session, Target, TargetInfo, Unavailable, Unstable
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.strategies.parse import belongs
from kipcheck.strategies.reduce import reduce

TRIES = 300
"""At most so many smaller values are tried for one failure."""
DEADLY_TRIES = 24
"""Where each try that fails costs a process, and perhaps all the time that a case may take."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One check on one subject, with one target: what is handed to a worker."""

    target: str
    edition: str
    check: str
    subject: str
    """A message, an assignor or a machine."""
    version: int | None
    """Of a message."""
    seed: int
    values: int | None
    compared: bool = False
    """Is what it answers held against what other targets answer?"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that breaks an invariant."""

    unit: Unit
    history: History
    value: Any
    number: int
    kind: str
    invariant: str
    violation: Violation
    shape: tuple[str, ...] = ()
    """Of the violation, and of what is left in the value once it is shrunk."""

    @property
    def case(self) -> Case:
        return self.history.case


@dataclass(frozen=True, slots=True)
class UnitResult:
    unit: Unit
    cases: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Case id, what came of it, and the result by invariant."""
    findings: list[Finding] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """Of each case, where targets are compared: the gist of what was answered."""
    troubles: list[str] = field(default_factory=list)
    """Deaths that belong to no case."""
    breaches: list[str] = field(default_factory=list)
    """Of the testee protocol."""
    unreached: str = ""
    """Why it was not held at all."""
    gave_up: bool = False
    """Was that because no more can be asked of the target?"""


LATE: Final = "not reached within the budget"


class Worker:
    """Keeps sessions with one target, one for each role and edition.

    Errors of its methods: ``Unavailable``, ``Broken``, ``Unstable``.
    """

    def __init__(self, name: str, target: Target | Unavailable) -> None:
        self.name = name
        self._target = target
        self._open: dict[tuple[str, Role], tuple[AbstractContextManager[Session], Session]] = {}
        self._broken: Broken | None = None

    def session(self, edition: str, role: Role) -> Session:
        if isinstance(self._target, Unavailable):
            raise self._target
        if self._broken is not None:
            raise self._broken
        if (edition, role) not in self._open:
            manager = self._target.open(edition, role)
            try:
                self._open[edition, role] = manager, manager.__enter__()
            except Broken as why:
                self._broken = why  # to find that out may have taken a deadline
                raise
        return self._open[edition, role][1]

    def info(self, edition: str, role: Role) -> TargetInfo:
        """By a session in that role, or in another one if it does not play that."""
        try:
            return self.session(edition, role).info
        except NotPlayed as other:
            return other.info

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for manager, _ in self._open.values():
            manager.__exit__(None, None, None)
        self._open.clear()
        self._broken = None

    def hold(self, unit: Unit) -> UnitResult:
        """Where no more can be asked of the target, that is the result, and nothing is raised but ``Unavailable``."""
        told = self._broken
        try:
            session = self.session(unit.edition, CHECKS[unit.check].role)
        except Broken as why:
            return UnitResult(unit, breaches=[] if told else [str(why)], unreached=str(why), gave_up=True)
        try:
            return self._held(unit, session)
        except (Broken, Unstable) as why:
            return UnitResult(unit, unreached=str(why), gave_up=True)  # the session has told it

    def _held(self, unit: Unit, session: Session) -> UnitResult:
        samples = drawn(unit.check, unit.edition, unit.subject, unit.version, unit.seed, unit.values)
        troubles, breaches = len(session.troubles), len(session.breaches)
        result = judged(unit, samples, converse([each.case for each in samples], session))
        result.troubles.extend(session.troubles[troubles:])
        result.breaches.extend(session.breaches[breaches:])
        return result

    def first(self, unit: Unit, invariant: Invariant) -> Finding | None:
        """The first of its cases that breaks the invariant; none after it is drawn."""
        check = CHECKS[unit.check]
        subject = check.family.subject(unit.edition, unit.subject, unit.version)
        for sample in check.samples(subject, unit.seed, unit.values):
            if (found := self.violation(sample.case, invariant)) is not None:
                history, violation = found
                about = unit, history, sample.value, sample.number, sample.kind
                return Finding(*about, invariant.id, violation)
        return None

    def violation(self, case: Case, invariant: Invariant) -> tuple[History, Violation] | None:
        """Held on its own, how does the case break the invariant?"""
        return next(self.violations([case], invariant), None)

    def violations(self, cases: list[Case], invariant: Invariant) -> Iterator[tuple[History, Violation]]:
        """Those of the cases, of one edition and role, that break the invariant."""
        for history in converse(cases, self.session(cases[0].edition, cases[0].role)) if cases else ():
            for verdict in judge(history, (invariant,)):
                if verdict.violations:
                    yield history, verdict.violations[0]


def judged(unit: Unit, samples: Iterable[Sample], histories: Iterable[History]) -> UnitResult:
    """What came of the cases of a unit, and what they break."""
    result, check = UnitResult(unit), CHECKS[unit.check]
    for sample, history in zip(samples, histories, strict=True):
        verdicts = list(judge(history, invariants_of(check)))
        by = {each.invariant: each.result.name for each in verdicts}
        result.cases.append((sample.case.id, _word(verdicts, check.role), by))
        for verdict in verdicts:
            if verdict.result is Result.FAIL:
                about = result.unit, history, sample.value, sample.number, sample.kind
                result.findings.append(Finding(*about, verdict.invariant, verdict.violations[0]))
        if unit.compared:
            result.answers.append(gist(history))
    return result


@lru_cache(8)
def drawn(
    check: str, edition: str, subject: str, version: int | None, seed: int, values: int | None
) -> tuple[Sample, ...]:
    """Of a unit. Targets that are held one after the other are held with the same ones: they are kept for a while."""
    found = CHECKS[check]
    return tuple(found.samples(found.family.subject(edition, subject, version), seed, values))


@cache
def invariants_of(check: Check[Any]) -> tuple[Invariant, ...]:
    """Those that a check names, and those that bind every target."""
    return tuple(each for each in all_invariants(check.role) if each.role is None or each.id in check.invariants)


def _word(verdicts: list[Verdict], role: Role) -> str:
    """For the case as a whole: WARN and NOTE where nothing worse is broken than a SHOULD or an INFO."""
    grades = {each.id: each.grade for each in all_invariants(role)}
    broken = {grades[each.invariant] for each in verdicts if each.result is Result.FAIL}
    if broken:
        return "FAIL" if Grade.MUST in broken else "WARN" if Grade.SHOULD in broken else "NOTE"
    return worst(verdicts).name


def unshrunk(finding: Finding) -> Finding:
    """As it was found, where there is no time to look for less."""
    return replace(finding, shape=finding.violation.shape)


def shrunk(worker: Worker, finding: Finding) -> Finding | None:
    """With the least case found that fails in the same way; None where the case alone does not fail at all."""
    check, unit = CHECKS[finding.unit.check], finding.unit
    subject = check.family.subject(unit.edition, unit.subject, unit.version)
    invariant = next(each for each in all_invariants(check.role) if each.id == finding.invariant)
    again = worker.violation(finding.case, invariant)
    remembers = again is None
    if again is None:
        worker.close()  # what the target remembers may hide it: once more, with a fresh session
        again = worker.violation(finding.case, invariant)
    if again is None:
        return None
    history, violation = again
    wanted = violation.shape
    best = replace(finding, history=history, violation=violation, shape=wanted)
    if not check.shrinks or remembers:
        return best
    tried: set[str] = set()
    most = DEADLY_TRIES if wanted[:1] == ("died",) else TRIES

    def fails(value: Any) -> bool:
        nonlocal best
        if repr(value) in tried or len(tried) == most:
            return False
        tried.add(repr(value))
        cases = list(check.cases(subject, value, unit.seed, finding.number, finding.kind))
        for told, found in worker.violations(cases, invariant):
            if found.shape == wanted:
                best = replace(best, history=told, value=value, violation=found)
                return True
        return False

    if check.again is not None:
        fails(finding.value)  # the least place in the value itself
    if belongs(node := check.declaration(subject), finding.value):  # what a check begins with may be more than that
        reduce(node, finding.value, fails)
    best = _with_fewest_steps(worker, best, invariant)
    return replace(best, shape=(*wanted, *check.family.remains(subject, best.value, wanted)))


def _with_fewest_steps(worker: Worker, best: Finding, invariant: Invariant) -> Finding:
    """Without what comes after the failure, and then, again and again, without any step that is not needed for it."""
    found_with = best
    best = _without(worker, best, invariant, range(max(best.violation.at) + 1, len(best.case.steps)))
    while True:
        before = best
        for left_out in reversed(range(len(before.case.steps))):
            best = _without(worker, best, invariant, [left_out])
        if best is before:
            break
    if best is not found_with:
        worker.close()  # what the target remembers of longer cases may be all that makes it fail
        if worker.violation(best.case, invariant) is None:
            return found_with
    return best


def _without(worker: Worker, best: Finding, invariant: Invariant, left_out: Collection[int]) -> Finding:
    """The same failure without these steps, where it is one."""
    steps = tuple(step for number, step in enumerate(best.case.steps) if number not in left_out)
    if not 0 < len(steps) < len(best.case.steps):
        return best
    case = replace(best.case, steps=steps)
    found = worker.violation(case, invariant)
    if found is None or found[1].shape != best.violation.shape:
        return best
    return replace(best, history=found[0], violation=found[1])


Results: TypeAlias = Callable[[Iterable[Unit], Callable[[], bool]], Iterator[UnitResult]]

_WORKERS: dict[str, Worker] = {}
"""Of this process, one for each target: they live as long as it does, and a child of theirs ends with its stdin."""


def _hold(unit: Unit) -> UnitResult:
    if unit.target not in _WORKERS:
        _WORKERS[unit.target] = Worker(unit.target, target_of(unit.target))
    return _WORKERS[unit.target].hold(unit)


@contextmanager
def shared(workers: int) -> Iterator[Results]:
    """A function that holds units in several processes and gives their results in the order of the units.

    It asks, before it hands out a unit, whether there is time left.
    """
    with pool(workers, _hold) as processes:

        def results(units: Iterable[Unit], left: Callable[[], bool]) -> Iterator[UnitResult]:
            for unit, found in processes.map(units, left):
                yield UnitResult(unit, unreached=LATE) if found is None else found

        yield results
