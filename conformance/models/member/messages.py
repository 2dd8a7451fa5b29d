"""What a consumer is told by its user, its coordinator and time, and what it does: requests, callbacks, timers.

Requests and answers are those of ``models.group.words``, without numbers: of each kind at most one is under way, so
an answer is that of its kind. Who carries them fills in the number of a request and the fresh id of a join.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.group.messages import (
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
from kipcheck.conformance.models.membership import Partitions

HEARTBEAT: Final = Timer("heartbeat")
"""The next heartbeat is due."""
SESSION: Final = Timer("session")
"""So long no heartbeat was answered: the coordinator may be elsewhere."""
POLLED: Final = Timer("poll")
"""So long the user did not poll: the member leaves."""
RETRY: Final = Timer("retry")
"""The end of a back-off, and of the search for the coordinator."""
TIMERS: Final = (HEARTBEAT, SESSION, POLLED, RETRY)

ILLEGAL_STATE: Final = "ILLEGAL_STATE"
COMMIT_FAILED: Final = "COMMIT_FAILED"
"""The member is out of the group: whether somebody else reads its partitions, it does not know."""
REBALANCING: Final = "REBALANCE_IN_PROGRESS"


# The user


@final
@dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]
    """Not empty: that would be ``Unsubscribe``."""


@final
@dataclass(frozen=True, slots=True)
class Unsubscribe:
    pass


@final
@dataclass(frozen=True, slots=True)
class Poll:
    """The user's thread: callbacks are called in it, and only in it joins are sent."""


@final
@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Topic, partition, offset. It is tried until it is known what became of it."""

    offsets: tuple[tuple[str, int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Close:
    pass


# What else happens


@final
@dataclass(frozen=True, slots=True)
class Metadata:
    """The brokers tell which topics there are."""

    topics: tuple[Topic, ...]


@final
@dataclass(frozen=True, slots=True)
class Disconnected:
    """The coordinator cannot be reached. What is under way is lost: each may have been done, or not."""


@final
@dataclass(frozen=True, slots=True)
class Restart:
    """The process dies, and another one begins with the same configuration. The user has yet to subscribe."""


Answer: TypeAlias = Joined | Synced | Beat | Left | Committed
Event: TypeAlias = (
    Subscribe | Unsubscribe | Poll | CommitOffsets | Close | Metadata | Disconnected | Restart | Answer | Fired
)


# What the user sees


@final
@dataclass(frozen=True, slots=True)
class Revoked:
    """The callback before partitions are given up: they may still be read, and committed."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """The callback for partitions that may long be somebody else's."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Given:
    """The callback for partitions that are new."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Reads:
    """At the end of a poll that raised nothing: whose records the user may be given."""

    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """To the user, out of a poll: the name of a protocol error, or a word of this module."""

    error: str


@final
@dataclass(frozen=True, slots=True)
class CommitEnded:
    """``NONE`` or why it failed; never of what is not known."""

    error: str


@final
@dataclass(frozen=True, slots=True)
class Metric:
    """num.incompatible.rebalance has risen to this (KIP-429's draft)."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """An assignor with a memory did something. What, is told in its own words."""

    what: Hashable


Request: TypeAlias = Join | Sync | Heartbeat | Leave | Commit
Seen: TypeAlias = Revoked | Lost | Given | Reads | Raised | CommitEnded | Metric | Noted
Action: TypeAlias = Request | Seen | Arm | Disarm
