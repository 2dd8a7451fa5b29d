"""Events of upgrade scripts for Streams groups: steps of an operator, and faults of members.

Members are named threads. A thread that is stopped or killed sends no LeaveGroup, because Streams does not leave
(``internal.leave.group.on.close``). So a bounce is a ``Start`` of a running member.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.cluster.operations import Fault, NeedsProcess, StartsProcess
from kipcheck.conformance.protocols.streams.model.members import Subtopology, Topology

MEMBERS: Final = ("a", "b", "c", "d")
OWN: Final = "own"
"""Placeholder for the release of the script's edition."""
TOPICS: Final = (Topic("t", 3),)
STATELESS: Final = Topology((Subtopology(0, ("t",)),))


@final
@dataclass(frozen=True, slots=True)
class Deploy:
    """Deploys the application of all members. Only valid before any member has started; the default is ``STATELESS``
    over ``TOPICS``."""

    topology: Topology = STATELESS
    topics: tuple[Topic, ...] = TOPICS
    """Topics that exist at the start."""
    end_points: bool = False
    """True: each member has the ``application.server`` ``MEMBER:9092``."""
    tags: tuple[tuple[str, str], ...] = ()
    """``client.tag.KEY`` and a value. Several values of a key are given to the members in turn. All keys are in
    ``rack.aware.assignment.tags``, so every member needs them (since 3.2)."""
    newest_leads: bool = False
    """True: when the leader is gone, the member that joined last leads, not the first. A coordinator may choose any
    member: in Kafka it depends on the order of a hash map."""


@final
@dataclass(frozen=True, slots=True)
class Start(StartsProcess):
    """A member starts; if it runs, its process first ends at once."""

    release: str = OWN
    """``OWN``, ``future``, or an exact patch release."""
    upgrade_from: str | None = None
    instance: str | None = None
    """The instance of the thread; None: an instance of its own, with the member's name."""


@final
@dataclass(frozen=True, slots=True)
class ShutDown(NeedsProcess):
    """A member requests the shutdown of the whole application in its next subscription (since 2.8)."""


OwnEvent: TypeAlias = Deploy | Start | ShutDown
Event: TypeAlias = OwnEvent | Fault
