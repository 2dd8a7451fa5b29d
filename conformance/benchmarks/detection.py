"""Measures how soon planted defects are found by each way of drawing: ``python -m
kipcheck.conformance.benchmarks.detection``.

Values of the same declaration, run and judged in the same way: drawn by the checks (for machines: with the model); by
campaigns, round after round with a corpus, and without one; by a plain ``@given``; and conversations by a
``RuleBasedStateMachine`` with one rule for each verb. One run, CPU time of the process, several seeds each; a defect
that is not found within the cap counts as the cap. Only ratios are meaningful: the seconds are of one machine. The
planted defects were written with knowledge of the tested code.

``--check GLOB``, ``--ways NAMES`` and ``--seeds N`` select what is run, ``--every N`` takes each N-th defect; ``--cap
S`` is the CPU time, in seconds, for a defect and seed.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import count, islice
from statistics import median
from time import process_time
from typing import Any, Final, TypeAlias

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from kipcheck.conformance.campaign import coverage
from kipcheck.conformance.campaign.corpus.entries import Snapshot, grown, plain_text
from kipcheck.conformance.campaign.generate import batches
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Subject, Value
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.nodes import OneOf, Seq

ROUND: Final = 200
"""Cases after which a campaign continues with a larger corpus."""
QUIET = settings(
    max_examples=100,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    # Slowness is measured, not a failure.
    suppress_health_check=list(HealthCheck),
    stateful_step_count=30,
    print_blob=False,
)


class Found(Exception):
    """A case broke the invariant."""


class Late(BaseException):
    """The cap is reached. A BaseException, so that it is not taken for a failure of a case."""


@dataclass(slots=True)
class Hunt:
    """The search for one defect with one way of drawing."""

    name: str
    subject: Subject
    invariant: Invariant
    worker: Worker
    seed: int
    cap_s: float
    started_at: float
    cases: int = 0

    @property
    def check(self) -> Check[Any]:
        return CHECKS[MUTANTS[self.name].check]

    def show(self, value: Value, number: int) -> list[History]:
        """Errors: ``Found``, ``Late``."""
        return self.run([each.case for each in self.check.about_value(self.subject, value, self.seed, number)])

    def run(self, cases: list[Case]) -> list[History]:
        """Errors: ``Found``, ``Late``."""
        if process_time() - self.started_at > self.cap_s:
            raise Late
        session = self.worker.session(self.subject.edition, self.check.role)
        histories = []
        for history in converse(cases, session):
            self.cases += 1
            if any(verdict.violations for verdict in judge(history, (self.invariant,))):
                raise Found
            histories.append(history)
        return histories


def as_checks(hunt: Hunt) -> None:
    for seed in count(hunt.seed * 1_000):
        for sample in hunt.check.samples(hunt.subject, seed):
            hunt.run([sample.case])


def as_campaigns(hunt: Hunt, remember: bool = True) -> None:
    check, snapshot = hunt.check, Snapshot()
    for round_ in count():
        shard = Shard(
            "benchmark", round_, 0, "hold", hunt.name, "", hunt.subject.edition, (check.id,), "mixed", hunt.seed, ROUND,
            snapshot.digest,
        )  # fmt: skip
        kept: list[Kept] = []
        observed: set[int] = set()
        until = hunt.cases + ROUND
        for batch in batches(shard, {check.id: (hunt.subject,)}, snapshot):
            for conversation in batch.given:
                hunt.run([Case(check.id, hunt.subject.edition, check.role, conversation.steps)])
            for value in batch.values:
                shown = [coverage.keys(check, hunt.subject, each) for each in hunt.show(value, hunt.cases)]
                new = {key for each in shown for step in each for key in step} - snapshot.keys - observed
                if new and remember:
                    kept.append(_kept(hunt, value, shown, new))
                    observed |= new
            if hunt.cases >= until:
                break
        row = replace(shard.empty_row(), kept=tuple(kept), coverage=tuple(sorted(observed)))
        snapshot = grown(snapshot, [row])


def _kept(hunt: Hunt, value: Value, shown: list[tuple[tuple[int, ...], ...]], new: set[int]) -> Kept:
    """Of a conversation, only the steps up to the new keys."""
    if isinstance(value, list):
        last = max(number for number, keys in enumerate(shown[0], 1) if new.intersection(keys))
        value, shown = value[:last], [shown[0][:last]]
    keys = tuple(sorted({key for each in shown for step in each for key in step}))
    text = plain_text(value)
    subject = hunt.subject
    return Kept(hunt.check.id, subject.edition, subject.name, subject.version, text, keys, sum(map(len, shown)))


def without_corpus(hunt: Hunt) -> None:
    as_campaigns(hunt, remember=False)


def by_given(hunt: Hunt) -> None:
    node = hunt.check.declaration(hunt.subject)
    for round_ in count():

        @seeded(hunt.seed * 1_000 + round_)
        @QUIET
        @given(strategy(node))
        def drawn(value: Value) -> None:
            hunt.show(hunt.check.family.trimmed(value), 0)

        drawn()


def by_rules(hunt: Hunt) -> None:
    node = hunt.check.declaration(hunt.subject)
    assert isinstance(node, Seq)
    assert isinstance(node.item, OneOf)

    class Talks(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.steps: list[dict[str, Any]] = []

        def teardown(self) -> None:
            if self.steps:
                hunt.show(self.steps, 0)

    for number, each in enumerate(node.item.options):

        def said(self: Talks, step: dict[str, Any]) -> None:
            self.steps.append(step)

        setattr(Talks, f"rule_{number}", rule(step=strategy(each))(said))
    for round_ in count():
        run_state_machine_as_test(seeded(hunt.seed * 1_000 + round_)(Talks), settings=QUIET)


Way: TypeAlias = Callable[[Hunt], None]
WAYS: Final[Mapping[str, Way]] = {
    "checks": as_checks,
    "campaign": as_campaigns,
    "no corpus": without_corpus,
    "@given": by_given,
    "rules": by_rules,
}


def can(way: str, name: str) -> bool:
    """Whether the way applies: rules need conversations, and given cases are not drawn."""
    check = CHECKS[MUTANTS[name].check]
    if way in ("@given", "rules") and not check.values:
        return False
    return way != "rules" or isinstance(check.declaration(subject_of(MUTANTS[name])), Seq)


def taken(way: Way, name: str, seed: int, cap_s: float) -> tuple[float | None, int]:
    """Seconds of processor time until the defect is found, None: not within the cap; and the number of cases."""
    mutant = MUTANTS[name]
    wanted = next(each for each in all_invariants(CHECKS[mutant.check].role) if each.id == mutant.invariant)
    with Worker(name, Afresh(name, mutant.made)) as worker:
        hunt = Hunt(name, subject_of(mutant), wanted, worker, seed, cap_s, process_time())
        try:
            way(hunt)
        except Found:
            return process_time() - hunt.started_at, hunt.cases
        except Late:
            return None, hunt.cases
    raise AssertionError("ways of drawing are endless")


def main() -> None:
    options = _options()
    ways = {way: WAYS[way] for way in options.ways.split(",")}
    every = [name for name, mutant in MUTANTS.items() if fnmatchcase(mutant.check, options.check) and not mutant.deadly]
    names = list(islice(every, 0, None, options.every))
    print(f"{len(names)} defects, {options.seeds} seeds, cap {options.cap:g} s of CPU time; median s, cases (found)")
    print(f"{'defect':34}" + "".join(f"{way:>25}" for way in ways))
    medians: dict[str, dict[str, float]] = {way: {} for way in ways}
    cases: dict[str, dict[str, float]] = {way: {} for way in ways}
    rates: dict[str, int] = dict.fromkeys(ways, 0)
    for name in names:
        line = f"{name:34}"
        for way, run in ways.items():
            if not can(way, name):
                line += f"{'-':>25}"
                continue
            each = [taken(run, name, seed, options.cap) for seed in range(options.seeds)]
            found = sum(seconds is not None for seconds, _ in each)
            medians[way][name] = median(options.cap if seconds is None else seconds for seconds, _ in each)
            cases[way][name] = median(number for _, number in each)
            rates[way] += found
            line += f"{medians[way][name]:10.3f} {cases[way][name]:6.0f} ({found:2}/{len(each):2})"
        print(line, flush=True)
    first = next(iter(ways))
    for way in ways:
        shared = [name for name in medians[way] if name in medians[first]]
        total, of_first = (sum(medians[each][name] for name in shared) for each in (way, first))
        cases_run = sum(cases[way].values())
        print(
            f"{way:9} found {rates[way]:5} of {len(medians[way]) * options.seeds:5}; sums of medians {total:8.2f} s"
            f" and {cases_run:8.0f} cases; {total / max(of_first, 1e-9):5.1f}x the time of {first} on the same"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", default="*", metavar="GLOB")
    parser.add_argument("--ways", default="campaign,checks,@given,rules", metavar="NAMES", help=", ".join(WAYS))
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--cap", type=float, default=5.0, metavar="S")
    return parser.parse_args()


if __name__ == "__main__":
    main()
