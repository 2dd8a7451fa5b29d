"""The state of a group with members of both protocols, and of their clients."""

from typing import Final, NamedTuple

from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.group.model.messages import Timer
from kipcheck.conformance.protocols.group.model.state import State as ClassicState
from kipcheck.conformance.protocols.migration.ops import Received
from kipcheck.conformance.protocols.reconciled.log_ops import Offset
from kipcheck.conformance.protocols.reconciled.terms import Partitions

UNKNOWN_MEMBER: Final = "?"
LEFT: Final = "left"
"""In place of the id in an answer: the member left."""


class Client(NamedTuple):
    """A client of the classic protocol."""

    name: str
    id: str = ""
    instance: str | None = None
    """In its last JoinGroup."""
    generation: int = 0
    given: Partitions = ()
    asked: int = -1
    """The number of the request that it has no answer to; negative: there is none."""
    answer: Received | None = None
    """To that request, while it is not received."""
    fresh: str = ""
    """The id in that answer."""


class ClassicMember(NamedTuple):
    """What a consumer group knows more of a member that uses the classic protocol."""

    id: str
    protocols: tuple[tuple[str, str], ...]
    """Names and metadata."""
    joining_ms: int | None = None
    """The time since it was asked to join again; None: it was not."""
    syncing_ms: int | None = None
    """The time since it joined and has sent no SyncGroup; None: it has."""


class State(NamedTuple):
    is_consumer: bool = False
    """Whether the group is a consumer group."""
    group: consumer.State = consumer.State()
    """As a consumer group. What its clients know is kept in any case."""
    members: tuple[ClassicMember, ...] = ()
    """Of the consumer group. Sorted by id."""
    classic: ClassicState = ClassicState()
    clock: Clock[Timer] = Clock()
    """Of the classic group."""
    clients: tuple[Client, ...] = ()
    """Sorted by name."""
    requests: int = 0
    offsets: tuple[Offset, ...] = ()

    def client(self, name: str) -> Client:
        return next((each for each in self.clients if each.name == name), Client(name))

    def asking(self, request: int) -> Client:
        return next(each for each in self.clients if each.asked == request)

    def member(self, id: str) -> ClassicMember | None:
        return next((each for each in self.members if each.id == id), None)


def with_client(state: State, client: Client) -> State:
    others = (each for each in state.clients if each.name != client.name)
    return state._replace(clients=tuple(sorted((*others, client), key=lambda each: each.name)))


def with_member(state: State, member: ClassicMember) -> State:
    others = (each for each in state.members if each.id != member.id)
    return state._replace(members=tuple(sorted((*others, member), key=lambda each: each.id)))
