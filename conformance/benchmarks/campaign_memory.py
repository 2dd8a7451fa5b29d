"""Measures the memory of a campaign's driver: ``python -m kipcheck.conformance.benchmarks.campaign_memory --rows
10000,100000,1000000``.

For each number of rows, in a process of its own: the summary of a campaign takes rows as shards return them, a round
of 1,000 after the other, and the reports are written at the end. The rows are made from that of one real shard, with a
part of its counts, and other keys, digests, first cases and kept values. Prints seconds of processor time and the
largest resident memory. ``--files``: writes the rows to a ledger first, and reads them back as ``--resume`` does;
``--spark``: the same, and workers of a Spark with two cores read them. Linux only.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.executors.local import Executor, inline
from kipcheck.conformance.campaign.executors.spark import spark
from kipcheck.conformance.campaign.manifest import Manifest, with_id
from kipcheck.conformance.campaign.plan import Aim, Plan
from kipcheck.conformance.campaign.report import campaign_report, row_files
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.campaign.summary import CampaignSummary, RoundEnd, RoundSummary
from kipcheck.conformance.core.operations.field_kinds import to_json

SHARDS: Final = 1_000
"""Of a round."""
CASES: Final = 250
KEYS: Final = 50_000
"""Different coverage keys of the campaign."""
PLAN: Final = Plan("", (Aim("kafka-python", "1"),), "apache", ("wire/*",), "mixed", 0, None, None, CASES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="10000,100000,1000000", metavar="N,...")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with ExitStack() as stack:
            ready = spark("local[2]", None, 0) if options.spark else inline()
            measure(options.one, stack.enter_context(ready) if options.files or options.spark else None)
        return
    print(f"{'rows':>10} {'cpu s':>9} {'RSS MB':>9}", flush=True)
    for number in options.rows.split(","):
        arguments = ["--one", number, *(f"--{name}" for name in ("files", "spark") if getattr(options, name))]
        subprocess.run([sys.executable, "-m", __spec__.name, *arguments], check=True)


def measure(number: int, executor: Executor | None) -> None:
    """``executor``: folds files of the rows; None: the rows are folded as they come."""
    plan = with_id(PLAN)
    model = real_row(plan)
    rounds = -(-number // SHARDS)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        if executor is not None:
            for round_ in range(rounds):
                few = min(SHARDS, number - round_ * SHARDS)
                rows = [each.sealed() for each in rows_of(model, round_, few)]
                for at in range(0, len(rows), 64):
                    row_files.write(out, round_, at // 64, rows[at : at + 64])
        begun = time.process_time()
        summary, snapshot = CampaignSummary(), Snapshot.empty()
        for round_ in range(rounds):
            here = RoundSummary(plan.campaign, round_)
            few = min(SHARDS, number - round_ * SHARDS)
            if executor is None:
                here.add_final(rows_of(model, round_, few))
            else:
                fold(executor, out, here)
            snapshot = here.corpus.after(snapshot)
            summary.add(here, RoundEnd(round_, SHARDS, len(snapshot.entries), 1.0))
        manifest = Manifest.of(plan, {"executor": "pool"}, (), {})
        campaign_report.report(out, to_json(manifest), summary, True, None)
        taken = time.process_time() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{number:10,} {taken:9.1f} {most:9.0f}", flush=True)


def fold(executor: Executor, out: Path, into: RoundSummary) -> None:
    scan = row_files.Scan(out, [into.round])
    for each in executor.fold(into.campaign, into.round, scan.parts(into.round)):
        if isinstance(each, RoundSummary):
            into.unite(each)
        else:
            into.add_final(scan.rows_of(each))


def real_row(plan: Plan) -> Row:
    checks = ("wire/round-trip", "wire/damage", "assign/one-round")
    shard = replace(next(plan.shards(0, "")), checks=checks, campaign=plan.campaign)
    return run_shard(shard, Snapshot.empty())


def rows_of(model: Row, round_: int, number: int) -> Iterator[Row]:
    """Small rows: what a row brings takes time, and no memory that lasts."""
    rng = random.Random(round_)
    counts = model.counts[:40]
    for shard in range(number):
        keys = tuple(sorted({int(KEYS * rng.random() ** 2) for _ in range(20)}))
        found = tuple(replace(each, at_case=shard % CASES, case_id=f"{rng.random()}") for each in model.found[:2])
        kept = tuple(replace(each, value=f"{each.value}{rng.random()}", keys=keys[:5]) for each in model.kept[:2])
        yield replace(
            model, round=round_, shard=shard, coverage=keys, found=found, kept=kept, counts=counts,
            digest=f"{rng.getrandbits(64):016x}",
        )  # fmt: skip


if __name__ == "__main__":
    main()
