"""Compares the processor time of a campaign with that of a run: ``python -m
kipcheck.conformance.benchmarks.campaign_cost``.

Each of ``--check`` is a row: a run with so many values that it has about ``--cases`` cases, and campaigns of as many
cases in a pool and, with ``--spark``, on Spark, each as the command that a user types. Processor time is that of all
processes that a command starts, so ratios are meaningful on a busy machine, too. The start of all of them is included,
and so are reductions and reports. A run has equally many values of each check, a campaign equally many batches, so
checks whose values have very different numbers of cases are rows of their own; the last line is the sum of all rows.
``--workers N``: of all; ``--shards``: seconds of processor time by shard, from the
rows. Linux only.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from kipcheck.conformance.campaign.report import row_files
from kipcheck.conformance.core.ledger import NAME, read
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.targets.transport import process_tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="kafka-python")
    parser.add_argument("--check", action="append", metavar="GLOB,...")
    parser.add_argument("--cases", type=int, default=4_000, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--shards", action="store_true")
    options = parser.parse_args()
    process_tree.adopt_orphans()
    print(
        f"{'processor time, s':32} {'cases':>7} {'run':>7} {'pool':>7} {'ratio':>6} {'Spark':>7} {'ratio':>6}",
        flush=True,
    )
    found = [measure(options, tuple(row.split(","))) for row in options.check or ["wire/round-trip", "assign/*"]]
    cases, of_run, *campaigns = (sum(column) for column in zip(*found, strict=True))
    print(f"{'all':32} {cases:7,.0f} {of_run:7.1f}", *(f"{each:7.1f} {each / of_run:6.2f}" for each in campaigns))


def measure(options: argparse.Namespace, globs: tuple[str, ...]) -> list[float]:
    """Prints a row. Returns the number of cases, and seconds of processor time of the run and of the campaigns."""
    common = ["--target", options.target, "--workers", str(options.workers), *(f"--check={each}" for each in globs)]
    with tempfile.TemporaryDirectory() as place:
        of_run = taken(["run", *common, "--cases", str(values(options, globs))], Path(place) / "run")
        cases = sum(each.total() for each in read(Path(place) / "run" / NAME).cases.values())
        line = f"{options.target} {','.join(globs)}"[:32]
        print(f"{line:32} {cases:7,} {of_run:7.1f}", end="", flush=True)
        found: list[float] = [cases, of_run]
        for executor in ("pool", "spark") if options.spark else ("pool",):
            out = Path(place) / executor
            of_campaign = taken(["campaign", *common, "--executor", executor, "--cases", str(cases)], out)
            found.append(of_campaign)
            print(f" {of_campaign:7.1f} {of_campaign / of_run:6.2f}", end="", flush=True)
        print()
        rows = row_files.read(Path(place) / "pool").rows.values() if options.shards else ()
        for stage in ("hold", "reduce") if rows else ():
            shards = [row.cpu_ms / 1000 for row in rows if row.stage == stage]
            print(f"  {stage}: {len(shards)} shards, {sum(shards):.1f} s: {' '.join(f'{each:.1f}' for each in shards)}")
    return found


def values(options: argparse.Namespace, globs: tuple[str, ...]) -> int:
    """The number of values with which a run has at least that many cases."""

    def cases(number: int) -> int:
        plan = run(Options(targets=(options.target,), checks=globs, cases=number, dry_run=True)).plan
        return sum(row["cases"] for row in plan)

    few, many = 1, 2
    while cases(many) < options.cases and many < options.cases:
        few, many = many, many * 2
    while many - few > max(1, few // 20):
        middle = (few + many) // 2
        few, many = (middle, many) if cases(middle) < options.cases else (few, middle)
    return many


def taken(arguments: list[str], out: Path) -> float:
    """Seconds of processor time of a command of kipcheck with all processes below it."""
    before = _of_children()
    ended = subprocess.run(
        [sys.executable, "-m", "kipcheck", *arguments, "--out", str(out)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, check=False, text=True,
    )  # fmt: skip
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)}: exit code {ended.returncode}: {ended.stderr[-500:]}")
    try:
        while True:  # those that outlived their parents belong to this process now
            os.waitpid(-1, 0)
    except ChildProcessError:
        return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
