"""What a classic group coordinator does otherwise from one exact release to the next.

Each rule names its source: an issue of Apache Kafka, or what brokers of the releases around it were seen to do.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, final

from kipcheck.conformance.core.release import Release
from kipcheck.conformance.models.group import messages
from kipcheck.conformance.models.group.messages import Error
from kipcheck.conformance.models.group.ties import Table

Ranges: TypeAlias = Mapping[type[messages.Request], range]

_VERSIONS: Final[Mapping[type[messages.Request], tuple[tuple[str, int, int], ...]]] = MappingProxyType(
    {
        messages.Join: (
            ("0.10.0.0", 0, 0),
            ("0.10.1.0", 0, 1),
            ("0.11.0.0", 0, 2),
            ("2.0.0", 0, 3),
            ("2.2.0", 0, 4),
            ("2.3.0", 0, 5),
            ("2.4.0", 0, 6),
            ("2.5.0", 0, 7),
            ("3.2.0", 0, 9),
            ("4.0.0", 2, 9),
            ("4.0.1", 0, 9),
        ),
        messages.Sync: (
            ("0.10.0.0", 0, 0),
            ("0.11.0.0", 0, 1),
            ("2.0.0", 0, 2),
            ("2.3.0", 0, 3),
            ("2.4.0", 0, 4),
            ("2.5.0", 0, 5),
        ),
        messages.Heartbeat: (
            ("0.10.0.0", 0, 0),
            ("0.11.0.0", 0, 1),
            ("2.0.0", 0, 2),
            ("2.3.0", 0, 3),
            ("2.4.0", 0, 4),
        ),
        messages.Leave: (
            ("0.10.0.0", 0, 0),
            ("0.11.0.0", 0, 1),
            ("2.0.0", 0, 2),
            ("2.4.0", 0, 4),
            ("3.2.0", 0, 5),
        ),
        messages.Commit: (
            ("0.10.0.0", 0, 2),
            ("0.11.0.0", 0, 3),
            ("2.0.0", 0, 4),
            ("2.1.0", 0, 6),
            ("2.3.0", 0, 7),
            ("2.4.0", 0, 8),
            ("3.7.0", 0, 9),
            ("4.0.0", 2, 9),
            ("4.2.0", 2, 10),
        ),
        messages.Fetch: (
            ("0.10.0.0", 0, 1),
            ("0.10.2.0", 0, 2),
            ("0.11.0.0", 0, 3),
            ("2.0.0", 0, 4),
            ("2.1.0", 0, 5),
            ("2.4.0", 0, 6),
            ("2.5.0", 0, 7),
            ("3.0.0", 0, 8),
            ("3.7.0", 0, 9),
            ("4.0.0", 1, 9),
            ("4.2.0", 1, 10),
        ),
        messages.Describe: (
            ("0.10.0.0", 0, 0),
            ("0.11.0.0", 0, 1),
            ("2.0.0", 0, 2),
            ("2.3.0", 0, 3),
            ("2.4.0", 0, 5),
            ("4.0.0", 0, 6),
        ),
        messages.ListGroups: (
            ("0.10.0.0", 0, 0),
            ("0.11.0.0", 0, 1),
            ("2.0.0", 0, 2),
            ("2.4.0", 0, 3),
            ("2.6.0", 0, 4),
            ("3.8.0", 0, 5),
        ),
        messages.Delete: (
            ("1.1.0", 0, 0),
            ("2.0.0", 0, 1),
            ("2.4.0", 0, 2),
            ("4.4.0", 0, 3),
        ),
    }
)
"""From which release on a broker takes which versions of a request (the definitions in the released jars)."""

INSTANCE_SINCE: Final[Mapping[type[messages.Request], int]] = MappingProxyType(
    {messages.Join: 5, messages.Sync: 3, messages.Heartbeat: 3, messages.Leave: 3, messages.Commit: 7}
)
"""The first version with a group instance id (KIP-345)."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    versions: Ranges
    """An API that the release lacks has an empty range."""
    java: bool
    """The coordinator of 4.0, written anew. What follows from that alone asks for this rule and says so there."""

    # Joining
    initial_delay: bool
    """The first rebalance of an empty group waits for more members (KIP-134)."""
    refuses_empty_protocols: bool
    """A first member without a protocol type or protocols hears of its mistake (KAFKA-6005). Before, a missing type is
    taken, and missing protocols make the coordinator stumble: that it cannot go on with the group is not modelled."""
    bounded_new_members: bool
    """Who joins without an id and waits is dropped after five minutes (KAFKA-7610)."""
    ids_required: bool
    """Who joins without an id, from JoinGroup version 4 on, has to join with the one it is given (KIP-394)."""
    size_limit: bool
    """``group.max.size`` (KIP-389)."""
    size_by_waiting: bool
    """While members join it is compared with those that have; an id alone is no place in the group (KAFKA-9885)."""
    refused_ids_forgotten: bool
    """An id that was given out and for which there is no room is void (read: from 3.0 on)."""
    timeouts_renewed: bool
    """A member that joins again has the timeouts that it says then, not those of its first join (KAFKA-14009)."""
    generation_in_errors: int
    """Of the answer to a JoinGroup: 0 up to 2.1 (KAFKA-7824 changed that)."""
    superseded_answered: bool
    """A parked request that a newer one of the same member replaces is answered (KAFKA-20938: 4.4.0 lacks it)."""

    # Static members
    strict_instances: bool
    """Who names an instance that nobody has is unknown, whatever it asks; before 3.0 (read) only who joins."""
    replacement_written: bool
    """A static member's new id is written before it is told, and changed protocols start a round (KAFKA-10284)."""
    replacement_rejoins: bool
    """A static member that comes back while the assignment is awaited starts a round (KAFKA-9801)."""

    # A round
    sync_deadline: bool
    """Members that do not ask for their assignment are removed (KAFKA-12890)."""
    votes: Table
    """In which votes are counted, and so which of two protocols with as many is taken (seen up to 2.3, from 2.7)."""
    keeps_empty_groups: bool
    """0.10.0 forgets a group as soon as nobody is in it."""

    # Members that are there
    heartbeats_by_phase: bool
    """0.10.0: while a group is not stable, every heartbeat hears of a rebalance, whoever sends it."""
    busy_while_completing: bool
    """A heartbeat while the assignment is awaited hears of a rebalance (up to 2.6.0; KAFKA-10134)."""
    busy_generation_checked: bool
    """And before that of a wrong generation (read: from 2.3 on)."""
    commits_fenced_first: bool
    """A commit while the assignment is awaited hears first what is wrong with its member (KAFKA-8487)."""
    nameless: Error
    """What a heartbeat, a sync or a leave of the group with the empty name hears: 25 up to 1.1 (KAFKA-6773)."""
    loading_told: bool
    """While the log is read requests hear so; up to 1.1, that this is not their coordinator."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """Errors: ValueError where ``release`` is none."""
        this = Release.parse(release)

        def since(first: str) -> bool:
            return this >= Release.parse(first)

        return cls(
            versions=MappingProxyType({request: _range(spans, this) for request, spans in _VERSIONS.items()}),
            java=since("4.0.0"),
            initial_delay=since("0.11.0.0"),
            refuses_empty_protocols=since("1.0.0"),
            bounded_new_members=since("2.1.1"),
            ids_required=since("2.2.0"),
            size_limit=since("2.2.0"),
            size_by_waiting=since("2.6.0"),
            refused_ids_forgotten=since("3.0.0"),
            timeouts_renewed=since("3.3.2"),
            generation_in_errors=messages.NO_GENERATION if since("2.2.0") else 0,
            superseded_answered=since("4.4.1"),
            strict_instances=since("3.0.0"),
            replacement_written=since("2.6.1"),
            replacement_rejoins=since("2.5.0"),
            sync_deadline=since("2.8.1"),
            votes=Table.JAVA if since("4.0.0") else Table.SCALA_2_13 if since("2.7.0") else Table.SCALA_2_12,
            keeps_empty_groups=since("0.10.1.0"),
            heartbeats_by_phase=not since("0.10.1.0"),
            busy_while_completing=not since("2.6.1"),
            busy_generation_checked=since("2.3.0"),
            commits_fenced_first=since("2.4.0"),
            nameless=Error.INVALID_GROUP_ID if since("2.0.0") else Error.UNKNOWN_MEMBER_ID,
            loading_told=since("2.0.0"),
        )


def _range(spans: tuple[tuple[str, int, int], ...], release: Release) -> range:
    at = bisect_right(spans, release, key=lambda span: Release.parse(span[0]))
    if not at:
        return range(0)
    _, low, high = spans[at - 1]
    return range(low, high + 1)
