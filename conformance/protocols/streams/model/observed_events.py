"""Observable events of a Streams group: user data in transit, and its effect on members."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model.members import NEVER, NONE, Blob, Rejoin, Tasks
from kipcheck.conformance.protocols.upgrade.model.observed_events import Ended, Gave, PutOut, Restless, Took


@final
@dataclass(frozen=True, slots=True)
class Began:
    """A process started."""

    member: str
    release: str
    """An exact patch release, a draft's edition, or the future of either (``future``, ``future@kip-268``)."""
    upgrade_from: str | None
    latest: int
    used: int
    """The version of its first subscription."""


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """A process did not start, because its configuration is invalid."""

    member: str
    release: str
    upgrade_from: str | None
    why: str


class JoinMetadata(NamedTuple):
    """A member's metadata in a completed join phase."""

    member: str
    data: Blob
    owned: Partitions
    cooperative: bool


@final
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase completed. Each join phase is a rebalance."""

    generation: int
    leader: str
    members: tuple[JoinMetadata, ...]


@final
@dataclass(frozen=True, slots=True)
class Sent:
    """The leader of a generation sent this assignment for a member. Its assignments are consecutive events."""

    generation: int
    leader: str
    member: str
    partitions: Partitions
    data: Blob


@final
@dataclass(frozen=True, slots=True)
class Applied:
    """The effect of an assignment on its member (``words.Heard``)."""

    member: str
    generation: int
    partitions: Partitions
    before: int
    """The version it used before."""
    used: int
    """The version it uses from now on."""
    active: Tasks
    """Active tasks of its task manager."""
    standby: Tasks
    """Standby tasks of its task manager."""
    applied: bool = True
    rejoin: Rejoin = NEVER
    error: int = NONE


@final
@dataclass(frozen=True, slots=True)
class Died:
    """A thread ended with an exception."""

    member: str
    during: str
    """``subscribe``, ``lead`` or ``assigned``; ``error`` for an error code in the assignment."""
    kind: str
    """Class of the exception, or a model's name for it; ``ENDLESS`` for a call that did not return."""
    why: str


class Present(NamedTuple):
    member: str
    used: int
    active: Tasks
    standby: Tasks
    partitions: Partitions


@final
@dataclass(frozen=True, slots=True)
class Rests:
    """The group is at rest. ``members`` are those of the stable group, none if it is empty."""

    generation: int
    members: tuple[Present, ...]


ObservedEvent: TypeAlias = (
    Began | Refused | Formed | Sent | Applied | Took | Gave | Ended | PutOut | Died | Rests | Restless
)
