"""Observable events of the members of a group: assignments, revocations, and changes of the group.

A partition belongs to a member from the end of its assigned callback to the end of its revoked or lost callback
(429-05), or to the end of its process or membership: a member that the coordinator removed is fenced.
"""

from dataclasses import dataclass
from typing import TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.membership import Partitions


@final
@dataclass(frozen=True, slots=True)
class Took:
    """An assigned callback returned."""

    member: str
    generation: int
    partitions: Partitions
    """The newly assigned partitions."""


@final
@dataclass(frozen=True, slots=True)
class Gave:
    """A revoked or lost callback returned."""

    member: str
    partitions: Partitions
    lost: bool = False


@final
@dataclass(frozen=True, slots=True)
class Ended:
    """A process ended: its member owns nothing any more."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class PutOut:
    """The coordinator removed a member that had not left."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """A member of the group at the end of a join phase."""

    member: str
    version: int
    """Version of its protocol: 0 if it revokes all partitions before it joins, above 0 if not."""
    knows: int
    """The newest version that it can read from others."""
    topics: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase ended."""

    generation: int
    leader: str
    protocol: str
    """The assignor that the group chose."""
    members: tuple[Joining, ...]


@final
@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment reached its member."""

    member: str
    generation: int
    partitions: Partitions
    error: int = 0


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """A member raised its num.incompatible.rebalance."""

    member: str
    total: int


@final
@dataclass(frozen=True, slots=True)
class StreamsLed:
    """A rebalance of the Streams group, with its leader and the leader's latest metadata version."""

    generation: int
    leader: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class SteppedDown:
    """A member has to downgrade its metadata version: version probing (KIP-268)."""

    member: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """A member raised an error to its user."""

    member: str
    error: str


@final
@dataclass(frozen=True, slots=True)
class Rests:
    """The group is at rest: no member moves and no timer is due, except that rejected members retry."""

    generation: int
    members: tuple[Joining, ...]
    """Members of the stable group; empty if the group is empty."""


@final
@dataclass(frozen=True, slots=True)
class Restless:
    """After this many turns of all members the group has not come to rest, or is stuck in a rebalance."""

    turns: int


EventOfAnyGroup: TypeAlias = Took | Gave | Ended | PutOut | Restless
ObservedEvent: TypeAlias = (
    Took | Gave | Ended | PutOut | Formed | Assigned | Counted | StreamsLed | SteppedDown | Failed | Rests | Restless
)
