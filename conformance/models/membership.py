"""What members of a consumer group tell their leader, and what it gives them: metadata and assignments as values."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias, final

from kipcheck.conformance.models.assignment import NO_GENERATION, Partition

Partitions: TypeAlias = tuple[Partition, ...]
EAGER, COOPERATIVE = "eager", "cooperative"
"""Rebalance protocols: what a member gives up before it joins."""
V0, V1 = 0, 1
"""KIP-429's draft: the version of the subscription, which says whether the member has revoked before it joined."""


@final
@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    version: int = V1
    owned: Partitions = ()
    """Not there in version 0."""
    generation: int = NO_GENERATION
    """In which ``owned`` was given; from version 2 on."""
    rack: str | None = None
    """From version 3 on."""
    data: Partitions = ()
    """User data of the sticky assignor: what the member was given last."""
    data_generation: int = NO_GENERATION
    """User data of the sticky assignor, and from 2.8.1 on of the cooperative one: in which generation that was."""
    user_data: Hashable = None
    """Of an assignor that says more than that: as it makes it (Streams)."""


@final
@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: Partitions = ()
    """Sorted."""
    error: int = 0
    """KIP-429's draft: not zero where the leader could not bring the members' versions together (429-22)."""
    user_data: Hashable = None
