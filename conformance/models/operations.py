"""What an operator does to the members of a group, and what befalls them: the words of upgrade scripts.

The same kinds of members serve KIP-429's draft and what was released. In the draft a member is told
``rebalance.protocol`` and its subscription has a version; as released it is told a list of assignors (429-17, 429-20).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.models.assignment import COOPERATIVE, RANGE
from kipcheck.conformance.models.membership import V0, V1

V2: Final = 2
"""Of a later change of the protocol, for which the draft hopes to need one bounce only (429-09)."""


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """A binary and its configuration."""

    name: str
    knows: int
    """The newest version of the protocol that it understands in others."""
    version: int
    """That it speaks, in the draft: 0 is eager."""
    assignors: tuple[str, ...]
    """As released. It is eager where one of them is."""

    @property
    def eager(self) -> bool:
        return self.version == V0


OLD, READY, COOPERATES, LATER = "old", "ready", "cooperative", "later"
KINDS: Final[Mapping[str, Kind]] = {
    each.name: each
    for each in (
        Kind(OLD, V0, V0, (RANGE,)),
        Kind(READY, V1, V0, (COOPERATIVE, RANGE)),  # what the first bounce brings
        Kind(COOPERATES, V1, V1, (COOPERATIVE,)),  # and the second
        Kind(LATER, V2, V2, (COOPERATIVE,)),
    )
}
MEMBERS: Final = ("a", "b", "c")
METADATA: Final = range(1, 12)
"""Versions of what Streams instances tell each other."""
TOPICS: Final = (("t", 3), ("u", 1))
"""All that there are, with their partitions."""
EVERYBODYS: Final = ("t",)
"""What a member subscribes to where nothing is said."""


@final
@dataclass(frozen=True, slots=True)
class OldBrokers:
    """The group is coordinated as before the draft, first come, first served. Said before anybody is started."""


@final
@dataclass(frozen=True, slots=True)
class Roll:
    """A member stops as it should, if it runs, and starts as another kind."""

    member: str
    kind: str
    topics: tuple[str, ...] = EVERYBODYS


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """It leaves the group as it should, and does not come back."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Crash:
    """It is gone in the midst of whatever it does."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Revive:
    """After a crash or a stop it starts as what it was."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Lose:
    """The connection of a member breaks: the request or the answer that is under way never arrives."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Expire:
    """The coordinator hears too late of a member that is alive, and takes it for dead."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Move:
    """A member makes some moves, its requests and answers on their way included, while all others wait."""

    member: str
    moves: int = 1


@final
@dataclass(frozen=True, slots=True)
class Settle:
    """Time passes until nothing more happens by itself. Members that were refused before try once more."""


@final
@dataclass(frozen=True, slots=True)
class RollStreams:
    """A Streams instance of another group stops, if it runs, and starts with this version of its metadata."""

    member: str
    version: int


Event: TypeAlias = OldBrokers | Roll | Stop | Crash | Revive | Lose | Expire | Move | Settle | RollStreams
