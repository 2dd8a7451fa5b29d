"""Measures the overhead of Spark over a bare loop: ``python -m kipcheck.conformance.benchmarks.spark``.

The same shards run one after the other in the loop (``--executor inline``) and on Spark with one core, both warmed up:
the processor time of all processes except the shards themselves, for each shard, and Spark's excess over the loop as a
share of the shards. Then on two cores: the share of time spent in shards, for a pool of two processes and for Spark.
One run: ratios are meaningful, and processor time if the machine is busy.

``--long``: shards of 60 s, too. ``--shards N``: the number of shards of each length.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kipcheck.conformance.campaign.executors.local import Executor, inline, pool
from kipcheck.conformance.campaign.executors.spark import spark
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.targets.transport import process_tree

LENGTHS: Final = {1: 8, 10: 4}
"""Seconds of processor time of a shard -> number of shards."""
LONG: Final = {60: 2}
ON_TWO: Final = 8
"""Shards for two cores."""
SHARD: Final = Shard(
    "benchmark", 0, 0, "hold", "drill:raise@1000000000", "1", "apache", ("wire/round-trip",), "mixed", 1, 500, ""
)
"""With the reference in the process of the shard, so that no other process takes time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds."""

    shards_cpu: float
    shards_wall: float
    all_cpu: float
    wall: float

    def beside(self, shards: int) -> float:
        """Milliseconds of processor time outside of the shard, for each shard."""
        return 1000 * (self.all_cpu - self.shards_cpu) / shards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--shards", type=int)
    options = parser.parse_args()
    lengths = {**LENGTHS, **(LONG if options.long else {})}
    lengths = {length: options.shards or number for length, number in lengths.items()}
    with inline() as loop:
        rate = _rate(loop)
        print(f"{rate:.0f} cases in a second of one core\n")
        bare = {length: _run(loop, _shards(length * rate, number)) for length, number in lengths.items()}
    with spark("local[1]", None, 0) as executor:
        _warm(executor)
        far = {length: _run(executor, _shards(length * rate, number)) for length, number in lengths.items()}
    print("shard     number   beside it, ms CPU      Spark adds, of the shard")
    print("                      loop     Spark        CPU      wall")
    for length, number in lengths.items():
        loop_ms, spark_ms = bare[length].beside(number), far[length].beside(number)
        shard_ms = 1000 * far[length].shards_cpu / number
        idle = [(each.wall - each.shards_wall) / each.shards_wall for each in (bare[length], far[length])]
        print(
            f"{shard_ms / 1000:5.1f} s   {number:6}   {loop_ms:7.1f}   {spark_ms:7.1f}   "
            f"{(spark_ms - loop_ms) / shard_ms:8.2%}  {idle[1] - idle[0]:8.2%}"
        )
    sys.stdout.flush()
    shards = _shards(10 * rate, ON_TWO)
    with pool(2) as both:
        _warm(both)
        pooled = _run(both, shards)
    with spark("local[2]", None, 0) as executor:
        _warm(executor)
        sparked = _run(executor, shards)
    print(f"\non two cores, {ON_TWO} shards: share of their time within shards")
    for name, taken in (("pool", pooled), ("Spark", sparked)):
        print(f"{name:8} {taken.shards_wall / (2 * taken.wall):7.1%}   {taken.wall:6.1f} s")


def _shards(cases: float, number: int) -> list[Shard]:
    return [replace(SHARD, shard=at, cases=int(cases)) for at in range(number)]


def _rate(loop: Executor) -> float:
    _warm(loop)
    (row,) = loop.run([replace(SHARD, cases=3000)], b"", lambda progress: None)
    return 1000 * row.cases / row.cpu_ms


def _warm(executor: Executor) -> None:
    """Warms up every slot: the JVM of an executor compiles for some time."""
    for _ in range(2):
        list(executor.run(_shards(20, 20 * executor.slots), b"", lambda progress: None))


def _run(executor: Executor, shards: Sequence[Shard]) -> Measured:
    cpu, started_at = processor_time(), time.monotonic()
    rows = list(executor.run(shards, b"", lambda progress: None))
    wall, cpu = time.monotonic() - started_at, processor_time() - cpu
    assert {row.status for row in rows} == {"done"}, rows
    return Measured(sum(row.cpu_ms for row in rows) / 1000, sum(row.wall_ms for row in rows) / 1000, cpu, wall)


def processor_time() -> float:
    """Seconds of processor time of this process and its descendants, ended ones included. Linux only."""
    parents, taken = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            parents[pid] = process_tree.parent_of(pid)
            taken[pid] = process_tree.taken_by(pid)
        except OSError:
            continue
    return sum(taken[pid] for pid in taken if _is_below(pid, parents))


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


if __name__ == "__main__":
    main()
