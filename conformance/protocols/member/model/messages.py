"""Events of a consumer, from its user, its coordinator and timers, and its actions: requests, callbacks, timers."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.protocols.group.model.messages import Arm, Disarm, Fired, Timer
from kipcheck.conformance.protocols.member import ops

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
    ops.Subscribe
    | ops.Unsubscribe
    | ops.Poll
    | ops.CommitOffsets
    | ops.Close
    | ops.Metadata
    | ops.Disconnected
    | Restart
    | ops.Answer
    | Fired
)


@final
@dataclass(frozen=True, slots=True)
class Noted:
    """An action of a stateful assignor, in a type of its own."""

    what: Hashable


UserEvent: TypeAlias = ops.ObservedEvent | Noted
Action: TypeAlias = ops.Request | UserEvent | Arm | Disarm
