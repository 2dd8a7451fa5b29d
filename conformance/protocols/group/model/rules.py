"""The differences between classic group coordinators of exact releases.

Each rule names its source: an issue of Apache Kafka, or observations of brokers of the releases around the change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours, releases
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.equal_votes import Table
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.wire.schema import stable_versions

Ranges: TypeAlias = Mapping[type[messages.Request], range]

MESSAGES: Final[Mapping[type[messages.Request], str]] = MappingProxyType(
    {
        messages.Join: "JoinGroup",
        messages.Sync: "SyncGroup",
        messages.Heartbeat: "Heartbeat",
        messages.Leave: "LeaveGroup",
        messages.Commit: "OffsetCommit",
        messages.Fetch: "OffsetFetch",
        messages.Describe: "DescribeGroups",
        messages.ListGroups: "ListGroups",
        messages.Delete: "DeleteGroups",
    }
)

INSTANCE_SINCE: Final[Mapping[type[messages.Request], int]] = MappingProxyType(
    {messages.Join: 5, messages.Sync: 3, messages.Heartbeat: 3, messages.Leave: 3, messages.Commit: 7}
)
"""The first version with a group instance id (KIP-345)."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    versions: Ranges
    """Supported versions; an API that the release lacks has an empty range."""
    java: bool
    """The coordinator was rewritten in Java in 4.0. Differences that follow only from that check this rule."""

    # Joining
    initial_delay: bool
    """The first rebalance of an empty group waits for more members (KIP-134)."""
    refuses_empty_protocols: bool
    """A first member without a protocol type or protocols gets an error (KAFKA-6005). Before, a missing type is
    accepted, and missing protocols fail in the coordinator; that the group is unusable afterwards is not modelled."""
    bounded_new_members: bool
    """A member that joined without an id and waits is removed after five minutes (KAFKA-7610)."""
    ids_required: bool
    """Since JoinGroup version 4, a client without a member id gets one, and must join again with it (KIP-394)."""
    size_limit: bool
    """``group.max.size`` (KIP-389)."""
    size_by_waiting: bool
    """During the join phase the limit counts members that have joined; pending ids do not count (KAFKA-9885)."""
    refused_ids_forgotten: bool
    """A pending id for which there is no room becomes invalid (from the source: since 3.0)."""
    timeouts_renewed: bool
    """A member that joins again gets the timeouts of that request, not those of its first join (KAFKA-14009)."""
    old_joins_wait: bool
    """A join phase waits for members whose JoinGroup has version 0, for their session timeout; in 2.3.0 it does not, as
    their rebalance timeout is -1 (KAFKA-8653)."""
    generation_in_errors: int
    """The generation in failed JoinGroup answers: 0 up to 2.1 (changed by KAFKA-7824)."""
    expired_ids_end_delay: bool
    """The initial rebalance ends before its time if an unused id expires when all have joined (since 4.0)."""
    fails_on_old_leaders: bool
    """The list of members for a leader whose JoinGroup has a version below 5 cannot be encoded if one is static: their
    instance ids are not ignorable. Who is answered then depends on the order of a hash map, and is not modelled."""
    fails_on_replaced_ids: bool
    """The deadline for SyncGroups fails, and starts no rebalance, if a static member was replaced that had sent none
    (from the source: 2.8)."""
    fails_on_unused_static_ids: bool
    """A JoinGroup with an unused id and an instance id fails in the coordinator (since 2.3)."""
    refusals_end_join_phase: bool
    """The join phase may end when an unused id is refused because the group is full (up to 3.9)."""
    deletes_unwritten: bool
    """DeleteGroups is answered before its record is written, and whether or not that fails (up to 3.9)."""
    absent_sessions_end: bool
    """The session of a member ends when a join phase removes it; up to 2.0.0 it runs on, and its end starts a rebalance
    (KAFKA-7196)."""
    new_sessions_end: bool
    """A new member that waits is removed if its session ends, once a heartbeat or a successor with its instance id has
    begun one; up to 2.4 it may wait without a bound then (KAFKA-9752)."""
    removed_joins_answered: bool
    """A parked JoinGroup of a member that is removed is answered (KAFKA-7610)."""
    removed_answered: bool
    """A parked SyncGroup of a member that is removed is answered. No release does that."""
    superseded_answered: bool
    """A parked request that a newer one of the same member replaces is answered (KAFKA-20938: not in 4.4.0)."""

    # Static members
    strict_instances: bool
    """Any request with an unknown instance id gets UNKNOWN_MEMBER_ID; before 3.0 (from the source) only a join."""
    replacement_written: bool
    """A static member's new id is written before the answer, and changed protocols rebalance (KAFKA-10284)."""
    replacement_rejoins: bool
    """A static member that returns while the assignment is pending starts a rebalance (KAFKA-9801)."""

    # A rebalance
    sync_deadline: bool
    """Members that send no SyncGroup in time are removed (KAFKA-12890)."""
    votes: Table
    """The table of votes, which decides between protocols with equal votes (observed up to 2.3, and since 2.7)."""
    keeps_empty_groups: bool
    """0.10.0 removes a group as soon as it has no members."""

    # Requests of members
    heartbeats_by_phase: bool
    """0.10.0: while a group is not stable, every heartbeat gets REBALANCE_IN_PROGRESS, from members and others."""
    busy_while_completing: bool
    """A heartbeat while the assignment is pending gets REBALANCE_IN_PROGRESS (up to 2.6.0; KAFKA-10134)."""
    busy_generation_checked: bool
    """Such a heartbeat first gets the error of a wrong generation (from the source: since 2.3)."""
    commits_fenced_first: bool
    """A commit while the assignment is pending first gets errors that concern its member (KAFKA-8487)."""
    metadata_described: bool
    """DescribeGroups returns the metadata of members; 2.3 returns their assignments in place of it (KAFKA-9150)."""
    nameless: Error
    """The error of a heartbeat, a sync or a leave with an empty group id: 25 up to 1.1 (KAFKA-6773)."""
    deletes_nameless: bool
    """DeleteGroups deletes the group with the empty name; 1.1 answers it INVALID_GROUP_ID (KAFKA-6773)."""
    loading_told: bool
    """Requests get COORDINATOR_LOAD_IN_PROGRESS while the log is read; up to 1.1, NOT_COORDINATOR."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        this = Release.parse(release)

        def has(behaviour: str) -> bool:
            return this in releases(span(behaviour, "coordinator"))

        return cls(
            versions=MappingProxyType({request: _range(message, release) for request, message in MESSAGES.items()}),
            generation_in_errors=messages.NO_GENERATION if has("no-generation-in-errors") else 0,
            removed_answered=False,
            votes=Table.JAVA if has("java") else Table.SCALA_2_13 if has("votes-by-scala-2-13") else Table.SCALA_2_12,
            nameless=Error.INVALID_GROUP_ID if has("empty-group-id-invalid") else Error.UNKNOWN_MEMBER_ID,
            **behaviours(cls, this, "coordinator"),
        )


def owed_rules(release: str = NEWEST) -> Rules:
    """What the requirements owe in a release, with its versions and KIPs: no release does all of it.

    Where nothing is owed, as that release. Errors: ValueError for an invalid release.
    """
    found = Rules.of(release)
    return replace(
        found,
        refuses_empty_protocols=True,
        size_by_waiting=True,
        expired_ids_end_delay=False,
        fails_on_old_leaders=False,
        fails_on_replaced_ids=False,
        fails_on_unused_static_ids=False,
        refusals_end_join_phase=True,
        deletes_unwritten=False,
        old_joins_wait=True,
        absent_sessions_end=True,
        removed_joins_answered=True,
        removed_answered=True,
        superseded_answered=True,
        strict_instances=True,
        replacement_written=True,
        sync_deadline=True,
        heartbeats_by_phase=False,
        busy_while_completing=False,
        busy_generation_checked=True,
        commits_fenced_first=True,
        metadata_described=True,
        nameless=Error.INVALID_GROUP_ID,
        deletes_nameless=True,
        loading_told=True,
    )


def _range(message: str, release: str) -> range:
    """The stable versions that a release supports (from the definitions in the released jars)."""
    versions = stable_versions(message, release)
    return range(0) if versions is None or versions.high is None else range(versions.low, versions.high + 1)
