"""What a classic group coordinator is told and what it says, about one group. There is no clock and no luck in it.

Requests carry the number by which their answer names them: an answer may come at once, at a later event, or never.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, final

Blob: TypeAlias = Hashable
"""Metadata of a protocol, or an assignment: bytes to the coordinator, which compares and passes them on."""
EMPTY: Blob = ""
"""No bytes."""
NO_GENERATION = -1


class Error(IntEnum):
    """Kafka's error codes, as far as this protocol has them (``org.apache.kafka.common.protocol.Errors``)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82


class Phase(IntEnum):
    """Of a group (``GroupState``)."""

    EMPTY = 0
    PREPARING = 1
    """Join requests are collected."""
    COMPLETING = 2
    """The generation is fixed; the leader's assignment is awaited."""
    STABLE = 3
    DEAD = 4

    @property
    def called(self) -> str:
        """As DescribeGroups and ListGroups have it."""
        return ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")[self]


# Requests


@final
@dataclass(frozen=True, slots=True)
class Join:
    version: int
    """Of the JoinGroup request."""
    member: str
    """Empty: it has no id yet."""
    instance: str | None
    protocol_type: str
    protocols: tuple[tuple[str, Blob], ...]
    """Name and metadata, the preferred one first."""
    session_ms: int = 10_000
    rebalance_ms: int = 30_000
    fresh: str = ""
    """The member id that is given out if this request needs one: luck comes in through the door."""
    protocol_version: int | None = None
    """KIP-429's draft alone (JoinGroup v5)."""
    request: int = 0

    @property
    def patience_ms(self) -> int:
        """How long the group waits for this member to join again: version 0 says nothing of its own about that."""
        return self.session_ms if self.version == 0 else self.rebalance_ms


@final
@dataclass(frozen=True, slots=True)
class Sync:
    version: int
    member: str
    instance: str | None
    generation: int
    assignments: tuple[tuple[str, Blob], ...] = ()
    """Member and what it gets; of a follower, nothing."""
    protocol_type: str | None = None
    """From version 5 on."""
    protocol: str | None = None
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Heartbeat:
    version: int
    member: str
    instance: str | None
    generation: int
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Leave:
    """Up to version 2 one member without an instance; from 3 on a batch."""

    version: int
    members: tuple[tuple[str, str | None], ...]
    """Member id, which may be empty, and instance id."""
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Commit:
    version: int
    member: str
    """Empty, with generation -1: of a consumer that is in no group."""
    instance: str | None
    generation: int
    offsets: tuple[tuple[str, int, int], ...]
    """Topic, partition, offset."""
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Fetch:
    """All offsets that the group has committed."""

    version: int
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Describe:
    version: int
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class ListGroups:
    version: int
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Delete:
    version: int
    request: int = 0


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit | Fetch | Describe | ListGroups | Delete


@final
@dataclass(frozen=True, slots=True)
class Nameless:
    """A request that names no group: its group id is empty."""

    asked: Request


# What else happens


@final
@dataclass(frozen=True, slots=True, order=True)
class Timer:
    kind: str
    """``rebalance`` (the join phase, its first delay included), ``sync`` (the members' SyncGroup is due), ``session``
    or ``pending`` (an id was given out and nobody joined with it), the last two of one member."""
    member: str = ""


@final
@dataclass(frozen=True, slots=True)
class Fired:
    """A timer that is armed has run out. It is not armed any more."""

    timer: Timer


@final
@dataclass(frozen=True, slots=True)
class Written:
    """The oldest append that is under way is committed."""


@final
@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The oldest append that is under way came to nothing, with the error of the log."""

    error: Error


@final
@dataclass(frozen=True, slots=True)
class Unload:
    """The partition of the group moves to another broker."""


@final
@dataclass(frozen=True, slots=True)
class Load:
    """This broker takes the partition over, and begins to read the log."""


@final
@dataclass(frozen=True, slots=True)
class Loaded:
    """The log is read: the group is what its records say."""


Event: TypeAlias = Request | Nameless | Fired | Written | WriteFailed | Unload | Load | Loaded


# Answers: ``to`` is the number of the request


@final
@dataclass(frozen=True, slots=True)
class Joined:
    to: int
    error: Error
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[tuple[str, str | None, Blob], ...] = ()
    """To the leader: id, instance and metadata of each."""
    skip_assignment: bool = False
    """From version 9 on: the leader shall assign nothing."""


@final
@dataclass(frozen=True, slots=True)
class Synced:
    to: int
    error: Error
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: Blob = EMPTY


@final
@dataclass(frozen=True, slots=True)
class Beat:
    to: int
    error: Error


@final
@dataclass(frozen=True, slots=True)
class Left:
    to: int
    error: Error
    members: tuple[tuple[str, str | None, Error], ...] = ()
    """From version 3 on, in the order of the request."""


@final
@dataclass(frozen=True, slots=True)
class Committed:
    to: int
    error: Error
    """The same for every partition: this model has no per-partition trouble."""


@final
@dataclass(frozen=True, slots=True)
class Fetched:
    to: int
    error: Error
    offsets: tuple[tuple[str, int, int], ...] = ()
    """Sorted."""


@final
@dataclass(frozen=True, slots=True)
class Described:
    to: int
    error: Error
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    """Of a stable group alone."""
    members: tuple[tuple[str, str | None, Blob, Blob], ...] = ()
    """Id, instance, metadata and assignment, the last two of a stable group alone. Sorted."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    to: int
    error: Error
    groups: tuple[tuple[str, str], ...] = ()
    """Protocol type and state of the one group, where it exists."""


@final
@dataclass(frozen=True, slots=True)
class Deleted:
    to: int
    error: Error


Reply: TypeAlias = Joined | Synced | Beat | Left | Committed | Fetched | Described | Listed | Deleted


# What else it does


@final
@dataclass(frozen=True, slots=True)
class Arm:
    """Anew, if it is armed already."""

    timer: Timer
    ms: int


@final
@dataclass(frozen=True, slots=True)
class Disarm:
    """It may just have run out."""

    timer: Timer


@final
@dataclass(frozen=True, slots=True)
class Append:
    """A record goes to the log: an event tells later what became of it, and of several in their order."""

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


@final
@dataclass(frozen=True, slots=True)
class OffsetBatch:
    """What one commit writes: all of it or nothing."""

    records: tuple[OffsetRecord, ...]


@final
@dataclass(frozen=True, slots=True)
class Tombstone:
    """Of the group and all its offsets."""


Record: TypeAlias = GroupRecord | OffsetBatch | Tombstone
Action: TypeAlias = Reply | Arm | Disarm | Append
