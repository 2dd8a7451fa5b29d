"""What can be seen of a fleet of Streams instances: user data as it travels, and what members make of it."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from kipcheck.conformance.models.membership import Partitions
from kipcheck.conformance.models.observed_events import Ended, Gave, PutOut, Restless, Took
from kipcheck.conformance.models.streams.members import NEVER, NONE, Blob, Rejoin, Tasks


@final
@dataclass(frozen=True, slots=True)
class Began:
    """A process runs."""

    member: str
    release: str
    """Which one it is, be it an exact patch, a draft's edition, or the future of either (``future``,
    ``future@kip-268``)."""
    upgrade_from: str | None
    latest: int
    used: int
    """In which it is about to subscribe."""


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """A process does not start: its configuration is an error."""

    member: str
    release: str
    upgrade_from: str | None
    why: str


class Told(NamedTuple):
    """What a member said of itself in a join phase that is over."""

    member: str
    data: Blob
    owned: Partitions
    cooperative: bool


@final
@dataclass(frozen=True, slots=True)
class Formed:
    """A join phase is over. Every one of them is a rebalance."""

    generation: int
    leader: str
    members: tuple[Told, ...]


@final
@dataclass(frozen=True, slots=True)
class Sent:
    """The leader of a generation made this assignment for a member. All that it made come one after another."""

    generation: int
    leader: str
    member: str
    partitions: Partitions
    data: Blob


@final
@dataclass(frozen=True, slots=True)
class Applied:
    """An assignment reached its member, and this is what it made of it (``words.Heard``)."""

    member: str
    generation: int
    partitions: Partitions
    before: int
    """The version that it used till then,"""
    used: int
    """and uses from now on."""
    active: Tasks
    """That its task manager runs now,"""
    standby: Tasks
    """and keeps ready."""
    applied: bool = True
    rejoin: Rejoin = NEVER
    error: int = NONE


@final
@dataclass(frozen=True, slots=True)
class Died:
    """A thread ended with an exception."""

    member: str
    during: str
    """``subscribe``, ``lead`` or ``assigned``; ``error`` where it was told an error code that ends it."""
    kind: str
    """The class of the exception, or the name that a model has for it; ``ENDLESS``: what it called never came back."""
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
    """Nothing more happens by itself: the members of the group, which is stable; none where it is empty."""

    generation: int
    members: tuple[Present, ...]


Happening: TypeAlias = (
    Began | Refused | Formed | Sent | Applied | Took | Gave | Ended | PutOut | Died | Rests | Restless
)
