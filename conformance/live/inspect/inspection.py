"""One look at the groups of a running cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kipcheck.conformance.live.connections.connections import ANSWERED_S
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.inspect.cluster import Address, Cluster
from kipcheck.conformance.live.inspect.descriptions import described, groups
from kipcheck.conformance.live.inspect.group import Described, OtherGroup
from kipcheck.conformance.live.inspect.verdicts import Judged, judged, topics_of


@dataclass(frozen=True, slots=True)
class Inspected:
    group: Described
    judged: Judged


@dataclass(frozen=True, slots=True)
class Inspection:
    groups: tuple[Inspected, ...]
    unasked: tuple[str, ...] = ()
    """Brokers that did not answer: groups may be missing."""


def inspect(
    entry: Address, names: Sequence[str], security: Security = OPEN, answered_s: float = ANSWERED_S
) -> Inspection:
    """``names``: empty for all groups. Errors: ``cluster.Unanswered``; ``descriptions.NoGroup``."""
    with asyncio.Runner() as runner:
        return runner.run(_inspect(Cluster(entry, security, answered_s), names))


async def _inspect(cluster: Cluster, names: Sequence[str]) -> Inspection:
    try:
        unasked: list[str] = []
        if not names:
            listed, unasked = await groups(cluster)
            names = [*listed]
        return Inspection(tuple([await _one(cluster, name) for name in names]), tuple(unasked))
    finally:
        await cluster.close()


async def _one(cluster: Cluster, name: str) -> Inspected:
    group = await described(cluster, name)
    if isinstance(group, OtherGroup):
        return Inspected(group, Judged(unjudged=group.why))
    return Inspected(group, judged(group, await cluster.topics(topics_of(group))))
