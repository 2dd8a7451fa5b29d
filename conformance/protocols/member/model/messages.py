"""Events of a consumer, from its user, its coordinator and timers, and its actions: requests, callbacks, timers.

Requests and answers are those of ``models.group.words``, without numbers: at most one request of each kind is pending,
which identifies the request of an answer. The transport fills in the number of a request and the fresh id of a join.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.group.model.messages import (
    Arm,
    Beat,
    Commit,
    Committed,
    Disarm,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Sync,
    Synced,
    Timer,
)

HEARTBEAT: Final = Timer("heartbeat")
"""The next heartbeat is due."""
SESSION: Final = Timer("session")
"""No heartbeat was answered within the session timeout: the coordinator may have moved."""
POLLED: Final = Timer("poll")
"""The user did not poll within max.poll.interval.ms: the member leaves."""
RETRY: Final = Timer("retry")
"""The end of a back-off, or of the discovery of the coordinator."""
TIMERS: Final = (HEARTBEAT, SESSION, POLLED, RETRY)

ILLEGAL_STATE: Final = "ILLEGAL_STATE"
COMMIT_FAILED: Final = "COMMIT_FAILED"
"""The member is out of the group, and its partitions may have other owners."""
REBALANCING: Final = "REBALANCE_IN_PROGRESS"


# Calls of the user


@final
@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]
    """Not empty; for no topics use ``Unsubscribe``."""


@final
@dataclass(frozen=True, slots=True)
class Unsubscribe:
    pass


@final
@dataclass(frozen=True, slots=True)
class Poll:
    """A poll on the user's thread, the only place where callbacks run and joins are sent."""


@final
@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commits offsets (topic, partition, offset), with retries until the result is known."""

    offsets: tuple[tuple[str, int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Close:
    pass


# Other events


@final
@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers report the topics of the cluster."""

    topics: tuple[Topic, ...]


@final
@dataclass(frozen=True, slots=True)
class Disconnected:
    """The coordinator cannot be reached. Pending requests are lost, and may or may not have taken effect."""


@final
@dataclass(frozen=True, slots=True)
class Restart:
    """The process ends, and another one starts with the same configuration, without a subscription."""


Answer: TypeAlias = Joined | Synced | Beat | Left | Committed
Event: TypeAlias = (
    Subscribe | Unsubscribe | Poll | CommitOffsets | Close | Metadata | Disconnected | Restart | Answer | Fired
)


# Events visible to the user


@final
@dataclass(frozen=True, slots=True)
class Revoked:
    """The revoked callback: the partitions may still be read and committed."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """The lost callback: the partitions may have other owners already."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Given:
    """The assigned callback, for newly assigned partitions."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Reads:
    """The end of a poll without an error, with the partitions whose records it may return."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """An error that a poll raises: the name of a protocol error, or a constant of this module."""

    error: str
    exception: str = ""
    """The class of the exception, if a testee names it."""


@final
@dataclass(frozen=True, slots=True)
class CommitEnded:
    """The known result of a commit: ``NONE`` or an error."""

    error: str
    exception: str = ""
    """The class of the exception, if a testee names it."""


@final
@dataclass(frozen=True, slots=True)
class Metric:
    """num.incompatible.rebalance has risen to this (KIP-429's draft)."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """An action of a stateful assignor, in a type of its own."""

    what: Hashable


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit
UserEvent: TypeAlias = Revoked | Lost | Given | Reads | Raised | CommitEnded | Metric | Noted
Action: TypeAlias = Request | UserEvent | Arm | Disarm
