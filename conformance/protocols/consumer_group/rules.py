"""The differences between the coordinators of consumer groups of exact releases, and the settings of their brokers.

Each was observed of brokers of the releases around the change, and of their coordinators in jars.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours, releases
from kipcheck.conformance.protocols.consumer_group.ops import INTERVAL_MS, SESSION_MS


@final
@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the broker, in milliseconds."""

    session_ms: int = SESSION_MS
    """``group.consumer.session.timeout.ms``"""
    interval_ms: int = INTERVAL_MS
    """``group.consumer.assignment.interval.ms``: no target assignment is computed sooner after the last one. Before 4.3
    brokers have no such setting, and compute one whenever the group has changed."""
    max_size: int = 3
    """``group.consumer.max.size``"""
    policy: str = "bidirectional"
    """``group.consumer.migration.policy``: bidirectional, upgrade, downgrade or disabled."""


DEFAULT: Final = Config()
POLICY: Final = "group.consumer.migration.policy"
SETTINGS: Final[Mapping[str, str]] = {
    "group.consumer.session.timeout.ms": "session_ms",
    "group.consumer.assignment.interval.ms": "interval_ms",
    "group.consumer.max.size": "max_size",
    POLICY: "policy",
}
"""The field that has a setting."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    born_at: int
    """The epoch of a group before its first member."""
    delays_targets: bool
    """Target assignments are computed at intervals (``Config.interval_ms``)."""
    delays_first_targets: bool
    """So is the first one of a group that was empty."""
    counts_revocations: bool
    """A member that has revoked what it should, and has to revoke more, gets the next epoch; else it keeps its own."""
    takes_epoch_0: bool
    """A member that is there may join again, whatever its epoch is; else only while its previous epoch was 0."""
    refuses_own_instances: bool
    """A static member that is there may not join again, also after it was fenced (apache/kafka#23542)."""
    drops_unsubscribed: bool
    """A member gets no partition of a topic that it no longer subscribes to, though the target has it (KAFKA-19431)."""
    refuses_classic_members: bool
    """If the policy is ``disabled``, no client of the classic protocol joins, or joins again."""
    counts_successors: bool
    """A full group has no room for the successor of a static member (KAFKA-20601)."""
    rebalances_old_targets: bool
    """A group that a static member makes a classic one starts a join phase if its target assignment is old; before, if
    the member subscribes to other topics than its predecessor."""
    rebalances_changed_successors: bool
    """Before ``rebalances_old_targets``: whether it does so; else the group goes on with a new target (KAFKA-19546)."""
    drops_expressions: bool
    """A client of the classic protocol has no regular expression of its predecessor (KAFKA-19720)."""

    @classmethod
    def owed(cls, release: str) -> "Rules":
        """As a release, with what no release may lack: a member that was fenced is taken back, gets no partition of a
        topic that it gave up, also as a successor, and keeps its epoch until it has revoked what it must.

        Errors: ValueError for an invalid release.
        """
        return replace(
            cls.of(release), takes_epoch_0=True, refuses_own_instances=False, counts_revocations=False,
            drops_unsubscribed=True, drops_expressions=True, rebalances_changed_successors=True,
        )  # fmt: skip

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        this = Release.parse(release)
        first = 1 if this in releases(span("groups-begin-at-1", "consumer-coordinator")) else 0
        return cls(born_at=first, **behaviours(cls, this, "consumer-coordinator"))


CURRENT: Final = Rules.owed(NEWEST)
