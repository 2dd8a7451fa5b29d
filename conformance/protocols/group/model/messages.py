"""Events and actions of a classic group coordinator, for one group, without clock or randomness.

Each request has a number, which its answer repeats. The answer may come at once, at a later event, or never.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, final

from kipcheck.conformance.protocols.group.errors import Error
from kipcheck.conformance.protocols.group.ops import (
    EMPTY,
    NO_GENERATION,
    Beat,
    Blob,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Listed,
    ListGroups,
    Load,
    Loaded,
    Reply,
    Request,
    Sync,
    Synced,
    Unload,
)

__all__ = [
    "EMPTY",
    "NO_GENERATION",
    "Action",
    "Append",
    "Arm",
    "Beat",
    "Blob",
    "Commit",
    "Committed",
    "Delete",
    "Deleted",
    "Describe",
    "Described",
    "Disarm",
    "Error",
    "Event",
    "Fetch",
    "Fetched",
    "Fired",
    "GroupRecord",
    "Heartbeat",
    "Join",
    "Joined",
    "Leave",
    "Left",
    "ListGroups",
    "Listed",
    "Load",
    "Loaded",
    "Nameless",
    "OffsetBatch",
    "OffsetRecord",
    "Phase",
    "Record",
    "Reply",
    "Request",
    "Sync",
    "Synced",
    "Timer",
    "Tombstone",
    "Unload",
    "WriteFailed",
    "Written",
]


class Phase(IntEnum):
    """Phase of a group (``GroupState``)."""

    EMPTY = 0
    PREPARING = 1
    """The join phase."""
    COMPLETING = 2
    """The generation is formed; the leader's assignment is pending."""
    STABLE = 3
    DEAD = 4

    @property
    def called(self) -> str:
        """The name in DescribeGroups and ListGroups."""
        return ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")[self]


@final
@dataclass(frozen=True, slots=True)
class Nameless:
    """A request with an empty group id."""

    asked: Request


# Other events


@final
@dataclass(frozen=True, slots=True, order=True)
class Timer:
    kind: str
    """``rebalance`` (the join phase, including the initial delay), ``sync`` (the members' SyncGroup is due),
    ``session`` or ``pending`` (a given id is not used yet); the last two have a member."""
    member: str = ""


@final
@dataclass(frozen=True, slots=True)
class Fired:
    """An armed timer has expired, and is no longer armed."""

    timer: Timer


@final
@dataclass(frozen=True, slots=True)
class Written:
    """The oldest pending append is committed."""


@final
@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The oldest pending append failed, with the error of the log."""

    error: Error


Event: TypeAlias = Request | Nameless | Fired | Written | WriteFailed | Unload | Load | Loaded


# Other actions


@final
@dataclass(frozen=True, slots=True)
class Arm:
    """Arms a timer; restarts it if it is armed already."""

    timer: Timer
    ms: int


@final
@dataclass(frozen=True, slots=True)
class Disarm:
    """Disarms a timer, which may just have expired."""

    timer: Timer


@final
@dataclass(frozen=True, slots=True)
class Append:
    """Appends a record to the log. A later event has the result; results come in the order of the appends."""

    record: "Record"


@final
@dataclass(frozen=True, slots=True)
class GroupRecord:
    """GroupMetadataValue."""

    generation: int
    protocol_type: str
    protocol: str | None
    leader: str | None
    members: tuple[tuple[str, str | None, int, int, Blob, Blob], ...]
    """Id, instance, session and rebalance timeout, metadata of the protocol, assignment."""


@final
@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """OffsetCommitValue."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@final
@dataclass(frozen=True, slots=True)
class OffsetBatch:
    """The offsets of one commit, which are written atomically."""

    records: tuple[OffsetRecord, ...]


@final
@dataclass(frozen=True, slots=True)
class Tombstone:
    """Tombstones of the group and all its offsets."""


Record: TypeAlias = GroupRecord | OffsetBatch | Tombstone
Action: TypeAlias = Reply | Arm | Disarm | Append
