"""Compares the cost of a campaign's cases with ``@given``: ``python -m kipcheck.conformance.benchmarks.campaign``.

One run, CPU time. Both sides take turns in short slices, so that a busy machine slows down both; the ratio is the
median over the slices. ``@given`` runs without database, deadline and shrinking. Exit 1 if a ratio is below its goal.

* a draw: JoinGroup requests, and their mean size in bytes;
* a round trip: drawn, encoded and decoded;
* a conversation of 30 events with a coordinator: any events, and those that the model enables;
* whole cases: drawn, run with our own codec and coordinator, and judged, as a shard does it.

``--slices N`` sets the number of slices, ``--rows GLOB`` selects rows.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count
from random import Random
from statistics import mean, median
from time import process_time
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

from kipcheck.conformance.campaign import coverage
from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.generate import batches
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import invariants_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.check import Subject
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.wire import Layout, layout
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.messages import from_layout
from kipcheck.strategies.nodes import Node, OneOf, Seq

EVENTS: Final = 30
SLOW: Final = 40
"""Values in a slice of ``@given``."""
FAST: Final = 400
"""Values in a slice of a loop."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    slow: Callable[[int], int]
    """Runs some values that Hypothesis draws from a seed; returns their number."""
    fast: Callable[[int], int]
    goal: float | None
    """The least ratio; None: no goal."""
    note: str = ""


def by_given(node: Node, work: Callable[[Any], object], number: int = SLOW) -> Callable[[int], int]:
    def run_values(seed: int) -> int:
        cases = 0

        @seeded(seed)
        @settings(
            max_examples=number, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),  # what is measured is how long it takes
        )  # fmt: skip
        @given(strategy(node))
        def one(value: Any) -> None:
            nonlocal cases
            cases += 1
            work(value)

        one()
        return cases

    return run_values


def in_a_loop(draw: Callable[[Random], Any], work: Callable[[Any], object], number: int = FAST) -> Callable[[int], int]:
    def run_values(seed: int) -> int:
        random = Random(seed)
        for _ in range(number):
            work(draw(random))
        return number

    return run_values


def nothing(value: Any) -> None:
    pass


def _measured(one: Layout, to: list[int]) -> Callable[[Any], None]:
    return lambda value: to.append(len(one.encode(value)))


def messages() -> Iterator[Row]:
    for version in (0, 5, 9):
        one = layout("apache", "JoinGroupRequest", version)
        node = from_layout(one)
        draw = compiled(node)
        sizes: dict[str, list[int]] = {"@given": [], "compiled": []}
        by_given(node, _measured(one, sizes["@given"]), 200)(0)
        in_a_loop(draw, _measured(one, sizes["compiled"]))(0)
        note = ", ".join(f"{way} {mean(found):.0f} bytes" for way, found in sizes.items())
        name = f"JoinGroup v{version}"
        yield Row(f"{name}, drawn", by_given(node, nothing), in_a_loop(draw, nothing), 100, note)

        def there_and_back(value: Any, one: Any = one) -> None:
            assert one.decode(one.encode(value)) == value

        yield Row(f"{name}, round trip", by_given(node, there_and_back), in_a_loop(draw, there_and_back), 50)


def conversations() -> Iterator[Row]:
    conversation = group_conversations("apache")
    node = Seq(OneOf(tuple(conversation.events.values())), EVENTS, EVENTS)
    yield Row(f"{EVENTS} events, any", by_given(node, nothing, 10), in_a_loop(compiled(node), nothing, 100), 50)
    longest = Seq(OneOf(tuple(conversation.events.values())), 1, conversation.max_steps)
    swarm = conversation.swarm(Random(0))

    def enabled(random: Random) -> Any:
        return conversation.draw(random, swarm)

    # ``detection`` measures how much sooner enabled events find defects.
    name = f"1 to {conversation.max_steps} events, enabled"
    yield Row(name, by_given(longest, nothing, 10), in_a_loop(enabled, nothing, 30), None)


def cases(check: str, subject: Subject, session: Session, goal: float | None) -> Iterator[Row]:
    """Both sides run and judge the same way; a campaign computes coverage keys, too."""
    found = CHECKS[check]
    invariants = invariants_of(found)
    numbers = count()

    def run_values(value: Any, keys: bool = True) -> int:
        message = [each.case for each in found.about_value(subject, value, 0, next(numbers))]
        for history in converse(message, session):
            list(judge(history, invariants))
            if keys:
                coverage.keys(found, subject, history)
        return len(message)

    def in_a_campaign() -> Callable[[int], int]:
        def run_shard_cases(seed: int) -> int:
            shard = Shard("benchmark", 0, 0, "hold", "", "", subject.edition, (check,), "mixed", seed, 100, "")
            total = 0
            for batch in batches(shard, {check: (subject,)}, Snapshot()):
                total += sum(map(run_values, batch.values))
                if total >= 100:
                    return total
            raise AssertionError("batches are endless")

        return run_shard_cases

    def by_hypothesis(seed: int) -> int:
        total = 0

        def one(value: Any) -> None:
            nonlocal total
            total += run_values(found.family.trimmed(value), keys=False)

        by_given(found.declaration(subject), one, 20)(seed)
        return total

    yield Row(f"{check} {subject.name}", by_hypothesis, in_a_campaign(), goal)


def measured(row: Row, slices: int) -> tuple[float, float, float]:
    """Microseconds of a case on either side, and the ratio."""
    slow, fast, ratios = [], [], []
    for seed in range(slices):
        each = []
        for side in (row.slow, row.fast):
            began = process_time()
            number = side(seed)
            each.append((process_time() - began) * 1e6 / number)
        slow.append(each[0])
        fast.append(each[1])
        ratios.append(each[0] / each[1])
    return median(slow), median(fast), median(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=7, metavar="N")
    parser.add_argument("--rows", default="*", metavar="GLOB")
    options = parser.parse_args()
    gc.collect()
    gc.freeze()  # as the fork server of shards does
    group, join = CHECKS["group/static"], CHECKS["wire/round-trip"]
    ours = Afresh("ours", Reference)
    missed = []
    with ours.open("apache", group.role) as coordinator, ours.open("apache", join.role) as codec:
        rows = (
            *messages(),
            *conversations(),
            *cases(join.id, join.family.subject("apache", "JoinGroupRequest", 9), codec, None),
            *cases(group.id, group.family.subject("apache", "group", None), coordinator, None),
        )
        print(f"{'us a case':44} {'@given':>9} {'campaign':>9} {'ratio':>7}  goal  cases a second and core")
        for row in rows:
            if not fnmatchcase(row.name, options.rows):
                continue
            slow, fast, ratio = measured(row, options.slices)
            goal = "" if row.goal is None else f"{row.goal:.0f}x"
            print(f"{row.name:44} {slow:9.0f} {fast:9.1f} {ratio:6.1f}x {goal:>5} {1e6 / fast:9,.0f}  {row.note}")
            if row.goal is not None and ratio < row.goal:
                missed.append(row.name)
    if missed:
        print(f"not reached: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
