"""How soon planted defects of machines are found, by who draws: ``python -m conformance.benchmarks.detection``.

Three ways to draw conversations of the same declaration, each held and judged alike: with the machine at hand, as the
checks do; by a plain ``@given``; by a ``RuleBasedStateMachine`` with one rule for each verb. One run, CPU time of the
process, so many seeds each; a defect that is not found within the cap counts as the cap. Ratios count: the seconds
are of this machine today. What was planted was planted by people who know the machines.

``--check GLOB`` and ``--seeds N`` choose what is run; ``--cap S`` is the CPU time, in seconds, for a defect and seed.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count
from statistics import median
from time import process_time
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from conformance.checks import CHECKS
from conformance.checks.machines import Subject
from conformance.core.case import Case
from conformance.invariants.registry import Invariant, all_invariants
from conformance.targets.inprocess import Afresh
from conformance.targets.miniatures import VICES
from conformance.targets.protocol import PLAYED
from conformance.vices import subject_of
from conformance.work import Worker
from strategies.as_hypothesis import strategy
from strategies.nodes import OneOf, Seq

QUIET = settings(
    max_examples=100,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    # What is measured is how long it takes, not whether it takes long.
    suppress_health_check=list(HealthCheck),
    stateful_step_count=30,
    print_blob=False,
)


class Found(Exception):
    """A case broke the invariant."""


class Late(BaseException):
    """The cap is reached: nothing may take it for a failure of a case."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """One defect, and what is asked of each way to draw."""

    name: str
    subject: Subject
    invariant: Invariant
    worker: Worker
    seed: int
    cap_s: float
    begun: float

    def show(self, value: list[dict[str, Any]], number: int) -> None:
        """Errors: ``Found``, ``Late``."""
        if process_time() - self.begun > self.cap_s:
            raise Late
        check = CHECKS[VICES[self.name].check]
        cases: Iterator[Case] = check.cases(self.subject, value, self.seed, number, "")
        if next(self.worker.violations([*cases], self.invariant), None) is not None:
            raise Found


def with_the_machine(hunt: Hunt) -> None:
    check = CHECKS[VICES[hunt.name].check]
    for seed in count(hunt.seed * 1_000):
        for sample in check.samples(hunt.subject, seed):
            hunt.show(sample.value, sample.number)


def by_given(hunt: Hunt) -> None:
    node = CHECKS[VICES[hunt.name].check].declaration(hunt.subject)
    for round_ in count():

        @seeded(hunt.seed * 1_000 + round_)
        @QUIET
        @given(strategy(node))
        def drawn(value: list[dict[str, Any]]) -> None:
            hunt.show(value, 0)

        drawn()


def by_rules(hunt: Hunt) -> None:
    node = CHECKS[VICES[hunt.name].check].declaration(hunt.subject)
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
WAYS: Mapping[str, Way] = {"machine": with_the_machine, "@given": by_given, "rules": by_rules}


def seconds(way: Way, name: str, seed: int, cap_s: float) -> float | None:
    """Of processor time until it is found; None: not within the cap."""
    vice = VICES[name]
    subject = subject_of(vice)
    wanted = next(each for each in all_invariants(CHECKS[vice.check].role) if each.id == vice.invariant)
    with Worker(name, Afresh(name, vice.made)) as worker:
        begun = process_time()
        try:
            way(Hunt(name, Subject(subject.edition, subject.name), wanted, worker, seed, cap_s, begun))
        except Found:
            return process_time() - begun
        except Late:
            return None
    raise AssertionError("a way to draw never ends by itself")


def main() -> None:
    options = _options()
    names = [
        name
        for name, vice in VICES.items()
        if CHECKS[vice.check].role in PLAYED and fnmatchcase(vice.check, options.check) and not vice.deadly
    ]
    print(f"{len(names)} defects, {options.seeds} seeds, cap {options.cap:g} s of CPU time; median s (found)")
    print(f"{'defect':34}" + "".join(f"{way:>18}" for way in WAYS))
    medians: dict[str, list[float]] = {way: [] for way in WAYS}
    rates: dict[str, int] = dict.fromkeys(WAYS, 0)
    for name in names:
        line = f"{name:34}"
        for way, run in WAYS.items():
            taken = [seconds(run, name, seed, options.cap) for seed in range(options.seeds)]
            found = sum(each is not None for each in taken)
            middle = median(options.cap if each is None else each for each in taken)
            medians[way].append(middle)
            rates[way] += found
            line += f"{middle:10.3f} ({found:2}/{len(taken):2})"
        print(line, flush=True)
    total = len(names) * options.seeds
    for way in WAYS:
        times = sum(medians[way]) / max(sum(medians["machine"]), 1e-9)
        print(f"{way:8} found {rates[way]:5} of {total}; sum of medians {sum(medians[way]):8.2f} s, {times:5.1f}x")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", default="*", metavar="GLOB")
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    parser.add_argument("--cap", type=float, default=5.0, metavar="S")
    return parser.parse_args()


if __name__ == "__main__":
    main()
