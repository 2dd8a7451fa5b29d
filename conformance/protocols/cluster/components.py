"""Components, moves and messages of ``cluster``, and how their generations age."""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.assignment.model.membership import Subscription
from kipcheck.conformance.protocols.cluster.kinds import DEFAULT_TOPICS
from kipcheck.conformance.protocols.group.model.coordinator_node import Aged, Answer, Ask, CoordinatorNode, Fire, Store
from kipcheck.conformance.protocols.group.model.messages import Blob, Heartbeat, Join, Joined, Reply, Request, Sync
from kipcheck.conformance.protocols.group.model.state import State as Group
from kipcheck.conformance.protocols.group.model.state_bounds import older
from kipcheck.conformance.protocols.member.model.state import Identity, State

CRASHES, LOSSES, LATE, REPEATS = "crashes", "losses", "late", "repeats"
"""Budgets: processes that end, connections that break, timers that expire for live members, requests that arrive
twice."""
IDS: Final = 4
"""Number of member ids for each member. Ids that the group has forgotten are reused."""
MANY: Final = 10**6
"""A budget, or number of generations, that is effectively unbounded: for conversations, not for searches."""
POLLS: Final = 10
ROUNDS: Final = 4
"""Up to which number generations are counted since the last disturbance."""


class Centre(NamedTuple):
    """The coordinator, with facts about the processes behind its members that it does not know itself."""

    hub: CoordinatorNode
    held: tuple[frozenset[str], ...]
    """For each member, the ids that its process knows, or will know from the response in flight."""
    kinds: tuple[tuple[str, str], ...] = ()
    """Member id -> kind of the member that joined with it, sorted."""
    rounds: int = 0
    """Generations since the last disturbance, up to ``ROUNDS``."""
    rolled: int = 0
    """Completed steps of the script."""

    @property
    def group(self) -> Group:
        return self.hub.group

    def has_process(self, id: str) -> bool:
        return any(id in each for each in self.held)


class Node(NamedTuple):
    kind: str = ""
    """Empty: it has never been started."""
    topics: tuple[str, ...] = DEFAULT_TOPICS
    state: State | None = None
    """None: no process is running."""
    out: tuple[Request, ...] = ()
    """Requests in flight, oldest first."""
    waits: bool = False
    """A request has arrived, and has not been answered."""
    inbox: Reply | None = None
    """The response in flight."""
    serial: int = 0
    starts: bool = False
    """It will be started again."""
    then: tuple[str, tuple[str, ...]] | None = None
    """Kind and topics with which it starts after it has left."""
    failed: str = ""
    """The error that ended it."""

    @property
    def busy(self) -> bool:
        return bool(self.out) or self.waits or self.inbox is not None

    @property
    def id(self) -> str:
        return "" if self.state is None else self.state.identity.member


# Moves and messages


class Does(NamedTuple):
    """A move of a member: it ``hears`` the response in flight, its request ``arrives``, it ``beats``, ``retries``,
    ``starts``, ``crashes``, its connection ``breaks``, its request arrives and ``repeats``."""

    verb: str


class Rolls(NamedTuple):
    """The operator continues with the script."""


class From(NamedTuple):
    """A request of a member, or a fault that affects it."""

    by: int
    ask: Ask
    kind: str
    keeps: str | None = None
    """The id that the process still knows after its connection broke; None if the connection did not break."""
    only_news: bool = False
    """The request arrives only if its answer carries news."""


class Told(NamedTuple):
    """The operator's order to stop and to start as another kind; an empty kind means not to start."""

    kind: str
    topics: tuple[str, ...] = DEFAULT_TOPICS


Part: TypeAlias = Centre | Node
Move: TypeAlias = Does | Rolls | Fire | Store
Message: TypeAlias = From | Answer | Aged | Told


@dataclass(frozen=True, slots=True)
class Scope:
    """Bounds of a search."""

    crashes: int = 1
    losses: int = 0
    late: int = 0
    repeats: int = 0
    stays_away: bool = False
    """A crashed member does not restart."""
    newest: int = 2
    """Number of generations that states distinguish."""
    script: tuple[tuple[int, str], ...] = ()
    """The operator's steps: number of a member, and its next kind."""
    patient: bool = False
    """The operator waits until every member is in the group."""


NO_SCOPE: Final = Scope(MANY, MANY, MANY, MANY, newest=MANY)
"""For conversations, which are finite anyway."""


# Aging of what a member remembers


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
