"""What an operator does to a fleet of Streams instances, and what befalls them: the words of upgrade scripts.

Members are threads with names of their own. A thread that ends says nothing to its group, be it stopped or killed:
Streams does not leave (``internal.leave.group.on.close``). So a bounce is a ``Start`` of a member that runs.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.operations import Expire, Lose, Move, Settle
from kipcheck.conformance.models.streams.members import Subtopology, Topology

MEMBERS: Final = ("a", "b", "c", "d")
OWN: Final = "own"
"""In the place of a release: that of the edition in which the script is played."""
TOPICS: Final = (Topic("t", 3),)
STATELESS: Final = Topology((Subtopology(0, ("t",)),))


@final
@dataclass(frozen=True, slots=True)
class Deploy:
    """What all members run from now on. Said before anybody is started; else it is ``STATELESS`` over ``TOPICS``."""

    topology: Topology = STATELESS
    topics: tuple[Topic, ...] = TOPICS
    """That exist to begin with."""
    end_points: bool = False
    """Does each member have an ``application.server``? Then it is ``MEMBER:9092``."""
    tags: tuple[tuple[str, str], ...] = ()
    """``client.tag.KEY`` and a value. Where a key has several, member after member has one of them, in turn. All keys
    are in ``rack.aware.assignment.tags``, so every member has to have them (3.2 on)."""
    newest_leads: bool = False
    """Who leads when the leader is gone: the member that joined last, and not the first. A coordinator may take any: in
    Kafka it is the order of a hash map."""


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A member starts; one that runs ends first, in the midst of whatever it does."""

    member: str
    release: str = OWN
    """``OWN``, ``future``, or an exact patch."""
    upgrade_from: str | None = None
    instance: str | None = None
    """Whose thread it is; None: of an instance of its own, with its name."""


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """It ends in the midst of whatever it does, and stays away."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class Restart:
    """A member that ended starts as what it was."""

    member: str


@final
@dataclass(frozen=True, slots=True)
class ShutDown:
    """A member asks the whole application to shut down: its next subscription says so (2.8 on)."""

    member: str


Event: TypeAlias = Deploy | Start | Stop | Restart | Lose | Expire | ShutDown | Move | Settle
