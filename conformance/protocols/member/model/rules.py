"""Behaviour of consumers by release of kafka-clients and in KIP-429's draft, and the configuration of a consumer.

The boundaries between releases are those of ConsumerCoordinator and AbstractCoordinator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias, final

from kipcheck.conformance.core.files.releases_table import named, span
from kipcheck.conformance.core.values.edition import KIP_429, Edition, Standing
from kipcheck.conformance.core.values.release import Release, behaviours, releases
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import draft_leader
from kipcheck.conformance.protocols.assignment.model.sticky import cooperative_sticky, sticky
from kipcheck.conformance.wire.schema import stable_versions

Leader: TypeAlias = Callable[[tuple[assignment.Topic, ...], Mapping[str, Subscription]], Mapping[str, Assigned]]
"""The draft's assignor: topics and subscriptions -> assignments by member id."""


@final
@dataclass(frozen=True, slots=True)
class Assignor:
    name: str
    supports: tuple[str, ...]
    """Rebalance protocols."""
    assign: Callable[[assignment.Group], assignment.Assignment]


ASSIGNORS: Final[Mapping[str, Assignor]] = {
    each.name: each
    for each in (
        Assignor(assignment.RANGE, (EAGER,), assignment.range_),
        Assignor(assignment.ROUNDROBIN, (EAGER,), assignment.roundrobin),
        Assignor(assignment.STICKY, (EAGER,), sticky),
        Assignor(assignment.COOPERATIVE, (COOPERATIVE, EAGER), cooperative_sticky),
    )
}
"""The built-in assignors, by name."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    join: int
    """The newest version of JoinGroup that it supports; likewise for the other requests."""
    sync: int
    heartbeat: int
    leave: int
    commit: int
    subscription: int
    """Version of the subscription in the consumer protocol."""
    session_ms: int
    """Default session timeout."""
    incremental: bool
    """Since 2.4.0: the cooperative protocol, the lost callback, callbacks when it leaves (KIP-429)."""
    static: bool
    """Since 2.3.0: members with an instance id, which send no LeaveGroup (KIP-345)."""
    phased: bool
    """Since 2.6.1: it sends heartbeats while it waits for its assignment; REBALANCE_IN_PROGRESS makes it rejoin only
    in a stable group (KAFKA-10134)."""
    compares: bool
    """Since 2.6.0: an error for a former generation has no effect (KAFKA-9823)."""
    prepares_again: bool
    """Since 2.7.2 and 2.8.1: a member that loses its membership during a rebalance gives up its partitions before it
    joins again (KAFKA-12983)."""
    keeps_id: bool
    """Since 3.2.0: ILLEGAL_GENERATION resets the generation, but not the member id (KAFKA-13419)."""
    resets_on_27: bool
    """3.3.0 and 3.3.1: REBALANCE_IN_PROGRESS to a SyncGroup does the same (KAFKA-13891)."""
    validates_own: bool
    """Up to 2.8.1, and 3.0.0: the leader validates assignments of cooperative-sticky too (KAFKA-13406)."""
    tells_rebalance: bool
    """Since 2.5.0: a commit during a rebalance fails with an error of its own, not as that of a former member."""
    dates_data: bool
    """Since 2.8.1: user data of cooperative-sticky has the generation (KAFKA-12984)."""
    draft: bool = False
    """KIP-429's draft: ``rebalance.protocol``, versions 0 and 1 of the subscription, an assignment with an error."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release.

        Errors: ValueError for an invalid release, or one before 0.10.1, whose consumers send heartbeats only in polls.
        """
        at = Release.parse(release)
        if at < Release.parse(named("first-consumer")):
            raise ValueError(f"no model for consumers of {release}: use 0.10.1.0 or later")

        return cls(
            join=_newest("JoinGroup", release),
            sync=_newest("SyncGroup", release),
            heartbeat=_newest("Heartbeat", release),
            leave=_newest("LeaveGroup", release),
            commit=_newest("OffsetCommit", release),
            subscription=_newest("ConsumerProtocolSubscription", release),
            session_ms=45_000 if at in releases(span("longer-session", "consumer")) else 10_000,
            **behaviours(cls, at, "consumer"),
        )

    @classmethod
    @cache
    def drafted(cls) -> "Rules":
        """The rules of the draft: those of 2.2.2 with its changes; where it is silent, those of the newest releases."""
        return cls(
            join=5,
            sync=2,
            heartbeat=2,
            leave=2,
            commit=6,
            subscription=1,
            session_ms=10_000,
            incremental=True,
            static=False,
            phased=True,
            compares=True,
            prepares_again=True,
            keeps_id=True,
            resets_on_27=False,
            validates_own=False,
            tells_rebalance=True,
            dates_data=False,
            draft=True,
        )


def _newest(message: str, release: str) -> int:
    versions = stable_versions(message, release)
    assert versions is not None and versions.high is not None, f"{release} has no {message}"
    return versions.high


@final
@dataclass(frozen=True, slots=True)
class Config:
    rules: Rules
    assignors: tuple[Assignor, ...] = (ASSIGNORS[assignment.RANGE],)
    """Assignors, preferred first."""
    instance: str | None = None
    rack: str | None = None
    rebalance_protocol: str = EAGER
    """The draft's setting (429-17); released consumers have none (429-20)."""
    topics: tuple[assignment.Topic, ...] = ()
    """The topics of the cluster that it knows at the start."""
    lead: Leader = draft_leader
    """The draft's assignor; released consumers use ``assignors``."""
    session_ms: int | None = None
    heartbeat_ms: int = 3_000
    poll_ms: int = 300_000
    """max.poll.interval.ms, which is also the rebalance timeout."""
    backoff_ms: int = 100


def rules_of(edition: Edition) -> Rules | None:
    """The rules of an edition's consumers; None if the edition does not specify any."""
    if edition.name == KIP_429.name:
        return Rules.drafted()
    if edition.standing is not Standing.RELEASED:
        return None
    try:
        return Rules.of(edition.release)
    except ValueError:
        return None
