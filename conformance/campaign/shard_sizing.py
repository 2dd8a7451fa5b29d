"""How large a shard is where only time is given: measured once, before the first round, and written to the manifest."""

import time
from dataclasses import replace
from typing import Final

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.plan import LEAST_SHARD, MOST_SHARD, SHARDS_A_ROUND, Plan
from kipcheck.conformance.campaign.process.shard_pool import Nursery

SHARD_S: Final = 20.0
"""What a shard shall take, in seconds: long enough that to begin it costs little, short enough to wait for."""
PIECES: Final = 24
"""Into so many shards for each core a short time is divided at least."""
PROBE: Final = 150
"""Cases, of the first target. They count nowhere."""
LEAST_SHARE: Final = 0.25
"""Of what the probe takes is its cases at least: on a busy machine the beginning may happen to look longer."""
WAITING: Final = 4
"""Shards of a round for each slot: while one is slow, the others have something to do."""


def shard_s(budget: float) -> float:
    return min(SHARD_S, budget / PIECES)


def sized(plan: Plan, budget: float, slots: int) -> Plan:
    """The plan with shards that take ``shard_s`` here, and with as many of them as keep all slots busy.

    What a probe takes says that: the first beginning of a target is not measured.
    """
    probe = replace(next(plan.shards(0, "")), cases=PROBE, corpus="")
    dump = Snapshot.empty().dump()
    with Nursery() as nursery:
        begun = time.monotonic()
        nursery.hold(replace(probe, cases=1), dump)
        idle = time.monotonic() - begun
        begun = time.monotonic()
        row = nursery.hold(probe, dump)
        whole = time.monotonic() - begun
        took = max(whole - idle, LEAST_SHARE * whole)
    cases = int(max(row.cases, 1) / took * max(shard_s(budget) - idle, 1.0))
    shards = max(SHARDS_A_ROUND, -(-WAITING * slots // len(plan.aims)))
    return replace(plan, shard_cases=min(max(cases, LEAST_SHARD // 5), MOST_SHARD), round_shards=shards)
