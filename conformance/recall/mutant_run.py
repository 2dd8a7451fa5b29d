"""Runs the checks of a part on a client with a change, and compares the run with those of the unchanged client."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.ledger import NAME, Failure, Ledger, read
from kipcheck.conformance.core.values.exits import BROKEN, CONFORMANT, FAILED, MEANINGS, OURS
from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.recall import facts as facts_of_cases, why as recall_why
from kipcheck.conformance.recall.change import Change
from kipcheck.conformance.recall.copies import PARTS, Copies, DoesNotBuild
from kipcheck.conformance.recall.facts import CaseFacts, Usual
from kipcheck.conformance.recall.mutant_process import END, FACTS, End, Order, way_of
from kipcheck.conformance.recall.python_copies import environment
from kipcheck.conformance.recall.why import verdicts
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import is_live, is_steady
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.targets.transport.pipe import own_python

KILLED, MASKED, SURVIVED, HUNG, DOES_NOT_START, SAME = "killed", "masked", "survived", "hung", "broken", "equivalent"
RESULTS: Final[Mapping[str, str]] = {
    KILLED: "a failure that the unchanged client has not, and that no list of known deviations has",
    MASKED: "cases fail, all under failures that are known or that the unchanged client has too",
    SURVIVED: "no case fails that does not fail with the unchanged client",
    HUNG: "the run did not end",
    DOES_NOT_START: "the client does not build, start or join: each user finds that",
    SAME: "declared by hand to make no difference that a peer or a user can observe",
}
TIMES: Final = 6
LEAST_S, LEAST_LIVE_S = 60.0, 300.0
"""A run is hung after so many times the time of the unchanged client, and not before so many seconds; where its cases
take real time, each waits up to 30 s for a client that does not come back, and is played again alone."""
LIVE_RUNS, UNSTEADY_RUNS = 3, 2
"""Runs of the unchanged client, where its cases take real time, and where its results are not known to be the same."""
MOST_BASELINE_S: Final = 3600.0
MOST_NAMED: Final = 100
"""Cases that differ whose ids are kept: more than a live client has."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the checks, complete or ended by its time limit."""

    place: Path
    end: End | None
    """None: it did not end by itself."""
    hung: bool
    seconds: float
    why: str = ""

    @property
    def ledger(self) -> Ledger | None:
        """None: the client did not start."""
        path = self.place / NAME
        return read(path) if path.exists() else None

    @property
    def facts(self) -> dict[str, CaseFacts]:
        return facts_of_cases.read(self.place / FACTS)


def run(cache: Path, order: Order, seconds: float) -> Run:
    """Runs an order with the cache folder."""
    place, begun = Path(order.out), time.monotonic()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    argv = own_python("kipcheck.conformance.recall.mutant_process", order.text)
    try:
        done = process_tree.run(argv, seconds, env=environment(cache))
    except subprocess.TimeoutExpired:
        return Run(place, None, True, time.monotonic() - begun)
    taken = time.monotonic() - begun
    if not (place / END).exists():
        lines = [each for each in done.stderr.splitlines() if each.strip()] or ["it printed nothing"]
        return Run(place, None, False, taken, one_line(lines[-1]))
    return Run(place, End.read(place), False, taken)


@dataclass(frozen=True)
class Baseline:
    """Runs of the unchanged client, from the copy."""

    runs: Sequence[Run]

    @cached_property
    def usual(self) -> Usual:
        return Usual([each.facts for each in self.runs])

    @cached_property
    def verdicts(self) -> Mapping[str, recall_why.By]:
        return verdicts(self._ledgers)

    @cached_property
    def failing(self) -> frozenset[tuple[str, tuple[Any, ...]]]:
        """Invariant and shape of each failure that no list has: one that a list has for one place decides elsewhere."""
        return frozenset((each.invariant, each.shape) for one in self._ledgers for each in one.failures if each.decides)

    @property
    def _ledgers(self) -> list[Ledger]:
        return [found for each in self.runs if (found := each.ledger) is not None]

    @property
    def exits(self) -> frozenset[int]:
        return frozenset(each.end.exit for each in self.runs if each.end is not None)

    @property
    def seconds(self) -> float:
        return max(each.seconds for each in self.runs)


def baseline(copies: Copies, part: str, seed: int, place: Path, cache_place: Path) -> Baseline:
    """Of the runs in the folder ``place``, those that are missing are made. Errors: ``Unavailable`` where the unchanged
    client cannot be run, or where a spoiled one can: the copy would not be what runs."""
    number = LIVE_RUNS if is_live(copies.target) else 1 if is_steady(copies.target) else UNSTEADY_RUNS
    runs = []
    for at in range(number):
        stored = place / f"{at}" / "seconds"
        if not stored.exists():
            if at == 0:
                _require_copy(copies, PARTS[part], place / "spoiled", cache_place)
            order = Order(copies.target, PARTS[part], seed, str(place / f"{at}"))
            with copies.changed(None, cache_place) as cache:
                found = run(cache, order, MOST_BASELINE_S)
            if found.end is None or found.end.exit in (BROKEN, OURS) or not (found.place / NAME).exists():
                why = found.why or (found.end.why if found.end else "it did not end")
                raise Unavailable(f"{copies.target} cannot be run unchanged: {why}")
            stored.write_text(f"{found.seconds:.1f}")
        runs.append(Run(place / f"{at}", End.read(place / f"{at}"), False, float(stored.read_text())))
    return Baseline(runs)


def _require_copy(copies: Copies, checks: tuple[str, ...], place: Path, cache_place: Path) -> None:
    try:
        with copies.changed(copies.spoiled(), cache_place) as cache:
            found = run(cache, Order(copies.target, checks, 0, str(place)), MOST_BASELINE_S)
    except DoesNotBuild:
        return
    if found.end is None or found.end.exit != BROKEN:
        raise Unavailable(f"{copies.target} runs although its copy is spoiled: the copy is not what runs")


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a change."""

    result: str
    """Of ``RESULTS``."""
    seconds: float
    checks: tuple[str, ...] = ()
    """Those that were run."""
    exit: int | None = None
    """Of the run."""
    by: tuple[str, str, str] = ("", "", "")
    """The check, invariant and title of the cause that finds it; of a masked one without title."""
    why: str = ""
    """Of a survivor one of ``why.WHYS``; of one that is broken the reason."""
    cases: int = 0
    reached: int = 0
    differing: int = 0
    doubted: int = 0
    unsteady: tuple[str, ...] = ()
    """Invariants that a case of a live client broke beside others, and not again alone."""
    differs_in: tuple[str, ...] = ()
    """The first of the cases that differ, by id."""
    noticed: str = ""
    """The meaning of the exit code of a run without a failure, where the unchanged client has another: a reader of the
    run would look on, for example into a client that never read."""
    nearest: Mapping[str, str] = field(default_factory=dict)
    """``case``, ``steps`` and ``check`` of the case that came nearest."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A change to a client, with the checks that are run on it."""

    copies: Copies
    seed: int
    change: Change
    checks: tuple[str, ...]
    is_reached: bool
    """Whether cases of the checks run the changed line in the unchanged client."""
    base: Baseline

    def measured(self, place: Path) -> Measured:
        """``place``: a folder that this process alone uses."""
        counts = self.copies.counts(self.change)
        order = Order(
            self.copies.target, self.checks, self.seed, str(place / "run"), until_failure=True, counts=counts,
            usual=tuple(sorted(way_of(*each) for each in self.base.failing)),
        )  # fmt: skip
        least_s = LEAST_LIVE_S if is_live(self.copies.target) else LEAST_S
        limit_s, begun = max(least_s, TIMES * self.base.seconds), time.monotonic()
        try:
            with self.copies.changed(self.change, place / "cache") as cache:
                made = self._judged(run(cache, order, limit_s), counts)
                is_shown = made.result == MASKED or (made.result == SURVIVED and made.differing)
                if is_shown and is_live(self.copies.target):
                    made = common(made, self._judged(run(cache, order, limit_s), counts))
        except DoesNotBuild as why:
            made = Measured(DOES_NOT_START, 0.0, why=one_line(str(why)))
        return replace(made, seconds=round(time.monotonic() - begun, 1), checks=self.checks)

    def _judged(self, found: Run, counts: bool) -> Measured:
        if found.hung:
            return Measured(HUNG, 0.0)
        end, ledger = found.end, found.ledger
        if end is None or ledger is None or end.exit in (BROKEN, OURS):
            return Measured(
                DOES_NOT_START, 0.0, exit=end.exit if end else OURS, why=found.why or (end.why if end else "")
            )
        new = [each for each in ledger.failures if (each.invariant, each.shape) not in self.base.failing]
        for each in new if end.exit == FAILED else ():
            if each.id in end.confirmed:
                return Measured(KILLED, 0.0, exit=FAILED, by=(each.check, each.invariant, _title(ledger, each)))
        mine, facts, usually = verdicts([ledger]), found.facts, self.base.verdicts
        counted = recall_why.Counted(counts, end.loaded > 0 if counts else self.is_reached)
        reason = recall_why.missed(facts, mine, self.base.usual, usually, counted)
        # A failure in place of a known one, which is ``changed``, is masked by it.
        unsteady = tuple(sorted({each.invariant for each in new if each.decides and each.changed is None}))
        failing = {each for case, by in mine.items() for each in recall_why.newly_failing(by, usually.get(case, {}))}
        masked = sorted(failing - {*unsteady})
        check = next((each.check for each in ledger.failures if each.invariant in masked), "")
        return Measured(
            MASKED if masked else SURVIVED, 0.0, exit=end.exit, by=(check, ", ".join(masked), ""),
            why="" if masked else reason.why, cases=len(facts), reached=reason.reached, differing=len(reason.differing),
            doubted=reason.doubted, unsteady=unsteady, nearest=_nearest(reason, ledger),
            differs_in=reason.differing[:MOST_NAMED],
            noticed="" if end.exit in (CONFORMANT, FAILED, *self.base.exits) else MEANINGS[end.exit],
        )  # fmt: skip


def common(first: Measured, second: Measured) -> Measured:
    """What two runs of a live client show that does not fail: a difference in one of them is noise, and a known failure
    in one of them may be one that is seldom."""
    if second.result not in (SURVIVED, MASKED):
        return second
    if first.result == second.result == SURVIVED and {*first.differs_in}.isdisjoint(second.differs_in):
        why = recall_why.NO_DIFFERENCE if first.why != recall_why.NOT_REACHED else recall_why.NOT_REACHED
        return replace(first, why=why, differing=0, doubted=0, differs_in=())
    return min(first, second, key=lambda each: (each.result == MASKED, each.why and [*recall_why.WHYS].index(each.why)))


def _title(ledger: Ledger, failure: Failure) -> str:
    return next((each.title for each in ledger.causes if failure.id in each.failures), failure.sentence)


def _nearest(why: recall_why.Missed, ledger: Ledger) -> Mapping[str, str]:
    if why.nearest is None:
        return {}
    checks = (each for each in ledger.verdicts() if each.case == why.nearest.case)
    found = next(checks, None)
    about = {} if found is None else {"check": found.check, "subject": found.subject}
    return {"case": why.nearest.case, "steps": why.nearest.steps, **about}
