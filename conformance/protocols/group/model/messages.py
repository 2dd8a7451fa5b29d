"""Events and actions of a classic group coordinator, for one group, without clock or randomness.

Each request has a number, which its answer repeats. The answer may come at once, at a later event, or never.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, final

Blob: TypeAlias = Hashable
"""Metadata of a protocol, or an assignment: opaque to the coordinator, which compares and forwards it."""
EMPTY: Blob = ""
"""Zero bytes."""
NO_GENERATION = -1


class Error(IntEnum):
    """Kafka's error codes that this protocol uses (``org.apache.kafka.common.protocol.Errors``)."""

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


# Requests


@final
@dataclass(frozen=True, slots=True)
class Join:
    version: int
    """Version of the JoinGroup request."""
    member: str
    """Member id; empty if it has none yet."""
    instance: str | None
    protocol_type: str
    protocols: tuple[tuple[str, Blob], ...]
    """Names and metadata, preferred first."""
    session_ms: int = 10_000
    rebalance_ms: int = 30_000
    fresh: str = ""
    """The member id that the coordinator gives out if this request needs one; an input, so that the model is pure."""
    protocol_version: int | None = None
    """Only in KIP-429's draft (JoinGroup v5)."""
    request: int = 0

    @property
    def patience_ms(self) -> int:
        """The rebalance timeout; version 0 has none, and uses the session timeout."""
        return self.session_ms if self.version == 0 else self.rebalance_ms


@final
@dataclass(frozen=True, slots=True)
class Sync:
    version: int
    member: str
    instance: str | None
    generation: int
    assignments: tuple[tuple[str, Blob], ...] = ()
    """Member ids and assignments; empty from a follower."""
    protocol_type: str | None = None
    """Since version 5."""
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
    """Up to version 2 one member without an instance; since version 3 a batch."""

    version: int
    members: tuple[tuple[str, str | None], ...]
    """Member id, which may be empty, and instance id."""
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Commit:
    version: int
    member: str
    """Empty, with generation -1, for a consumer without group membership."""
    instance: str | None
    generation: int
    offsets: tuple[tuple[str, int, int], ...]
    """Topic, partition, offset."""
    request: int = 0


@final
@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetches all committed offsets of the group."""

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
    """The log is read: the group is restored from its records."""


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
    """Only for the leader: id, instance and metadata of each member."""
    skip_assignment: bool = False
    """Since version 9: the leader must not assign."""


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
    """Since version 3, in the order of the request."""


@final
@dataclass(frozen=True, slots=True)
class Committed:
    to: int
    error: Error
    """The same for every partition: this model has no errors of single partitions."""


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
    """Only of a stable group."""
    members: tuple[tuple[str, str | None, Blob, Blob], ...] = ()
    """Id, instance, metadata and assignment, the last two only of a stable group. Sorted."""


@final
@dataclass(frozen=True, slots=True)
class Listed:
    to: int
    error: Error
    groups: tuple[tuple[str, str], ...] = ()
    """Protocol type and state of the group, if it exists."""


@final
@dataclass(frozen=True, slots=True)
class Deleted:
    to: int
    error: Error


Reply: TypeAlias = Joined | Synced | Beat | Left | Committed | Fetched | Described | Listed | Deleted


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
