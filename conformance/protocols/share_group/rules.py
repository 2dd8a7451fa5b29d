"""The settings of brokers for share groups, and the differences between their coordinators by release."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, final

from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours
from kipcheck.conformance.protocols.share_group.ops import INTERVAL_MS, SESSION_MS


@final
@dataclass(frozen=True, slots=True)
class Config:
    session_ms: int = SESSION_MS
    """``group.share.session.timeout.ms``"""
    interval_ms: int = INTERVAL_MS
    """``group.share.assignment.interval.ms``"""
    max_size: int = 3
    """``group.share.max.size``"""


DEFAULT: Final = Config()
SETTINGS: Final[Mapping[str, str]] = {
    "group.share.session.timeout.ms": "session_ms",
    "group.share.assignment.interval.ms": "interval_ms",
    "group.share.max.size": "max_size",
}
"""The field that has a setting."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    counts_revocations: ClassVar = False
    """Members of share groups revoke nothing."""
    refuses_own_instances: ClassVar = False
    takes_epoch_0: bool
    """A member that is there may join again, whatever its epoch is."""
    delays_targets: bool
    """Target assignments are computed at intervals (``Config.interval_ms``)."""
    delays_first_targets: bool
    """So is the first one of a group that was empty."""
    begins_at_1: bool
    """The epoch of a group before its first member is 1."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        return cls(**behaviours(cls, Release.parse(release), "share-coordinator"))


CURRENT: Final = Rules.of(NEWEST)
