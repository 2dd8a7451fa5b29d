"""What is common to the heartbeats of reconciled groups: epochs, errors, and what a client remembers of answers."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final, Literal, NamedTuple, Protocol, TypeAlias, assert_never

from kipcheck.conformance.core.operations.declaration import answer
from kipcheck.conformance.core.operations.field_annotations import hidden, named
from kipcheck.conformance.protocols.assignment.model.assignment import Partition

LEAVING: Final = -1
"""The member epoch of a leaving member, and of the answer to it."""
AWAY: Final = -2
"""The same of a static member that leaves for a while."""
LEFT: Final = (LEAVING, AWAY)

INVALID_REQUEST: Final = "INVALID_REQUEST"
GROUP_ID_NOT_FOUND: Final = "GROUP_ID_NOT_FOUND"
UNKNOWN_MEMBER_ID: Final = "UNKNOWN_MEMBER_ID"
FENCED_MEMBER_EPOCH: Final = "FENCED_MEMBER_EPOCH"
STALE_MEMBER_EPOCH: Final = "STALE_MEMBER_EPOCH"
FENCED_INSTANCE_ID: Final = "FENCED_INSTANCE_ID"
UNRELEASED_INSTANCE_ID: Final = "UNRELEASED_INSTANCE_ID"
GROUP_MAX_SIZE_REACHED: Final = "GROUP_MAX_SIZE_REACHED"
UNAVAILABLE: Final = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
"""Errors of a coordinator that cannot answer yet, or no longer: they refuse any request."""

SETTINGS_OF_GROUPS: Final = {
    "session_ms": "consumer.session.timeout.ms",
    "share_session_ms": "share.session.timeout.ms",
    "standbys": "streams.num.standby.replicas",
}
"""The setting of one group that a field of an operation is."""

Partitions: TypeAlias = tuple[Partition, ...]
"""What is assigned: partitions of topics, or tasks, which are partitions of subtopologies. Sorted."""
Owns: TypeAlias = Literal["none", "told", "before"] | None
"""Owned partitions in a heartbeat: none, those of the last assignment, those of the last two; None: omitted."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    client: Annotated[str, hidden]
    error: Annotated[str, named("class")]


class Says(Enum):
    JOIN = "join"
    """Epoch 0."""
    STAY = "stay"
    """The last epoch that it received, minus ``behind``, which may make it equal to one of the other two."""
    LEAVE = "leave"
    AWAY = "away"
    """Epoch -2: a static member leaves for a while."""


class InEpoch(Protocol):
    """A request of a client with an epoch: of a member, or of a share session."""

    @property
    def client(self) -> str: ...
    @property
    def says(self) -> Says: ...
    @property
    def behind(self) -> int: ...


class Heartbeat(InEpoch, Protocol):
    """A heartbeat of a client, whose name is its member id."""

    @property
    def owned(self) -> Owns: ...
    @property
    def instance(self) -> str | None: ...


class Memory(NamedTuple):
    """What a client knows from earlier answers."""

    client: str
    epoch: int = 0
    given: Partitions = ()
    before: Partitions = ()

    def after(self, epoch: int, assignment: Partitions | None) -> "Memory":
        """After an answer; ``assignment``: None if it is unchanged."""
        if epoch in LEFT:
            return Memory(self.client)
        if assignment is None:
            return self._replace(epoch=epoch)
        return Memory(self.client, epoch, assignment, self.given)

    def claimed(self, owned: Owns) -> Partitions | None:
        """The partitions that ``owned`` stands for."""
        match owned:
            case None:
                return None
            case "none":
                return ()
            case "told":
                return self.given
            case "before":
                return tuple(sorted({*self.given, *self.before}))
            case _:
                assert_never(owned)

    def epoch_in(self, request: InEpoch) -> int:
        """The epoch in a request of the client."""
        match request.says:
            case Says.JOIN:
                return 0
            case Says.LEAVE:
                return LEAVING
            case Says.AWAY:
                return AWAY
            case Says.STAY:
                return self.epoch - request.behind
            case _:
                assert_never(request.says)


def memory_of(clients: tuple[Memory, ...], client: str) -> Memory:
    return next((each for each in clients if each.client == client), Memory(client))


def with_memory(clients: tuple[Memory, ...], memory: Memory) -> tuple[Memory, ...]:
    return tuple(sorted((*(each for each in clients if each.client != memory.client), memory)))
