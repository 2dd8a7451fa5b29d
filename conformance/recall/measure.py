"""Measures whether the ordinary checks find a released bug: they run against the affected release and the fixed one."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from kipcheck.conformance.core.ledger import Record
from kipcheck.conformance.core.values.exits import BROKEN, INCONCLUSIVE, MEANINGS, OURS, UNDECIDED, USAGE
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.recall.bugs import Bug, InvalidEntry, place_of
from kipcheck.conformance.recall.runs import Failing, First, Job, Run, Runner
from kipcheck.conformance.recall.why import NO_LAW

SEEDS: Final = 3
"""Seeds 0 to 2."""
TIMES: Final = 5
"""The stated budget: so many times the default cases."""
NO_INVARIANT: Final = "no invariant is about it"
NOT_COUNTED: Final = "not counted"
GRADES: Final = ("MUST", "SHOULD")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a bug was missed."""

    why: str = NOT_COUNTED
    """One of ``why.WHYS``, or that it is not counted."""
    counted: str = ""
    """What was counted, or why nothing was, in words."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is run where the default cases miss a bug: the default cases of further seeds."""

    times: float = TIMES
    """So many times the default cases in all."""
    seconds: float | None = None
    """After so many seconds no further run begins."""

    def more(self, seed: int, seeds: int) -> Iterator[int]:
        """The further seeds that belong to one: 3, 6, 9 and 12 to 0, where there are three seeds and five times."""
        number = 1
        while number < self.times:
            yield seed + number * seeds
            number += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Record):
    """The result of a measurement."""

    id: str
    result: str
    """One of ``RESULTS``."""
    reason: str = ""
    """Why it is skipped or undecided; else empty."""
    why: str = ""
    """Why it was missed; not counted unless it was asked for."""
    of_seeds: int = SEEDS
    """So many seeds were run."""
    seeds: tuple[int, ...] = ()
    """Those that found it."""
    cases: tuple[int, ...] = ()
    """For each of these the cases up to the first failing one; with the budget the cases of the runs before, too."""
    cpu_s: tuple[float, ...] = ()
    """For each of them the processor time up to there, in seconds."""
    budget: int = 0
    """Runs of the affected release beyond the default cases."""
    invariant: str = ""
    """The failure that was found; the gravest one, if there are several."""
    shape: tuple[str, ...] = ()
    subject: str = ""
    grade: str = ""
    least: tuple[str, ...] = ()
    """The steps of its least case."""
    also: tuple[str, ...] = ()
    """Its other failures that count and that the fixed release has not."""
    alarms: tuple[str, ...] = ()
    """Failures of the fixed release that count, whatever the result is; it runs if the affected release has some."""
    remarks: tuple[str, ...] = ()
    """What a reader of the result has to know."""


def judging_checks(bug: Bug) -> tuple[str, ...]:
    """The checks of its role that judge an invariant of its; others cannot count.

    Errors: ``InvalidEntry`` if there is none.
    """
    universal = [each.id for each in all_invariants(bug.role) if each.role is None]
    found = tuple(
        id
        for id, check in CHECKS.items()
        if check.role is bug.role and any(is_counted(bug, each) for each in (*check.invariants, *universal))
    )
    if bug.counts and not found:
        named = ", ".join(each.invariant for each in bug.counts)
        raise InvalidEntry(
            f"{place_of(bug.id)}: no check of role {bug.role.value} judges {named}; kipcheck checks lists invariants"
        )
    return found


def is_counted(bug: Bug, invariant: str) -> bool:
    """Whether a failure of the invariant may be the bug."""
    return any(fnmatchcase(invariant, each.invariant) for each in bug.counts)


def edition_of(bug: Bug, target: str) -> str:
    """That of the entry; an empty one is that of the target's release."""
    return bug.edition or f"apache@{re.split('[:@]', target)[-1]}"


def measure(
    bug: Bug, seeds: int, budget: Budget, run: Runner, explain: Callable[[Bug], Reason] = lambda bug: Reason()
) -> Measured:
    """Runs the default cases with each seed, and the budget where they miss the bug. ``explain``: says why a bug was
    missed. Errors: OSError, as ``run`` and ``explain``."""
    if not bug.counts:
        return Measured(id=bug.id, result="missed", of_seeds=seeds, why=NO_LAW, remarks=(NO_INVARIANT,))
    found = _compared(bug, seeds, budget, run)
    if found.result != "missed":
        return found
    reason = explain(bug)
    return found.update(why=reason.why, remarks=(*found.remarks, *filter(None, (reason.counted,))))


def _compared(bug: Bug, seeds: int, budget: Budget, run: Runner) -> Measured:
    comparison = _Comparison(bug, run)
    if reason := comparison.run(range(seeds)):
        return Measured(id=bug.id, result="skipped", of_seeds=seeds, reason=reason)
    found = comparison.measured(seeds)
    if found.result in ("missed", "undecided") and not comparison.is_broken:
        return _with_budget(comparison, seeds, budget)
    return found


def _with_budget(comparison: "_Comparison", seeds: int, budget: Budget) -> Measured:
    until = math.inf if budget.seconds is None else time.monotonic() + budget.seconds
    hits: dict[int, _Hit] = {}
    runs = 0
    for seed in range(seeds):
        before = comparison.total(seed)
        for more in budget.more(seed, seeds):
            if time.monotonic() >= until:
                break
            runs += 1
            if (hit := comparison.hit_with(more)) is not None:
                hits[seed] = hit.after(before)
                break
            before = _sum(before, comparison.total(more))
    alarms = {each.key for each in comparison.alarms()}
    hits = {seed: hit for seed, hit in hits.items() if hit.failing.key not in alarms}
    return comparison.measured(seeds, hits).update(budget=runs)


# ---- comparison of two releases


@dataclass(frozen=True, slots=True)
class _Hit:
    """A failure that the fixed release has not, and when it was found."""

    failing: Failing
    first: First

    def after(self, before: First) -> "_Hit":
        return _Hit(self.failing, _sum(before, self.first))


def _sum(one: First, other: First) -> First:
    return First(cases=one.cases + other.cases, cpu_s=float(f"{one.cpu_s + other.cpu_s:.2g}"))


@dataclass(slots=True)
class _Comparison:
    bug: Bug
    runner: Runner
    affected: dict[int, list[Run]] = field(default_factory=dict)
    fixed: dict[int, list[Run]] = field(default_factory=dict)
    """By seed; a run for each check that was run."""

    def run(self, seeds: Sequence[int]) -> str:
        """Runs the checks that judge the bug, of each seed one after the other until one fails in a way that counts and
        that the fixed release has not; that one runs the checks that failed so, since nothing else is compared. Returns
        why a release cannot be run here; empty if both can.
        """
        left = {seed: [*judging_checks(self.bug)] for seed in seeds}
        while any(left.values()):
            failed = dict.fromkeys(check for seed, checks in left.items() for check in self._failing(seed, checks))
            for check, seed in ((check, seed) for check in failed for seed in seeds):
                if not self.unavailable:
                    self._add(self.fixed, self.bug.fixed, check, seed)
            if reason := self.unavailable:
                return reason
            left = {seed: checks for seed, checks in left.items() if self.hit(seed) is None}
        return ""

    def _failing(self, seed: int, checks: list[str]) -> Iterator[str]:
        """Runs checks of the list with the affected release, and takes them off, up to one that fails: that one."""
        while checks and not self.unavailable:
            check = checks.pop(0)
            if self._counting(self._add(self.affected, self.bug.affected, check, seed)):
                yield check
                return

    def _add(self, by: dict[int, list[Run]], target: str, check: str, seed: int) -> Run:
        """A run that is about nothing is kept only if no other one is."""
        run = self.runner(Job(target, edition_of(self.bug, target), check, seed))
        before = by.setdefault(seed, [])
        if run.is_about_nothing and before:
            return run
        before[:] = [*(each for each in before if not each.is_about_nothing), run]
        return run

    @property
    def unavailable(self) -> str:
        """Why a release cannot be run here; empty if both can."""
        named = ((self.bug.affected, self.affected), (self.bug.fixed, self.fixed))
        found = (f"{target}: {run.why}" for target, by in named for run in _all(by) if run.is_unavailable)
        return next(found, "")

    @property
    def is_broken(self) -> bool:
        """Whether further runs would end in the same way."""
        return any({OURS, USAGE} & {*run.exits} for by in (self.affected, self.fixed) for run in _all(by))

    def hit_with(self, seed: int) -> _Hit | None:
        """Runs a further seed."""
        self.run([seed])
        return self.hit(seed)

    def hit(self, seed: int) -> _Hit | None:
        """The gravest failure of a seed that the fixed release has with no seed."""
        alarms = {each.key for each in self.alarms()}
        found: list[_Hit] = []
        before = First(cases=0, cpu_s=0.0)
        for run in self.affected.get(seed, ()):
            for each in self._counting(run):
                if each.key not in alarms:
                    first = run.first.get(f"{each.invariant} {each.subject}", _whole(run))
                    found.append(_Hit(each, _sum(before, first)))
            before = _sum(before, _whole(run))
        return min(found, key=lambda hit: _order(hit.failing), default=None)

    def total(self, seed: int) -> First:
        """All cases of a seed with the affected release, and their processor time."""
        whole = [_whole(run) for run in self.affected.get(seed, ())]
        return First(cases=sum(each.cases for each in whole), cpu_s=sum(each.cpu_s for each in whole))

    def alarms(self) -> tuple[Failing, ...]:
        """The failures of the fixed release that count."""
        return tuple({each.key: each for run in _all(self.fixed) for each in self._counting(run)}.values())

    def _counting(self, run: Run) -> list[Failing]:
        return [
            each
            for each in run.failures
            if any(pattern.fits(each.invariant, each.shape, each.subject) for pattern in self.bug.counts)
        ]

    def measured(self, seeds: int, with_budget: Mapping[int, _Hit] | None = None) -> Measured:
        """The result as far as it has been run. ``with_budget``: what was found beyond the default cases, by seed."""
        hits = {seed: hit for seed in range(seeds) if (hit := self.hit(seed)) is not None}
        alarms = tuple(sorted(each.text for each in self.alarms()))
        common = Measured(
            id=self.bug.id, result="missed", of_seeds=seeds, alarms=alarms, remarks=tuple(self._remarks())
        )
        reasons = [*self._reasons(self.bug.fixed, self.fixed)]
        if not hits and not with_budget:
            if alarms and not self.bug.explained:
                return common.update(result="false alarm")
            reasons += [*self._reasons(self.bug.affected, self.affected), *self._doubts()]
        if reasons:
            return common.update(result="undecided", reason="; ".join(dict.fromkeys(reasons)))
        if hits:
            return self._found(common.update(result="found"), hits)
        if with_budget:
            return self._found(common.update(result="found with budget"), with_budget)
        return common

    def _found(self, common: Measured, hits: Mapping[int, _Hit]) -> Measured:
        best = min((each.failing for each in hits.values()), key=_order)
        not_its = {best.key, *(each.key for each in self.alarms())}
        others = {each.text for run in _all(self.affected) for each in self._counting(run) if each.key not in not_its}
        return common.update(
            seeds=tuple(hits), cases=tuple(each.first.cases for each in hits.values()),
            cpu_s=tuple(each.first.cpu_s for each in hits.values()), invariant=best.invariant, shape=best.shape,
            subject=best.subject, grade=best.grade, least=best.least, also=tuple(sorted(others)),
        )  # fmt: skip

    def _reasons(self, target: str, by: Mapping[int, list[Run]]) -> Iterator[str]:
        """Why the runs of a target decide nothing."""
        for run in _all(by):
            # A client that fails all cases for another reason shows whether it breaks what counts, too.
            shows = bool(run.failures) and any(_judged(run, each.invariant) for each in self.bug.counts)
            for code in (OURS, USAGE, BROKEN, *(() if shows else (INCONCLUSIVE,))):
                if code in run.exits:
                    yield f"{target}: {MEANINGS[code]}: {run.why}"
            if UNDECIDED in run.exits:
                if run.why:
                    yield f"{target}: {MEANINGS[UNDECIDED]}: {run.why}"
                yield from (f"{target}: {_once(each)}" for each in run.unstable if is_counted(self.bug, each))

    def _doubts(self) -> Iterator[str]:
        """What keeps a failure of the affected release from being excluded."""
        doubts: dict[str, int] = {}
        for run in _all(self.affected):
            for invariant, cases in run.doubts.items():
                if invariant == "*" or is_counted(self.bug, invariant):
                    doubts[invariant] = doubts.get(invariant, 0) + cases
            for invariant in run.unstable:
                if is_counted(self.bug, invariant):
                    yield f"{self.bug.affected}: {_once(invariant)}"
        cases = sum(run.cases for run in _all(self.affected))
        for invariant, number in doubts.items():
            what = "without a verdict" if invariant == "*" else f"in which {invariant} was undecided"
            yield f"{self.bug.affected}: {number} of {cases} cases {what}"

    def _remarks(self) -> Iterator[str]:
        """What a result does not show: invariants that judged nothing, and failures that did not occur again."""
        affected = [*_all(self.affected)]
        named = sorted({each.invariant for each in self.bug.counts})
        unjudged = [each for each in named if not any(_judged(run, each) for run in affected)]
        yield from (f"{each} judged no case of {self.bug.affected}" for each in unjudged)
        for invariant in dict.fromkeys(each for run in _all(self.fixed) for each in run.unstable):
            if is_counted(self.bug, invariant):
                yield f"a failure of {invariant} with {self.bug.fixed} did not occur again"


def _once(invariant: str) -> str:
    return f"a failure of {invariant} did not occur again when run alone"


def _order(failing: Failing) -> tuple[int, int]:
    """The gravest first, then the one with the fewest steps."""
    return GRADES.index(failing.grade), len(failing.least)


def _judged(run: Run, pattern: str) -> bool:
    return any(fnmatchcase(each, pattern) for each in run.judged)


def _whole(run: Run) -> First:
    return First(cases=run.cases, cpu_s=run.cpu_s)


def _all(by: Mapping[int, list[Run]]) -> Iterator[Run]:
    return (run for runs in by.values() for run in runs)
