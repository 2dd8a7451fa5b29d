"""What a consumer of a group remembers between one event and the next."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.models.assignment import Topic
from kipcheck.conformance.models.group.messages import NO_GENERATION, Blob
from kipcheck.conformance.models.member.messages import Action
from kipcheck.conformance.models.membership import Partitions


class Phase(Enum):
    UNJOINED = "unjoined"
    PREPARING = "preparing"
    """It sent a JoinGroup."""
    COMPLETING = "completing"
    """It sent a SyncGroup."""
    STABLE = "stable"
    CLOSED = "closed"


class Asked(Enum):
    """What is under way of the two requests of a join."""

    NOTHING = "nothing"
    JOIN = "join"
    SYNC = "sync"


class Pause(Enum):
    """Why nothing is sent until the retry timer runs out."""

    NO = "no"
    BACK_OFF = "back-off"
    SEARCH = "search"
    """The coordinator is to be found again."""


class Identity(NamedTuple):
    member: str = ""
    generation: int = NO_GENERATION
    protocol: str | None = None
    """The assignor that the group chose."""


NOBODY: Final = Identity()


@final
@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.UNJOINED
    topics: tuple[str, ...] = ()
    """Subscribed to, sorted; none: the consumer is in no group."""
    identity: Identity = NOBODY
    owned: Partitions = ()
    """Sorted."""
    rejoin: bool = True
    prepared: bool = False
    """The callbacks before a join have been called, and the join has not come to its end."""
    asked: Asked = Asked.NOTHING
    asked_as: Identity = NOBODY
    told: tuple[str, ...] | None = None
    """The topics that its last join named."""
    result: Blob | None = None
    """An assignment that no poll has taken up yet."""
    trouble: str = ""
    """What the next poll raises."""
    beat_as: Identity | None = None
    """Of the heartbeat that is under way."""
    leaving: bool = False
    """A LeaveGroup is under way."""
    commit: tuple[tuple[str, int, int], ...] = ()
    """That the user waits for."""
    commit_as: Identity | None = None
    """Of the OffsetCommit that is under way."""
    pause: Pause = Pause.NO
    leads: bool = False
    watched: tuple[tuple[str, int], ...] | None = None
    """Of a leader: the topics of the group and their partitions when it assigned them."""
    topics_known: tuple[Topic, ...] = ()
    given: Partitions = ()
    """Last, as the sticky assignors remember it."""
    given_in: int = NO_GENERATION
    incompatible: int = 0
    """num.incompatible.rebalance."""
    memory: Hashable = None
    """Of an assignor that has one (Streams)."""


Step: TypeAlias = Transition[State, Action]
