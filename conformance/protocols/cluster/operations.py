"""Events of upgrade scripts: steps of an operator, and faults of members.

The same kinds of members serve KIP-429's draft and the releases. The draft configures ``rebalance.protocol``, and its
subscription has a version; releases configure a list of assignors (429-17, 429-20).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1

V2: Final = 2
"""Version of a later protocol change, for which the draft expects to need only one bounce (429-09)."""


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """A binary and its configuration."""

    name: str
    knows: int
    """The newest version of the protocol that it can read from others."""
    version: int
    """The version that it uses in the draft: 0 is eager."""
    assignors: tuple[str, ...]
    """Its assignors in releases. It is eager if one of them is."""

    @property
    def eager(self) -> bool:
        return self.version == V0


OLD, READY, COOPERATES, LATER = "old", "ready", "cooperative", "later"
KINDS: Final[Mapping[str, Kind]] = {
    each.name: each
    for each in (
        Kind(OLD, V0, V0, (RANGE,)),
        Kind(READY, V1, V0, (COOPERATIVE, RANGE)),  # after the first bounce
        Kind(COOPERATES, V1, V1, (COOPERATIVE,)),  # after the second bounce
        Kind(LATER, V2, V2, (COOPERATIVE,)),
    )
}
MEMBERS: Final = ("a", "b", "c")
METADATA: Final = range(1, 12)
"""Versions of the metadata of Streams instances."""
TOPICS: Final = (("t", 3), ("u", 1))
"""Existing topics, with their numbers of partitions."""
DEFAULT_TOPICS: Final = ("t",)
"""Topics that a member subscribes to by default."""


@dataclass(frozen=True, slots=True)
class StartsProcess:
    """A step after which the process of a member runs."""

    member: str


@dataclass(frozen=True, slots=True)
class NeedsProcess:
    """A step that happens to a running process of a member."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class OldBrokers:
    """The brokers are older than the draft: the first member leads. Only valid before any member has started."""


@final
@dataclass(frozen=True, slots=True)
class Roll(StartsProcess):
    """A member shuts down cleanly, if it runs, and starts as another kind."""

    kind: str
    topics: tuple[str, ...] = DEFAULT_TOPICS


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """A member shuts down cleanly, leaves the group, and does not restart."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Crash(NeedsProcess):
    """A member's process ends at once."""


@final
@dataclass(frozen=True, slots=True)
class Restart(StartsProcess):
    """A member that crashed or stopped starts with the same binary and configuration."""


@final
@dataclass(frozen=True, slots=True)
class Lose(NeedsProcess):
    """The connection of a member breaks: the request or response in flight never arrives."""


@final
@dataclass(frozen=True, slots=True)
class Expire(NeedsProcess):
    """The session of a live member expires."""


@final
@dataclass(frozen=True, slots=True)
class Move(NeedsProcess):
    """A member makes moves, including the delivery of its requests and responses, while all others wait."""

    moves: int = 1


@final
@dataclass(frozen=True, slots=True)
class Settle:
    """Time passes until the group is at rest. Members whose join was rejected retry once."""


@final
@dataclass(frozen=True, slots=True)
class RollStreams:
    """A Streams instance of another group stops, if it runs, and starts with this version of its metadata."""

    member: str
    version: int


Fault: TypeAlias = Crash | Restart | Lose | Expire | Move | Settle
"""What happens to members of any kind."""
OwnEvent: TypeAlias = OldBrokers | Roll | Stop | RollStreams
Event: TypeAlias = OwnEvent | Fault
