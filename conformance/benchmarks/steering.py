"""Compares what a campaign reaches with fresh draws: ``python -m kipcheck.conformance.benchmarks.steering``.

For each family and seed both run against the reference in this process, in rounds of small shards, until each has taken
``--seconds`` of processor time: fresh draws alone, as a run draws them, and the mix of a campaign, a part of which
changes or continues entries of the corpus, which grows with each round. Prints the coverage keys that each reached, and
their ratio. Judging is included for both.
"""

import argparse
import gc
from collections.abc import Mapping
from dataclasses import replace
from statistics import geometric_mean
from time import process_time
from typing import Any, Final
from unittest.mock import patch

from kipcheck.conformance.campaign import generate
from kipcheck.conformance.campaign.corpus.entries import Snapshot, grown
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.engine.execution import selection
from kipcheck.conformance.targets.kept_open import KeptOpen
from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.registry import target as target_of
from kipcheck.conformance.targets.session import Limits

FAMILIES: Final = ("group", "consumer-group", "member", "streams")
SHARDS: Final = 4
"""Of a round."""
CASES: Final = 50
"""Of a shard."""
NO_REPLAY: Final = {"REPLAY_SHARE": 0, "LATER_REPLAY_SHARE": 0}
ENGINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "fresh": {"SHARES": {"draw": 100}, **NO_REPLAY},
    "corpus": {"SHARES": generate.SHARES},
}
"""Values of constants of ``generate`` in place of its own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of processor time, for each cell")
    options = parser.parse_args()
    targets: dict[Any, KeptOpen] = {}

    def find(name: str, limits: Limits | None) -> Target:
        return targets.setdefault((name, limits), KeptOpen(target_of(name, limits)))

    print(f"{'family':16} {'seed':>4}" + "".join(f" {name:>9} {'cases':>6}" for name in ENGINES) + f" {'ratio':>6}")
    for family in options.family or FAMILIES:
        checks = selection.Selection.of(selection.Options(targets=("reference",), checks=(f"{family}/*",))).checks
        plain = Shard(
            family, 0, 0, "hold", "reference", "1", "apache", tuple(each.id for each in checks), "mixed", 0, CASES, ""
        )  # fmt: skip
        run_shard(plain, Snapshot.empty(), find=find)  # resolves layouts
        ratios = []
        for seed in range(options.seeds):
            found = []
            line = f"{family:16} {seed:4}"
            for engine in ENGINES.values():
                with patch.multiple(generate, **engine):
                    keys, cases = reached(replace(plain, seed=seed), find, options.seconds)
                found.append(keys)
                line += f" {keys:9,} {cases:6,}"
            ratios.append(found[1] / found[0])
            print(f"{line} {ratios[-1]:6.2f}", flush=True)
        print(f"{family:16} {'all':>4}{' ' * 34} {geometric_mean(ratios):6.2f}", flush=True)


def reached(shard: Shard, find: Any, seconds: float) -> tuple[int, int]:
    """Coverage keys and cases."""
    snapshot, keys, cases = Snapshot.empty(), set[int](), 0
    gc.collect()
    until, round_ = process_time() + seconds, 0
    while True:
        rows = []
        for number in range(SHARDS):
            here = replace(shard, round=round_, shard=number, corpus=snapshot.digest)
            rows.append(run_shard(here, snapshot, find=find))
            keys.update(rows[-1].coverage)
            cases += rows[-1].cases
            if process_time() >= until:
                return len(keys), cases
        snapshot = grown(snapshot, rows)
        round_ += 1


if __name__ == "__main__":
    main()
