"""The settings of brokers for share partitions, and what differs between their leaders by release."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, final

from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours
from kipcheck.conformance.protocols.share_partition.ops import LIMIT, LOCK_MS


@final
@dataclass(frozen=True, slots=True)
class Config:
    lock_ms: int = LOCK_MS
    """``group.share.record.lock.duration.ms``"""
    limit: int = LIMIT
    """``group.share.delivery.count.limit``"""


DEFAULT: Final = Config()
SETTINGS: Final[Mapping[str, str]] = {
    "group.share.record.lock.duration.ms": "lock_ms",
    "group.share.delivery.count.limit": "limit",
}
"""The field that has a setting."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    isolates: bool
    """Records that were delivered often are delivered in smaller batches, the last time alone."""
    renews: bool
    """Members may renew the lock of a record (KIP-1222)."""
    counts_released: bool
    """What a closed session releases counts as delivered."""
    chooses_again: bool
    """The start offset is persisted with the first change of a record, not when it is chosen."""
    fails_past_done: bool
    """A request fails that acknowledges records before the start offset and after it, if none is in flight."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        return cls(**behaviours(cls, Release.parse(release), "share-partition"))


OWED: Final = replace(Rules.of(NEWEST), chooses_again=False, fails_past_done=False)
