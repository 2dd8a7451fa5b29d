"""The parts of a cluster, what they do and what they send; and what they remember once the group has aged."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.models.coordinator_node import Aged, Answer, Ask, Fire, Hub, Store
from kipcheck.conformance.models.group.aging import older
from kipcheck.conformance.models.group.messages import Blob, Heartbeat, Join, Joined, Reply, Request, Sync
from kipcheck.conformance.models.group.state import State as Group
from kipcheck.conformance.models.member.state import Identity, State
from kipcheck.conformance.models.membership import Subscription
from kipcheck.conformance.models.operations import EVERYBODYS

CRASHES, LOSSES, LATE, REPEATS = "crashes", "losses", "late", "repeats"
"""Budgets: processes that end, connections that break, timers that run out for members that are alive, requests that
arrive twice."""
IDS: Final = 4
"""So many each member may be given; one that the group has forgotten is given again."""
MANY: Final = 10**6
"""Of a budget, or of generations: no search, no bound."""
POLLS: Final = 10
ROUNDS: Final = 4
"""So many generations are counted since anything befell the group."""


class Centre(NamedTuple):
    """The coordinator, and what it could know of the processes behind its members, but does not."""

    hub: Hub
    held: tuple[frozenset[str], ...]
    """The ids that each member's process knows, or will when it hears what is on its way."""
    kinds: tuple[tuple[str, str], ...] = ()
    """What joined under an id, sorted."""
    rounds: int = 0
    """Generations since anything befell the group, up to ``ROUNDS``."""
    rolled: int = 0
    """Steps of the script that are done."""

    @property
    def group(self) -> Group:
        return self.hub.group

    def holds(self, id: str) -> bool:
        return any(id in each for each in self.held)


class Node(NamedTuple):
    kind: str = ""
    """Nothing: nobody has ever started it."""
    topics: tuple[str, ...] = EVERYBODYS
    state: State | None = None
    """None: there is no process."""
    out: tuple[Request, ...] = ()
    """Requests, the oldest first."""
    waits: bool = False
    """A request has arrived, and its answer has not set out."""
    inbox: Reply | None = None
    """The answer that is on its way."""
    serial: int = 0
    starts: bool = False
    """Somebody will start it again."""
    then: tuple[str, tuple[str, ...]] | None = None
    """As what it starts when it has left: kind and topics."""
    failed: str = ""
    """What it gave up with."""

    @property
    def busy(self) -> bool:
        return bool(self.out) or self.waits or self.inbox is not None

    @property
    def id(self) -> str:
        return "" if self.state is None else self.state.identity.member


# Moves and messages


class Does(NamedTuple):
    """A member: ``hears`` what is on its way, its request ``arrives``, it ``beats``, ``retries``, ``starts``,
    ``crashes``, its connection ``breaks``, its request arrives and ``repeats``."""

    verb: str


class Rolls(NamedTuple):
    """The operator goes on with the script."""


class From(NamedTuple):
    """A member asks, or something befalls it."""

    by: int
    ask: Ask
    kind: str
    keeps: str | None = None
    """What its process still knows, where the connection broke; None: it did not."""
    only_news: bool = False
    """It arrives only where the answer has something to say."""


class Told(NamedTuple):
    """The operator tells a member to stop, and to start as another kind: none, to stay away."""

    kind: str
    topics: tuple[str, ...] = EVERYBODYS


Part: TypeAlias = Centre | Node
Move: TypeAlias = Does | Rolls | Fire | Store
Message: TypeAlias = From | Answer | Aged | Told


@dataclass(frozen=True, slots=True)
class Scope:
    """How much may happen."""

    crashes: int = 1
    losses: int = 0
    late: int = 0
    repeats: int = 0
    stays_away: bool = False
    """Who crashed is not started again."""
    newest: int = 2
    """So many generations are told from each other."""
    script: tuple[tuple[int, str], ...] = ()
    """Of the operator: number of a member, and what it shall be."""
    patient: bool = False
    """The operator waits until every member is in the group."""


NO_SCOPE: Final = Scope(MANY, MANY, MANY, MANY, newest=MANY)
"""For conversations, which bring their own end."""


# What a member remembers, once the group has aged


def aged_blob(blob: Blob, by: int) -> Blob:
    return replace(blob, generation=older(blob.generation, by)) if isinstance(blob, Subscription) else blob


def aged_node(node: Node, by: int) -> Node:
    inbox = node.inbox
    if isinstance(inbox, Joined):
        members = tuple([(id, instance, aged_blob(blob, by)) for id, instance, blob in inbox.members])
        inbox = replace(inbox, generation=older(inbox.generation, by), members=members)
    state = node.state
    if state is not None:
        beat = None if state.beat_as is None else _aged_identity(state.beat_as, by)
        state = replace(
            state,
            identity=_aged_identity(state.identity, by),
            asked_as=_aged_identity(state.asked_as, by),
            beat_as=beat,
        )
    return node._replace(state=state, inbox=inbox, out=tuple([_aged_request(each, by) for each in node.out]))


def _aged_identity(identity: Identity, by: int) -> Identity:
    return identity._replace(generation=older(identity.generation, by))


def _aged_request(request: Request, by: int) -> Request:
    if isinstance(request, Join):
        protocols = tuple([(name, aged_blob(blob, by)) for name, blob in request.protocols])
        return replace(request, protocols=protocols)
    if isinstance(request, Sync | Heartbeat):
        return replace(request, generation=older(request.generation, by))
    return request
