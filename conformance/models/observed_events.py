"""What can be seen of the members of a group from outside: what they take up and give up, and what they are told.

A partition belongs to a member from the end of its assigned callback to the end of its revoked or lost callback
(429-05), or to the end of its process, or of its membership: who was put out is fenced, whatever it still believes.
"""

from dataclasses import dataclass
from typing import TypeAlias, final

from kipcheck.conformance.models.membership import Partitions


@final
@dataclass(frozen=True, slots=True)
class Took:
    """An assigned callback is over."""

    member: str
    generation: int
    partitions: Partitions
    """Those that it did not have before."""


@final
@dataclass(frozen=True, slots=True)
class Gave:
    """A revoked or lost callback is over."""

    member: str
    partitions: Partitions
    lost: bool = False


@final
@dataclass(frozen=True, slots=True)
class Ended:
    """A process is gone: what it had it has no more."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class PutOut:
    """The coordinator took a member out of the group that did not ask for it."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """Of a member, at the end of a join phase."""

    member: str
    version: int
    """Of the protocol that it speaks: 0 where it has given up all before it joins, above where it has not."""
    knows: int
    """The newest version that it understands in others."""
    topics: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase is over."""

    generation: int
    leader: str
    protocol: str
    """The assignor that all have in common."""
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
    """A round of the Streams group: who leads it, and knows metadata up to which version."""

    generation: int
    leader: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class SteppedDown:
    """A member was told to speak an older version than it did: a probing round (KIP-268)."""

    member: str
    version: int


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """A member gave up, for its user to see."""

    member: str
    error: str


@final
@dataclass(frozen=True, slots=True)
class Rests:
    """Nothing more happens by itself, or nothing but that members that were refused try again."""

    generation: int
    members: tuple[Joining, ...]
    """Of the group, which is stable; none where it is empty."""


@final
@dataclass(frozen=True, slots=True)
class Restless:
    """After so many turns of all members there is still something going on, or it stands still unfinished."""

    turns: int


Happening: TypeAlias = (
    Took | Gave | Ended | PutOut | Formed | Assigned | Counted | StreamsLed | SteppedDown | Failed | Rests | Restless
)
