"""Sizes the shards of a campaign with a budget but no number of cases: measured once, and stored in the manifest."""

import time
from dataclasses import replace
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.plan import LEAST_SHARD, MOST_SHARD, SHARDS_A_ROUND, Plan
from kipcheck.conformance.campaign.process.shard_pool import ShardRunner

SHARD_S: Final = 20.0
"""The target duration of a shard in seconds: starting it is then cheap, and waiting for it short."""
SHARDS_PER_CORE: Final = 24
"""The least number of shards for each core."""
PROBE_CASES: Final = 150
"""Cases, with the first target. They are not counted."""
LEAST_SHARE: Final = 0.25
"""The least share of a probe's time that counts as its cases: on a busy machine the start may seem longer."""
SHARDS_PER_SLOT: Final = 4
"""Shards of a round for each slot: while one is slow, others keep the slots busy."""


def shard_s(budget: float) -> float:
    return min(SHARD_S, budget / SHARDS_PER_CORE)


def sized(plan: Plan, budget: float, slots: int) -> Plan:
    """The plan with shards that take ``shard_s`` here, and with enough of them to keep all slots busy.

    A probe measures the speed; the target's first start is not included.
    """
    probe = replace(next(plan.shards(0, "")), cases=PROBE_CASES, corpus="")
    dump = Snapshot.empty().dump()
    with ShardRunner() as runner:
        started_at = time.monotonic()
        runner.run_shard(replace(probe, cases=1), dump)
        idle = time.monotonic() - started_at
        started_at = time.monotonic()
        row = runner.run_shard(probe, dump)
        total = time.monotonic() - started_at
        took = max(total - idle, LEAST_SHARE * total)
    cases = int(max(row.cases, 1) / took * max(shard_s(budget) - idle, 1.0))
    shards = max(SHARDS_A_ROUND, -(-SHARDS_PER_SLOT * slots // len(plan.aims)))
    return replace(plan, shard_cases=min(max(cases, LEAST_SHARD // 10), MOST_SHARD), round_shards=shards)
