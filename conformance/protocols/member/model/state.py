"""The state of a consumer in a classic group."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.group.model.messages import NO_GENERATION, Blob
from kipcheck.conformance.protocols.member.model.messages import Action


class Phase(Enum):
    UNJOINED = "unjoined"
    PREPARING = "preparing"
    """It sent a JoinGroup."""
    COMPLETING = "completing"
    """It sent a SyncGroup."""
    STABLE = "stable"
    CLOSED = "closed"


class Asked(Enum):
    """The pending request of a join."""

    NOTHING = "nothing"
    JOIN = "join"
    SYNC = "sync"


class Pause(Enum):
    """Reason why nothing is sent until the retry timer expires."""

    NO = "no"
    BACK_OFF = "back-off"
    SEARCH = "search"
    """The coordinator has to be discovered again."""


class Identity(NamedTuple):
    member: str = ""
    generation: int = NO_GENERATION
    protocol: str | None = None
    """The assignor that the group chose."""


NO_IDENTITY: Final = Identity()


@final
@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.UNJOINED
    topics: tuple[str, ...] = ()
    """Subscribed topics, sorted; empty: the consumer is in no group."""
    identity: Identity = NO_IDENTITY
    owned: Partitions = ()
    """Sorted."""
    rejoin: bool = True
    prepared: bool = False
    """The callbacks before a join have been called, and the join has not completed."""
    asked: Asked = Asked.NOTHING
    asked_as: Identity = NO_IDENTITY
    told: tuple[str, ...] | None = None
    """The topics in its last JoinGroup."""
    result: Blob | None = None
    """An assignment that no poll has applied yet."""
    trouble: str = ""
    """The error that the next poll raises."""
    beat_as: Identity | None = None
    """Identity in the pending heartbeat."""
    leaving: bool = False
    """A LeaveGroup is pending."""
    commit: tuple[tuple[str, int, int], ...] = ()
    """Offsets that the user is committing."""
    commit_as: Identity | None = None
    """Identity in the pending OffsetCommit."""
    pause: Pause = Pause.NO
    leads: bool = False
    watched: tuple[tuple[str, int], ...] | None = None
    """Of a leader: topics of the group, with their numbers of partitions at the assignment."""
    topics_known: tuple[Topic, ...] = ()
    given: Partitions = ()
    """The last assignment, which the sticky assignors remember."""
    given_in: int = NO_GENERATION
    incompatible: int = 0
    """num.incompatible.rebalance."""
    memory: Hashable = None
    """Memory of a stateful assignor (Streams)."""


Step: TypeAlias = Transition[State, Action]
