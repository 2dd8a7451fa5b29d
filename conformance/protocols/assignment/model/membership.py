"""Subscriptions and assignments of the consumer protocol, as values."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import NO_GENERATION, Partition

Partitions: TypeAlias = tuple[Partition, ...]
EAGER, COOPERATIVE = "eager", "cooperative"
"""Rebalance protocols: an eager member revokes all partitions before it joins."""
V0, V1 = 0, 1
"""KIP-429's draft: versions of the subscription. A member that sends V0 has revoked all partitions before it joined."""


@final
@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    version: int = V1
    owned: Partitions = ()
    """Absent in version 0."""
    generation: int = NO_GENERATION
    """The generation of ``owned``; since version 2."""
    rack: str | None = None
    """Since version 3."""
    data: Partitions = ()
    """User data of the sticky assignor: the member's last assignment."""
    data_generation: int = NO_GENERATION
    """User data of the sticky assignor, since 2.8.1 also of the cooperative one: generation of the last assignment."""
    user_data: Hashable = None
    """User data of any other assignor (Streams)."""


@final
@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: Partitions = ()
    """Sorted."""
    error: int = 0
    """KIP-429's draft: nonzero if the members' versions are incompatible (429-22)."""
    user_data: Hashable = None
