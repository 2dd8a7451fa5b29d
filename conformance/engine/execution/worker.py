"""A unit of a run: one check on one subject with one target."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import dropwhile, islice
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Op, Replied, Unsupported
from kipcheck.conformance.core.values.verdict import Grade, Result, Verdict, Violation, worst
from kipcheck.conformance.engine.execution import scripts
from kipcheck.conformance.engine.execution.converse import converse, converse_once
from kipcheck.conformance.engine.execution.deaths import Deaths
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS, Check, exchanges_of
from kipcheck.conformance.protocols.declare.check import Exhibit, Sample
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets import protocol
from kipcheck.conformance.targets.session import renewed

Shape: TypeAlias = tuple[str, ...]
BROKEN: Final = frozenset(each.word for each in Grade)
"""The results of cases that break an invariant."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One check on one subject, with one target: the unit that a worker runs."""

    target: str
    edition: str
    check: str
    subject: str
    """A message, an assignor or a machine."""
    version: int | None
    """The version of a message."""
    seed: int
    values: int | None
    compared: bool = False
    """Whether its answers are compared with those of other targets."""
    scripts: tuple[str, ...] = ()
    """In shorthand: the cases of the unit, in place of those that are drawn; each is played ``values`` times."""
    traced: str = ""
    """``all``: the exchanges of each case are reported; ``failed``: of those that fail; empty: of none."""
    limits: frozenset[str] = frozenset()
    """The names of the target's limits, for which cases may be chosen."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that breaks an invariant in one way: a case has a finding for each distinct shape of its violations."""

    unit: Unit
    history: History
    value: Any
    number: int
    kind: str
    invariant: str
    violation: Violation
    shape: tuple[str, ...] = ()
    """The violation's shape, followed by the remains of the value once it is shrunk."""
    cut: bool = False
    """Whether the search for its least case did not end."""
    whole: bool = True
    """Whether the shape has the remains of the value, which only a search finds; in real time there are none."""

    consequences: tuple[tuple[str, Violation], ...] = ()
    """Invariants and violations that follow from it in this case."""
    rate: tuple[int, int] | None = None
    """Of a race, which does not fail alone: in how many plays beside others it fails, and of how many."""

    @property
    def case(self) -> Case:
        return self.history.case


class Trace(NamedTuple):
    """The exchanges of a case."""

    case: str
    script: str
    """Its steps in shorthand."""
    broken: dict[str, str]
    """Invariant -> why it is broken."""
    rows: list[Exhibit]
    """Steps of a sequence."""


@dataclass(frozen=True, slots=True)
class UnitResult:
    unit: Unit
    cases: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Case id, the result of the case, and the results by invariant."""
    findings: list[Finding] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """If targets are compared: a digest of the answers of each case."""
    troubles: list[str] = field(default_factory=list)
    """Crashes that belong to no case."""
    breaches: list[str] = field(default_factory=list)
    """Violations of the testee protocol."""
    unreached: str = ""
    """Why it was not run."""
    held_back: Counter[Shape] = field(default_factory=Counter)
    """The shape of deaths -> cases that were not run, because they look like those."""
    reached: set[str] = field(default_factory=set)
    """The invariants that a case could violate: it was judged, and the target granted what the invariant is about."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Case id -> why a script was not begun."""
    cells: dict[Any, str] = field(default_factory=dict)
    """The cells of its cases, where they are chosen from a table: the reason why none played it; empty: one did."""
    gave_up: bool = False
    """Whether the target cannot be used any more."""
    traces: list[Trace] = field(default_factory=list)
    """Those that ``Unit.traced`` asks for."""


class Worker:
    """Keeps open sessions with one target, one for each role and edition.

    Errors of its methods: ``Unavailable``, ``Broken``, ``Unstable``.
    """

    def __init__(
        self, name: str, target: protocol.Target | protocol.Unavailable, label: str = "", version: str = ""
    ) -> None:
        """``label`` and ``version``: the name and the release that results have, instead of the target's own."""
        self.name = name
        self._target = target
        self.label = label
        self._version = version
        self._open: dict[tuple[str, Role], tuple[AbstractContextManager[protocol.Session], protocol.Session]] = {}
        self._broken: protocol.Broken | None = None
        self.ran = False
        """Whether units have been run since it was made or renewed."""

    def session(self, edition: str, role: Role) -> protocol.Session:
        if isinstance(self._target, protocol.Unavailable):
            raise self._target
        if self._broken is not None:
            raise self._broken
        if (edition, role) not in self._open:
            manager = self._target.open(edition, role)
            try:
                self._open[edition, role] = manager, manager.__enter__()
            except protocol.Broken as why:
                self._broken = why  # opening it again may take a whole deadline
                raise
        return self._open[edition, role][1]

    def info(self, edition: str, role: Role) -> protocol.TargetInfo:
        """Opens a session in that role; if the target does not support the role, the information comes without one."""
        try:
            info = self.session(edition, role).info
        except protocol.NotPlayed as other:
            info = other.info
        if self.label:
            info = replace(info, name=self.label, command=self.name)
        return replace(info, version=self._version) if self._version else info

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def renew(self) -> None:
        """Lets each target forget what it was sent, and its deaths: closes those that cannot forget."""
        for place, (manager, session) in [*self._open.items()]:
            if not renewed(session):
                del self._open[place]
                manager.__exit__(None, None, None)
        self._broken = None
        self.ran = False

    def close(self) -> None:
        for manager, _ in self._open.values():
            manager.__exit__(None, None, None)
        self._open.clear()
        self._broken, self.ran = None, False

    def run(self, unit: Unit) -> UnitResult:
        """Runs a unit. If the target cannot be used any more, the result says so; only ``Unavailable`` is raised."""
        observed, self.ran = self._broken, True
        try:
            session = self.session(unit.edition, CHECKS[unit.check].role)
        except protocol.Broken as why:
            return UnitResult(unit, breaches=[] if observed else [str(why)], unreached=str(why), gave_up=True)
        known = len(session.breaches)
        try:
            return self._run_session(unit, session)
        except (protocol.Broken, protocol.Unstable) as why:
            return UnitResult(unit, breaches=[*session.breaches[known:]], unreached=str(why), gave_up=True)

    def portions(self, units: Iterable[Unit]) -> Iterator[Sequence[Unit]]:
        """The units in portions that are run at once: of several only where cases wait in real time."""
        portion: list[Unit] = []
        cases = 0
        for unit in units:
            if portion and _place(unit) != _place(portion[0]):
                yield portion
                portion, cases = [], 0
            portion.append(unit)
            at_once = self._at_once(unit)
            cases += len(self.samples(unit)) if at_once else 0
            if cases >= at_once:
                yield portion
                portion, cases = [], 0
        if portion:
            yield portion

    def _at_once(self, unit: Unit) -> int:
        """The cases that the target takes at once; 0 if it runs one unit after the other."""
        session = self.real_time(unit)
        return 0 if session is None else session.at_once

    def real_time(self, unit: Unit) -> protocol.WaitsInRealTime | None:
        """The session, if its cases wait in real time, side by side."""
        try:
            session = self.session(*_place(unit))
        except (protocol.Broken, protocol.Unavailable):
            return None
        return session if isinstance(session, protocol.WaitsInRealTime) else None

    def lasts_s(self, finding: Finding) -> float:
        """About how many seconds the steps of its case wait up to the violation; 0 where they wait in no real time."""
        session = self.real_time(finding.unit)
        steps = finding.case.steps[: max(finding.violation.at) + 1]
        return 0.0 if session is None else session.lasts_s(replace(finding.case, steps=steps))

    def run_together(self, units: Sequence[Unit]) -> Sequence[UnitResult]:
        """As ``run``, with the cases of all units at once."""
        if len(units) == 1:
            return [self.run(units[0])]
        self.ran = True
        session = self.session(*_place(units[0]))
        samples = [self.samples(each) for each in units]
        try:
            cases = [[sample.case for sample in several] for several in samples]
            every = [case for several in cases for case in several]
            histories = converse_once(cases, session) if units[0].scripts else converse(every, session)
            return [
                judged(unit, several, islice(histories, len(several)), Deaths())
                for unit, several in zip(units, samples, strict=True)
            ]
        except (protocol.Broken, protocol.Unstable) as why:
            return [UnitResult(each, unreached=str(why), gave_up=True) for each in units]

    def _run_session(self, unit: Unit, session: protocol.Session) -> UnitResult:
        samples = self.samples(unit)
        troubles, breaches = len(session.troubles), len(session.breaches)
        result = judged(unit, samples, converse([each.case for each in samples], session, Deaths()), Deaths())
        result.troubles.extend(session.troubles[troubles:])
        result.breaches.extend(session.breaches[breaches:])
        return result

    def samples(self, unit: Unit) -> list[Sample]:
        """The cases of a unit. Of all that are drawn, those whose operations the target claims."""
        claims = self.session(unit.edition, CHECKS[unit.check].role).info.claims
        return [each for each in samples_of(unit) if claims.supports(each.case)]

    def first(self, unit: Unit, invariant: Invariant) -> Finding | None:
        """The first case of the unit that breaks the invariant; no case after it is drawn."""
        check = CHECKS[unit.check]
        subject = check.family.subject(unit.edition, unit.subject, unit.version)
        for sample in check.samples(subject, unit.seed, unit.values, unit.limits):
            if (found := self.violation(sample.case, invariant)) is not None:
                history, violation = found
                about = unit, history, sample.value, sample.number, sample.kind
                return Finding(*about, invariant.id, violation)
        return None

    def violation(
        self, case: Case, invariant: Invariant, shape: Shape | None = None
    ) -> tuple[History, Violation] | None:
        """How the case, run alone, breaks the invariant, first of all or first in this way; None if it does not."""
        return next(self.violations([case], invariant, shape), None)

    def violations(
        self, cases: list[Case], invariant: Invariant, shape: Shape | None = None
    ) -> Iterator[tuple[History, Violation]]:
        """The cases, of one edition and role, that break the invariant, with the first violation of this shape."""
        for history, found in self.every_violation(cases, invariant):
            for each in found:
                if shape is None or each.shape == shape:
                    yield history, each
                    break

    def every_violation(
        self, cases: Sequence[Case], invariant: Invariant
    ) -> Iterator[tuple[History, tuple[Violation, ...]]]:
        """The cases, of one edition and role, that break the invariant, with all violations.

        Cases with an operation that the target does not claim are left out.
        """
        for history in self.histories(cases):
            for verdict in judge(history, (invariant,)):
                if verdict.violations:
                    yield history, verdict.violations

    def histories(self, cases: Sequence[Case]) -> Iterator[History]:
        """Runs cases of one edition and role, without those with an operation that the target does not claim."""
        if not cases:
            return
        session = self.session(cases[0].edition, cases[0].role)
        yield from converse([each for each in cases if session.info.claims.supports(each)], session)


def _place(unit: Unit) -> tuple[str, Role]:
    """What a session is opened with."""
    return unit.edition, CHECKS[unit.check].role


def judged(
    unit: Unit,
    samples: Iterable[Sample],
    histories: Iterable[History],
    deaths: Deaths | None = None,
    names_cases: bool = True,
) -> UnitResult:
    """The results of a unit's cases, and the violations in them. ``names_cases``: whether results have the ids of the
    cases, which take time to compute.

    ``deaths``: what looks like them is held back, even if it was run in one batch with them, so that the results do not
    depend on batches.
    """
    result, check = UnitResult(unit), CHECKS[unit.check]
    for sample, history in zip(samples, histories, strict=True):
        if deaths is not None:
            if (shape := deaths.alike(sample.case)) is not None:
                result.held_back[shape] += 1
                continue
            deaths.note(history)
        verdicts = list(judge(history, invariants_of(check)))
        by = {each.invariant: each.result.name for each in verdicts}
        word = _word(verdicts, check.role)
        result.cases.append((sample.case.id if names_cases else "", word, by))
        if unit.traced == "all" or (unit.traced and word in BROKEN):
            result.traces.append(_trace(unit, history, verdicts))
        if why := _not_played(unit.subject, history) if unit.scripts else _not_begun(history):
            result.skipped[sample.case.id] = why
        result.reached.update(_reached(check, history, verdicts))
        for cell, why in check.family.cells.played(history) if check.family.cells is not None else ():
            result.cells[cell] = result.cells.get(cell, why) and why
        for verdict in verdicts:
            if verdict.result is Result.FAIL:
                about = result.unit, history, sample.value, sample.number, sample.kind
                ways: dict[Shape, Violation] = {}
                for each in verdict.violations:
                    ways.setdefault(each.shape, each)
                for shape, each in ways.items():
                    following = _following(verdicts, verdict.invariant, shape)
                    result.findings.append(Finding(*about, verdict.invariant, each, consequences=following))
        if unit.compared:
            result.answers.append(check.family.digest(history))
    return result


def _trace(unit: Unit, history: History, verdicts: Sequence[Verdict]) -> Trace:
    broken = {each.invariant: each.violations[0].why for each in verdicts if each.result is Result.FAIL}
    text = scripts.text_of(unit.subject, history.case.steps)
    return Trace(history.case.id, text, broken, exchanges_of(history))


def _following(verdicts: Sequence[Verdict], invariant: str, shape: Shape) -> tuple[tuple[str, Violation], ...]:
    """What follows from a violation: invariants and violations."""
    return tuple(
        (verdict.invariant, each.violation)
        for verdict in verdicts
        for each in verdict.consequences
        if (each.invariant, each.shape) == (invariant, shape)
    )


def _not_begun(history: History) -> str:
    """Why a script of a live client was not begun; empty: it was. Its first steps may be settings of the program."""
    if history.case.role is not Role.CLIENT:
        return ""
    begun = next(dropwhile(_is_idle, (op.observation for op in history.ops)), None)
    is_begun = not isinstance(begun, Unsupported) or not begun.limit
    return "" if is_begun else next((unmet.reason.partition(": ")[0] for _, unmet in _unmet(history)), "")


def _not_played(machine: str, history: History) -> str:
    """Which step of a user's script the target cannot take, and why; empty: it took all."""
    for op, unmet in _unmet(history):
        return f"step {op.index + 1}, {scripts.text_of(machine, [op.step])!r}, cannot be played: {unmet.reason}"
    return ""


def _unmet(history: History) -> Iterator[tuple[Op, Unsupported]]:
    """The steps that the target cannot take, each with the reason."""
    for op in history.ops:
        if isinstance(op.observation, Unsupported) and op.observation.reason:
            yield op, op.observation


def _is_idle(observation: Observation) -> bool:
    """Whether nothing happened in a step but that kipcheck looked at its own clock."""
    if not isinstance(observation, Replied):
        return False
    actions = dict(observation.payload).get("actions")
    return actions is not None and all(action["what"] == "idle" for action in actions)


def _reached(check: Check[Any], history: History, verdicts: Iterable[Verdict]) -> Iterator[str]:
    after = _after(check)
    granted = check.family.granted(history) if after else frozenset()
    for each in verdicts:
        if each.result is Result.FAIL or (
            each.result is Result.PASS and not (each.invariant in after and granted.isdisjoint(after[each.invariant]))
        ):
            yield each.invariant


@cache
def _after(check: Check[Any]) -> dict[str, frozenset[str]]:
    return {each.id: each.after for each in invariants_of(check) if each.after}


def samples_of(unit: Unit) -> tuple[Sample, ...]:
    """All cases of a unit, whatever the target claims."""
    if unit.scripts:
        samples = (scripts.sample(unit.check, unit.edition, unit.subject, text) for text in unit.scripts)
        return tuple(sample for sample in samples for _ in range(unit.values or 1))
    return drawn(unit.check, unit.edition, unit.subject, unit.version, unit.seed, unit.values, unit.limits)


@lru_cache(8)
def drawn(
    check: str,
    edition: str,
    subject: str,
    version: int | None,
    seed: int,
    values: int | None,
    limits: frozenset[str] = frozenset(),
) -> tuple[Sample, ...]:
    """The cases of a unit. Targets that run one after the other get the same cases, so they are cached for a while."""
    found = CHECKS[check]
    return tuple(found.samples(found.family.subject(edition, subject, version), seed, values, limits))


@cache
def invariants_of(check: Check[Any]) -> tuple[Invariant, ...]:
    """The invariants that a check names, and those for every target."""
    return tuple(each for each in all_invariants(check.role) if each.role is None or each.id in check.invariants)


def _word(verdicts: list[Verdict], role: Role) -> str:
    """The result of a case as a whole: WARN or NOTE if only a SHOULD or an INFO is broken."""
    grades = _grades(role)
    broken = {grades[each.invariant] for each in verdicts if each.result is Result.FAIL}
    if broken:
        return min(broken, key=[*Grade].index).word
    return worst(verdicts).name


@cache
def _grades(role: Role) -> dict[str, Grade]:
    return {each.id: each.grade for each in all_invariants(role)}
