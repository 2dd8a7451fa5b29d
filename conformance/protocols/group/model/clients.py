"""A product machine of a coordinator and clients, static and dynamic, that may send any request at any time.

Clients remember the ids and generations they received, and forget them when they restart. They do not follow the order
of a consumer's requests, and may ignore answers. Each has at most one request in flight, and reads its answer in the
same transition. A client gives up a request at once if its answer is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.machines.product import COORDINATOR_INDEX, Did, Law, Sent, StepLaw
from kipcheck.conformance.protocols.group.model import coordinator_node, messages
from kipcheck.conformance.protocols.group.model.answers import SYNC_TYPE_SINCE, Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.coordinator_node import describe
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE
from kipcheck.conformance.protocols.group.model.state_bounds import older

CONSUMER, RANGE = "consumer", "range"
IDS: Final = 3
"""Number of member ids for each client. Ids that the group has forgotten are reused."""


class Client(NamedTuple):
    id: str = ""
    generation: int = messages.NO_GENERATION
    leads: bool = False
    waits: bool = False
    serial: int = 0
    """Number of requests it gave up, modulo ``NUMBERS``."""
    out: bool = False
    """True: it was fenced, because another process has its instance id."""

    def after_giving_up(self) -> "Client":
        return self._replace(serial=(self.serial + 1) % coordinator_node.NUMBERS)


class Does(NamedTuple):
    """A client joins, syncs, beats, leaves or restarts."""

    verb: str
    lost: bool = False
    """True: the answer is lost."""


Part: TypeAlias = coordinator_node.CoordinatorNode | Client
ClientMove: TypeAlias = Does | coordinator_node.Move
TIMEOUT_MS: Final = 6000
CONFIG: Final = Config(initial_delay_ms=TIMEOUT_MS)
"""The initial rebalance delay takes one round: more rounds would only repeat it."""
VERBS: Final = ("join", "sync", "heartbeat", "leave")


@dataclass(frozen=True, slots=True)
class Scope:
    static: int = 2
    dynamic: int = 1
    crashes: int = 1
    """Number of client restarts."""
    losses: int = 0
    failures: int = 0
    """Number of appends that fail. Above 0, appends are asynchronous."""
    twins: int = 0
    """1: the first two static clients have the same instance id, like an old process and its replacement."""


class Clients:
    """The product machine."""

    def __init__(
        self,
        coordinator: Coordinator,
        scope: Scope,
        laws: "tuple[Law[Part] | StepLaw[Part, ClientMove, coordinator_node.Message], ...]" = (),
    ) -> None:
        """``coordinator``: configured with ``CONFIG``. Errors: LookupError if it does not support static members."""
        rules = coordinator.rules
        self.laws = laws
        self.versions = {request: max(span, default=0) for request, span in rules.versions.items()}
        self.draft = isinstance(coordinator, DraftCoordinator)
        if scope.static and not has_static(coordinator):
            raise LookupError("this edition has no static members: use static=0")
        count = scope.static + scope.dynamic
        self.names = ("coordinator", *"abcdefgh"[:count])
        static = [f"i{name}" for name in self.names[1 : scope.static + 1]]
        static[1:2] = static[:1] if scope.twins else static[1:2]
        self.instances = (None, *static, *[None] * scope.dynamic)
        self.lossy = scope.losses > 0
        self.hub = coordinator_node.CoordinatorComponent(
            coordinator,
            rules.sync_deadline,
            count,
            budgets={"crashes": scope.crashes, "losses": scope.losses, "failures": scope.failures},
            slow_log=scope.failures > 0,
        )

    def initial(self) -> tuple[Part, ...]:
        return (self.hub.initial(), *(Client() for _ in self.names[1:]))

    def moves(self, index: int, part: Part, /) -> Iterator[ClientMove]:
        if isinstance(part, coordinator_node.CoordinatorNode):
            yield from self.hub.moves(part)
            return
        if not part.out:
            if not part.waits:
                for verb in self.asks(index, part):
                    yield Does(verb)
                    if self.lossy:
                        yield Does(verb, lost=True)
            if part != Client(serial=part.serial):
                yield Does("restart")

    def asks(self, index: int, client: Client) -> Iterator[str]:
        yield "join"
        if client.generation > 0:
            yield "sync"
            yield "heartbeat"
        if client.id and self.instances[index] is None:
            yield "leave"

    def act(self, index: int, part: Part, move: ClientMove, /) -> Did[Part, coordinator_node.Message]:
        if isinstance(part, coordinator_node.CoordinatorNode):
            assert isinstance(move, coordinator_node.Fire | coordinator_node.Store)
            return widened(self.hub.act(part, move))
        assert isinstance(move, Does)
        after = part.after_giving_up() if move.lost else part._replace(waits=True)
        if move.verb == "restart":
            restarted = Client(serial=(part.after_giving_up() if part.waits else part).serial)
            return Did(restarted, (Sent(COORDINATOR_INDEX, coordinator_node.Ask(None, (), "crashes")),))
        pool = tuple(each for each in pools(self.names[index]) if each != part.id)
        cost = "losses" if move.lost else ""
        ask = coordinator_node.Ask(self.request(index, part, move.verb), pool, cost)
        return Did(after, (Sent(COORDINATOR_INDEX, ask),))

    def request(self, index: int, client: Client, verb: str) -> messages.Request:
        instance, version, asked = self.instances[index], self.versions, coordinator_node.number(index, client.serial)
        match verb:
            case "join":
                # In the draft the last client has a higher protocol version than the others.
                highest = int(index == len(self.names) - 1) if self.draft else None
                said = CONSUMER, ((RANGE, messages.EMPTY),), TIMEOUT_MS, TIMEOUT_MS, "", highest, asked
                return messages.Join(version[messages.Join], client.id, instance, *said)
            case "sync":
                shares = self.shares(index) if client.leads else ()
                named = version[messages.Sync] >= SYNC_TYPE_SINCE
                kind, protocol = CONSUMER if named else None, RANGE if named else None
                return messages.Sync(
                    version[messages.Sync], client.id, instance, client.generation, shares, kind, protocol, asked
                )
            case "heartbeat":
                return messages.Heartbeat(version[messages.Heartbeat], client.id, instance, client.generation, asked)
        return messages.Leave(version[messages.Leave], ((client.id, instance),), asked)

    def shares(self, leader: int) -> tuple[tuple[str, tuple[str, str]], ...]:
        """Assignments for all possible ids; the coordinator ignores unknown ones. Each names its member and leader."""
        known = [instance or name for name, instance in zip(self.names, self.instances, strict=True)]
        return tuple(
            (id, (known[index], known[leader])) for index, name in enumerate(self.names) if index for id in pools(name)
        )

    def take(
        self, index: int, part: Part, message: coordinator_node.Message, /
    ) -> Did[Part, coordinator_node.Message] | None:
        if isinstance(part, coordinator_node.CoordinatorNode):
            assert isinstance(message, coordinator_node.Ask)
            found = self.hub.take(part, message)
            return None if found is None else widened(found)
        if isinstance(message, coordinator_node.Aged):
            return Did(part._replace(generation=older(part.generation, message.by)))
        assert isinstance(message, coordinator_node.Answer)
        if message.serial != part.serial or not part.waits:
            return Did(part)
        return Did(self.after_answer(index, part._replace(waits=False), message))

    def after_answer(self, index: int, client: Client, answer: coordinator_node.Answer) -> Client:
        reply = answer.reply
        if reply.error is Error.FENCED_INSTANCE_ID:
            return Client(serial=client.serial, out=True)
        if reply.error is Error.UNKNOWN_MEMBER_ID:
            return Client(serial=client.serial)
        if reply.error is Error.ILLEGAL_GENERATION:
            return Client(client.id, serial=client.serial)
        match reply:
            case messages.Joined(error=Error.MEMBER_ID_REQUIRED):
                return client._replace(id=reply.member)
            case messages.Joined(error=Error.NONE):
                return Client(reply.member, reply.generation, reply.leader == reply.member, serial=client.serial)
            case messages.Left(error=Error.NONE):
                return Client(serial=client.serial)
        return client

    def describe(self, value: ClientMove | coordinator_node.Message, /) -> str:
        match value:
            case Does("restart"):
                return "restarts, and forgets what it was told"
            case Does(verb, lost):
                return f"{verb}s, and gives up at once" if lost else ""
            case coordinator_node.Answer(messages.Synced(error=Error.NONE, assignment=(whose, by))):
                return f"assignment by {by} for {whose}"
            case _:
                return describe(value)


def has_static(coordinator: Coordinator) -> bool:
    """Whether the coordinator supports instance ids."""
    newest = max(coordinator.rules.versions[messages.Join], default=0)
    return newest >= INSTANCE_SINCE[messages.Join] and not isinstance(coordinator, DraftCoordinator)


def pools(name: str) -> Iterator[str]:
    return (f"{name}{each}" for each in range(1, IDS + 1))


def widened(
    did: Did[coordinator_node.CoordinatorNode, coordinator_node.Message],
) -> Did[Part, coordinator_node.Message]:
    return Did(did.part, did.sends)
