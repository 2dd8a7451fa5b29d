"""Measures how small failing values become, and at what cost: ``python -m kipcheck.conformance.benchmarks.reduction``.

For planted defects, some failing values, drawn as checks draw them, are reduced by our reducer and by Hypothesis's
shrinker. For a conversation Hypothesis chooses which of the failing steps to keep; for any other value it finds a
failing value of the same declaration itself. A value fails if it breaks the same invariant in the same way. The length
is that of the value's JSON; ``steps`` is for conversations. One run, CPU time.

``--check GLOB``, ``--every N`` and ``--seeds N`` select what is run.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count, islice
from random import Random
from statistics import mean
from time import process_time
from typing import Any, Final

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from kipcheck.conformance.campaign.corpus.value_text import plain_text
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.declare.check import Subject, Value
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.nodes import Integer, Seq
from kipcheck.strategies.reduce import reduce

RARELY: Final = 15
"""A step is left out once in so many times, and more often if the example is to be smaller."""
SETTINGS: Final = settings(
    max_examples=1_000,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),  # slowness is measured
)
MOST_DRAWN: Final = 2_000


@dataclass(slots=True)
class Failing:
    """A failing value, and the predicate for other values."""

    check: Check[Any]
    subject: Subject
    invariant: Invariant
    worker: Worker
    value: Value = None
    shape: tuple[str, ...] = ()
    number: int = 0
    kind: str = ""
    calls: int = 0

    def found(self, seed: int) -> bool:
        for sample in islice(self.check.samples(self.subject, seed, MOST_DRAWN), MOST_DRAWN):
            shown = self.worker.violation(sample.case, self.invariant)
            if shown is not None:
                self.value, self.number, self.kind = sample.value, sample.number, sample.kind
                self.shape = shown[1].shape
                return True
        return False

    def fails(self, value: Value) -> bool:
        self.calls += 1
        if not value and isinstance(self.value, list):
            return False
        cases = list(self.check.cases(self.subject, value, 0, self.number, self.kind))
        return any(self.worker.violations(cases, self.invariant, self.shape))


def by_us(failing: Failing, seed: int) -> Value:
    return reduce(failing.check.declaration(failing.subject), failing.value, failing.fails)


def by_hypothesis(failing: Failing, seed: int) -> Value:
    if isinstance(failing.value, list):
        steps = failing.value

        def kept(mask: list[int]) -> Value:
            return [step for step, stays in zip(steps, mask, strict=True) if stays]

        choice = strategy(Seq(Integer(0, RARELY), len(steps), len(steps)))
        return kept(find(choice, lambda mask: failing.fails(kept(mask)), settings=SETTINGS, random=Random(seed)))
    return find(
        strategy(failing.check.declaration(failing.subject)), failing.fails, settings=SETTINGS, random=Random(seed)
    )


WAYS: Final[dict[str, Callable[[Failing, int], Value]]] = {"ours": by_us, "Hypothesis": by_hypothesis}


@dataclass(frozen=True, slots=True)
class Outcome:
    length: int
    steps: int
    calls: int
    seconds: float


def made_smaller(name: str, seed: int) -> dict[str, Outcome] | None:
    """By both; None if nothing failed, or Hypothesis found no failing value."""
    mutant = MUTANTS[name]
    check, subject = CHECKS[mutant.check], subject_of(mutant)
    wanted = next(each for each in all_invariants(check.role) if each.id == mutant.invariant)
    with Worker(name, Afresh(name, mutant.made)) as worker:
        failing = Failing(check, subject, wanted, worker)
        if not failing.found(seed):
            return None
        came = {}
        for way, run in WAYS.items():
            failing.calls, began = 0, process_time()
            try:
                value = run(failing, seed)
            except NoSuchExample:
                return None
            steps = len(value) if isinstance(value, list) else 0
            text = plain_text(value)
            came[way] = Outcome(len(text), steps, failing.calls, process_time() - began)
    return came


def main() -> None:
    options = _options()
    names = [
        name
        for name, mutant in MUTANTS.items()
        if fnmatchcase(mutant.check, options.check)
        and not mutant.deadly
        and CHECKS[mutant.check].shrinks
        and CHECKS[mutant.check].again is None
    ]
    heads = "".join(f"{way:>12} length  steps  calls      ms" for way in WAYS)
    print(f"{'defect':32} {'of':>3}{heads}")
    every: dict[str, list[Outcome]] = {way: [] for way in WAYS}
    for name in islice(names, 0, None, options.every):
        found = [came for seed in islice(count(), options.seeds) if (came := made_smaller(name, seed)) is not None]
        line = f"{name:32} {len(found):3}"
        for way in WAYS if found else ():
            of = [came[way] for came in found]
            every[way] += of
            line += f"{mean(each.length for each in of):19.0f}{mean(each.steps for each in of):7.1f}"
            line += f"{mean(each.calls for each in of):7.0f}{1e3 * mean(each.seconds for each in of):8.0f}"
        print(line, flush=True)
    for way, of in every.items():
        print(
            f"{way:11} {len(of)} values; sums: length {sum(each.length for each in of)}, steps "
            f"{sum(each.steps for each in of)}, calls {sum(each.calls for each in of)}, "
            f"{sum(each.seconds for each in of):.1f} s"
        )
    pairs = list(zip(*every.values(), strict=True))
    shorter, longer = (sum(sign * (a.length - b.length) < 0 for a, b in pairs) for sign in (1, -1))
    print(f"ours are shorter {shorter} times, as long {len(pairs) - shorter - longer}, longer {longer}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", default="*", metavar="GLOB")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    main()
