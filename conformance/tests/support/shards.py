"""Shards of a campaign that cost little."""

from functools import cache
from typing import Any

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.plan import Bounds, Shard
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess

EMPTY = Snapshot.empty()
WELL = "drill:raise@1000000"
"""Our reference in the process of the shard itself: nothing is to be started, and nothing happens."""


def shard(target: str = WELL, number: int = 0, cases: int = 12, **others: Any) -> Shard:
    about: dict[str, Any] = {
        "campaign": "test", "round": 0, "shard": number, "stage": "hold", "target": target, "target_version": "0",
        "edition": "apache", "checks": ("wire/round-trip",), "engine": "mixed", "seed": 7, "cases": cases,
        "corpus": "",
    }  # fmt: skip
    return Shard(**{**about, **others})


def little(shard: Shard) -> Bounds:
    """For what hangs on purpose."""
    return Bounds(wall_s=30, cpu_s=20, case_cpu_s=0.3, memory=1 << 30)


@cache
def undisturbed(shard: Shard, snapshot: Snapshot = EMPTY) -> tuple[Row, tuple[Case, ...]]:
    """The row of the shard, held right here by our reference, and its cases."""
    cases: list[Case] = []
    row = run_shard(shard, snapshot, lambda _, some: cases.extend(some), lambda name, limits: InProcess(Reference()))
    return row, tuple(cases)
