"""Measures whether coverage keys stay few: ``python -m kipcheck.conformance.benchmarks.growth --check "group/*" --cases
18000``.

Runs our own codec, assignors and machines as a campaign does, round after round with the corpus of earlier rounds.
Prints, every so many cases: distinct keys, entries of the corpus, and the share of cases since the last line that were
admitted for a new key. If late cases are admitted often (10 % is a lot), the keys are too fine.
"""

import argparse
from fnmatch import fnmatchcase
from itertools import count
from time import process_time
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Snapshot, grown
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import Afresh

ROUND: Final = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", default="group/*", metavar="GLOB")
    parser.add_argument("--cases", type=int, default=4_000, metavar="N")
    parser.add_argument("--edition", default="apache", metavar="E")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    checks = tuple(id for id in CHECKS if fnmatchcase(id, options.check))
    ours = Afresh("reference", Reference)
    snapshot = Snapshot()
    cases_run = 0
    print(f"{'cases':>8} {'keys':>7} {'entries':>8} {'admitted':>9} {'failures':>9} {'cpu s':>7}")
    for round_ in count():
        shard = Shard(
            "growth", round_, 0, "hold", "reference", "", options.edition, checks, "mixed", options.seed, ROUND,
            snapshot.digest,
        )  # fmt: skip
        began = process_time()
        row = run_shard(shard, snapshot, find=lambda name, limits: ours)
        snapshot = grown(snapshot, [row])
        cases_run += row.cases
        print(
            f"{cases_run:8} {len(snapshot.keys):7} {len(snapshot.entries):8} {len(row.kept) / row.cases:9.1%}"
            f" {len(row.found):9} {process_time() - began:7.1f}",
            flush=True,
        )
        if cases_run >= options.cases:
            return


if __name__ == "__main__":
    main()
