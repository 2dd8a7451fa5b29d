"""Searches for the least cases of live targets, whose cases take real time: few runs for each failure.

A search asks for rounds of cases. Where a target plays many cases at once, searches go on side by side.
"""

import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Finding, Worker
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Plan, WaitsInRealTime
from kipcheck.reports.phrases import some

RERUNS: Final = 3
"""The most times that a case is run again, alone, until it fails: threads may meet otherwise."""
RUNS: Final = 30
"""The most cases that are run for one failure."""
FIRST_RUNS: Final = 12
"""The most of them that are run beside the first rerun."""
COARSE: Final = 8
"""The most cases of a round, where different steps are enough for a failure."""
LIMIT_S: Final = 30.0
"""No round of a search is begun that would end later after its beginning, unless a run has another limit."""

Failed: TypeAlias = Mapping[str, tuple[History, tuple[Violation, ...]]]
"""The cases of a round that break the invariant, by id."""
Search: TypeAlias = Generator[Sequence[Case], Failed | None, Finding | None]
"""Yields the cases of a round; is sent those that fail, or None if there is no time for them. Returns the finding with
the least case; None if the case alone, or what it is up to the violation, does not fail. A case for whose rerun there
was no time counts as it is."""
Shorter: TypeAlias = Sequence[tuple[Collection[int], Case]]
"""Steps, and a case without them."""


def search(finding: Finding, at_once: bool = False) -> Search:
    """The search for the least case of a finding.

    ``at_once``: the case without the steps after its violation is run at first, beside those with a step less than
    that: in real time they cost nothing more.
    """
    shrinks = CHECKS[finding.unit.check].shrinks
    last = len(finding.case.steps) - 1
    after = range(max(finding.violation.at, default=last) + 1, last + 1)  # rows of a campaign do not say where it fails
    beginning = _without(finding.case, after) or finding.case
    shorter = _with_less(beginning, FIRST_RUNS) if at_once and shrinks else []
    cases = [beginning, *_cases(shorter)] if shorter else [finding.case]
    left, ran = RUNS, False
    for _ in range(RERUNS):
        if (failed := (yield cases)) is None:
            return None if ran else replace(finding, shape=finding.violation.shape)
        left -= len(cases)
        ran = ran or not {finding.case.id, beginning.id}.isdisjoint(each.id for each in cases)
        if (best := _rerun(finding, beginning, cases, failed)) is not None:
            shorter = shorter if best.case is beginning else []
            return (yield from _with_fewest_steps(best, left, shorter, failed)) if shrinks else best
        cases, shorter = [finding.case], []
    return None


def _rerun(finding: Finding, beginning: Case, cases: Sequence[Case], failed: Failed) -> Finding | None:
    """The finding as its case shows it, or a shorter one that fails in the same way: its beginning if that does."""
    found = [each for case in cases if (each := _alike(finding, finding.violation.shape, failed, case)) is not None]
    if found:
        return min(found, key=lambda each: (each.case is not beginning, _length(each)))
    if finding.case.id not in failed:
        return None
    history, (violation, *_) = failed[finding.case.id]
    return replace(finding, history=history, violation=violation, shape=violation.shape)


def _with_fewest_steps(best: Finding, left: int, shorter: Shorter, failed: Failed) -> Search:
    """Leaves out steps, as long as the case fails in the same way. ``shorter``: cases that were run beside the best
    one, some of which ``failed``.

    The steps that a case does without, one by one, are left out together in the next round, which at once has the cases
    with a step less than that. If any of them is enough for the failure, halves of them are left out, and from then on
    several steps at once, as long as the case does without some.
    """
    whole, needless, together, most = best.case, list[int](), list[Case](), RUNS
    if shorter:
        found = _all_alike(best, _cases(shorter), failed)
        best = min((best, *found.values()), key=_length)
        if needless := _needless(shorter, found):
            together = _together(whole, needless, best)
        elif _is_fine(shorter):
            return best
    while True:
        start = together[0] if together else best.case
        shorter = _with_less(start, min(most, left - len(together))) if len(together) < 2 else []
        cases = [*together, *_cases(shorter)]
        answer = (yield cases) if 0 < len(cases) <= left else None
        if answer is None:
            return best
        left -= len(cases)
        found = _all_alike(best, cases, answer)
        best = min((best, *found.values()), key=_length)
        if len(together) == 2:
            together = []
        elif together and together[0].id not in found:
            together, most = [] if found else _halves(whole, needless), COARSE
        elif needless := _needless(shorter, found):
            whole, together = start, _together(start, needless, best)
        elif _is_fine(shorter):
            return best
        else:
            together, most = [], 2 * most


def _is_fine(shorter: Shorter) -> bool:
    """Whether each of the cases lacks one step only."""
    return all(len(steps) == 1 for steps, _ in shorter)


def _needless(shorter: Shorter, found: Mapping[str, Finding]) -> list[int]:
    """The steps without which, one by one, a case fails in the same way."""
    return sorted({step for steps, case in shorter if case.id in found for step in steps})


def _together(case: Case, needless: Sequence[int], best: Finding) -> list[Case]:
    """The case without all these steps, if that is less than the best one; without halves of them if none is left."""
    least = _without(case, needless)
    if least is None:
        return _halves(case, needless)
    return [least] if len(least.steps) < _length(best) else []


def _halves(case: Case, needless: Sequence[int]) -> list[Case]:
    """The case without one half of these steps, and without the other one; none if a half is a single step."""
    half = len(needless) // 2
    made = [_without(case, each) for each in (needless[:half], needless[half:])]
    return [each for each in made if each is not None] if half > 1 else []


def _alike(finding: Finding, shape: tuple[str, ...], failed: Failed, case: Case) -> Finding | None:
    """The finding with that case, if it fails in this way."""
    if case.id not in failed:
        return None
    history, violations = failed[case.id]
    found = next((each for each in violations if each.shape == shape), None)
    return None if found is None else replace(finding, history=history, violation=found, shape=shape)


def _all_alike(best: Finding, cases: Sequence[Case], failed: Failed) -> dict[str, Finding]:
    """By the id of the case."""
    return {case.id: each for case in cases if (each := _alike(best, best.shape, failed, case)) is not None}


def _length(found: Finding) -> int:
    return len(found.case.steps)


def _with_less(case: Case, most: int) -> Shorter:
    """Different cases with a step less, with the number of that step; with several, if there are more than ``most``."""
    count = len(case.steps)
    size = 1 if count <= most else -(-count // max(1, most // 2))
    made: dict[str, tuple[Collection[int], Case]] = {}
    for at in range(0, count, size):
        steps = range(at, min(at + size, count))
        if (shorter := _without(case, steps)) is not None:
            made[shorter.id] = steps, shorter
    return [*made.values()] if len(made) <= most else []


def _cases(shorter: Shorter) -> list[Case]:
    return [case for _, case in shorter]


def _without(case: Case, left_out: Collection[int]) -> Case | None:
    """The case without these steps; None if it would have none, or all."""
    steps = tuple(step for number, step in enumerate(case.steps) if number not in left_out)
    return replace(case, steps=steps) if 0 < len(steps) < len(case.steps) else None


def invariant_of(finding: Finding) -> Invariant:
    return next(each for each in all_invariants(finding.case.role) if each.id == finding.invariant)


@dataclass(slots=True)
class _Bounded:
    """A search for which there is a limit of time."""

    going: Search
    invariant: Invariant
    cases: Sequence[Case]
    """Those of its next round."""
    least: Finding | None = None
    """What it returned, once it is over."""
    over: bool = False
    cut: bool = False
    """Whether there was no time for its next round."""

    @classmethod
    def of(cls, finding: Finding, at_once: bool = False) -> "_Bounded":
        going = search(finding, at_once)
        return cls(going, invariant_of(finding), next(going))

    def take(self, histories: Iterable[History], is_late: Callable[[Sequence[Case]], bool]) -> None:
        """Takes the histories of a round. ``is_late``: whether there is no time for these cases."""
        found = [(each, verdict) for each in histories for verdict in judge(each, (self.invariant,))]
        failed = {each.case.id: (each, verdict.violations) for each, verdict in found if verdict.violations}
        try:
            self.cases = self.going.send(failed)
            if is_late(self.cases):
                self.cut = True
                self.going.send(None)
        except StopIteration as ended:
            least: Finding | None = ended.value
            self.over, self.least = True, least if least is None else replace(least, cut=self.cut)


def alone(worker: Worker, finding: Finding, limit_s: float) -> Finding | None:
    """What a search for the least case of a finding returns, which goes on alone; if it ends early, the least case so
    far."""
    begun_s = time.monotonic()
    bounded = _Bounded.of(finding)
    while not bounded.over:
        round_s = time.monotonic()
        histories = [*worker.histories(bounded.cases)]
        now_s = time.monotonic()
        is_late = 2 * now_s - round_s - begun_s > limit_s  # the next round may last as long as this one
        bounded.take(histories, lambda _, is_late=is_late: is_late)  # type: ignore[misc]
    return bounded.least


@dataclass(slots=True)
class SideBySide:
    """Searches that go on side by side, with what they cost."""

    session: WaitsInRealTime
    limit_s: float = LIMIT_S
    searches: int = 0
    runs: int = 0
    cut_short: int = 0
    """Searches for whose next round there was no time."""
    seconds: float = 0.0

    def least(self, findings: Sequence[Finding]) -> list[Finding | None]:
        """As ``alone``, of each finding; all are of one edition and role. Errors: ``Unstable``, ``Broken``."""
        began_s = time.monotonic()
        self.searches = len(findings)
        try:
            return self.session.run_plans([self._plan(each, began_s) for each in findings])
        finally:
            self.seconds = time.monotonic() - began_s

    def _plan(self, finding: Finding, began_s: float) -> Plan[Finding | None]:
        """A search as the session runs it, which ends when the next round would end too late."""
        bounded = _Bounded.of(finding, at_once=self.session.at_once > 1)
        round_s = began_s

        def is_late(cases: Sequence[Case]) -> bool:
            now_s = time.monotonic()
            lasts_s = max(map(self.session.lasts_s, cases)) or now_s - round_s  # unknown: as long as the last one
            return now_s - began_s + lasts_s > self.limit_s

        while not bounded.over:
            round_s = time.monotonic()
            claimed = [each for each in bounded.cases if self.session.info.claims.supports(each)]
            self.runs += len(claimed)
            observations = yield claimed
            played, name = zip(claimed, observations, strict=True), self.session.info.name
            histories = [History.of(case, name, each) for case, each in played]
            bounded.take(histories, is_late)
        self.cut_short += bounded.cut
        return bounded.least

    def __str__(self) -> str:
        text = (
            f"searched for {some(self.searches, 'least case')} side by side in {self.seconds:.0f} s, with "
            f"{some(self.runs, 'run')}"
        )
        if self.cut_short:
            why = f"no run begins that would end after {self.limit_s:g} s"
            text += f"; ended {self.cut_short} of them early, since {why}"
        return text
