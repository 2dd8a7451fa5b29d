"""Events of a consumer, from its user, its coordinator and timers, and its actions: requests, callbacks, timers."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.protocols.group.model.messages import Arm, Disarm, Fired, Timer
from kipcheck.conformance.protocols.member.ops import (
    Answer,
    Close,
    CommitEnded,
    CommitOffsets,
    Disconnected,
    Given,
    Lost,
    Metadata,
    Metric,
    ObservedEvent,
    Poll,
    Raised,
    Reads,
    Request,
    Revoked,
    Subscribe,
    Unsubscribe,
)

__all__ = [
    "COMMIT_FAILED",
    "HEARTBEAT",
    "ILLEGAL_STATE",
    "POLLED",
    "REBALANCING",
    "RETRY",
    "SESSION",
    "TIMERS",
    "Action",
    "Answer",
    "Close",
    "CommitEnded",
    "CommitOffsets",
    "Disconnected",
    "Event",
    "Given",
    "Lost",
    "Metadata",
    "Metric",
    "Noted",
    "Poll",
    "Raised",
    "Reads",
    "Request",
    "Restart",
    "Revoked",
    "Subscribe",
    "Unsubscribe",
    "UserEvent",
]

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


@final
@dataclass(frozen=True, slots=True)
class Restart:
    """The process ends, and another one starts with the same configuration, without a subscription."""


Event: TypeAlias = (
    Subscribe | Unsubscribe | Poll | CommitOffsets | Close | Metadata | Disconnected | Restart | Answer | Fired
)


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """An action of a stateful assignor, in a type of its own."""

    what: Hashable


UserEvent: TypeAlias = ObservedEvent | Noted
Action: TypeAlias = Request | UserEvent | Arm | Disarm
