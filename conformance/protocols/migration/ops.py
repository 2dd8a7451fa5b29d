"""The operations of clients of both protocols in one group: KIP-848's heartbeats, and requests of the classic protocol.

A client of the classic protocol remembers the member id and the generation that it was given, and has at most one
unanswered request: it sends no other one before it has received the answer.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation, variant
from kipcheck.conformance.core.operations.field_annotations import about, hidden, named, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.consumer_group import ops as consumer_group
from kipcheck.conformance.protocols.consumer_group.ops import Answered, Beat, Pass
from kipcheck.conformance.protocols.reconciled import log_ops
from kipcheck.conformance.protocols.reconciled.terms import Partitions, Rejected

SESSION_MS: Final = 20_000
"""Session timeout of the members that use the classic protocol."""
VERSION: Final = 3
"""Of requests of the classic protocol, unless stated."""
ASKING_VERSION: Final = 4
"""From this one on the coordinator gives a client an id, with which it has to join."""
STATIC_VERSION: Final = 5
"""Of a JoinGroup with an instance id."""
CLIENTS: Final = ("x", "y")
"""Those that use the classic protocol."""
OPERATOR: Final = ""
"""In place of the name of a client."""
TOPICS: Final = ("t", "u")
PARKED, BUSY, NOTHING = "parked", "busy", "nothing"
"""In place of an error: the request is not answered yet; one before it is not, so nothing was sent; none is."""
NONE: Final = "NONE"
GIVING_IDS: Final = ("REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED")
"""Errors of a JoinGroup whose answer has an id for the next one."""


@answer()
@dataclass(frozen=True, slots=True)
class Received:
    """What a client of the classic protocol received."""

    client: Annotated[str, hidden]
    error: Annotated[str, named("received")]
    """NONE, or the error of the response; ``parked``, ``busy`` or ``nothing``."""
    generation: int | None = None
    """Of a JoinGroup response."""
    led: bool = False
    """A JoinGroup response names a leader."""
    leads: bool = False
    """It is this member."""
    assignment: Partitions | None = None
    """Of a SyncGroup response."""


@operation(
    "classic-join", "client",
    "classic-join {client}[ on {topics}][ {owned}][ by {protocols}][ as {instance}][ v{version}]",
    examples="classic-join x on t; classic-join y on t,u told by range,roundrobin; classic-join x on t as i; "
    "classic-join y on t v4",
    sender="{client}",
    accepted=Received,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ClassicJoin:
    """A client sends a JoinGroup with the id that it was given, or without one.

    It subscribes in version 1, with a session timeout of 20 and a rebalance timeout of 30 seconds.
    The instance id of its last JoinGroup is in its other requests, too.
    """

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    topics: Annotated[tuple[str, ...], about("subscribed topics"), typical(*consumer_group.SUBSCRIPTIONS)] = ("t",)
    owned: Annotated[
        Literal["none", "told"],
        about("owned partitions: `none`; `told`: those of the last assignment that it received"),
        typical("told", "none"),
    ] = "none"
    protocols: Annotated[tuple[str, ...], about("assignors, preferred first"),
                         typical(("range",), ("range", "roundrobin")), optional] = ("range",)  # fmt: skip
    instance: Annotated[str | None, about("group.instance.id"), typical(None, *consumer_group.INSTANCES),
                        optional] = None  # fmt: skip
    version: Annotated[int, about("of the request without an instance id; with one, it is 5"),
                       typical(VERSION, ASKING_VERSION), optional] = VERSION  # fmt: skip

    @property
    def sent_version(self) -> int:
        return self.version if self.instance is None else STATIC_VERSION


@operation(
    "classic-sync", "client", "classic-sync {client}{behind:-}[ of {topics}][ over {over}]",
    examples="classic-sync x of t over x,y; classic-sync y", sender="{client}", accepted=Received,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ClassicSync:
    """A client sends a SyncGroup. A leader deals the partitions of topics, in order, to members in turn."""

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    behind: Annotated[int, about("how far the generation is behind the last one received"), typical(0, 1)] = 0
    topics: Annotated[
        tuple[str, ...], about("topics of the assignment"), typical((), *consumer_group.SUBSCRIPTIONS)
    ] = ()
    over: Annotated[tuple[str, ...], about("clients that get partitions"), typical((), ("x",), ("y",), ("x", "y"))] = ()


@operation(
    "classic-heartbeat", "client", "classic-beat {client}{behind:-}", examples="classic-beat x", sender="{client}",
    accepted=Received,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ClassicBeat:
    """A client sends a Heartbeat."""

    client: Annotated[str, about("its name"), typical(*CLIENTS)]
    behind: Annotated[int, about("how far the generation is behind the last one received"), typical(0, 1)] = 0


@operation(
    "classic-leave", "client", "classic-leave {client}", examples="classic-leave x", sender="{client}",
    accepted=Received,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ClassicLeave:
    """A client sends a LeaveGroup."""

    client: Annotated[str, about("its name"), typical(*CLIENTS)]


@operation("classic-remove", "client", "remove {instance}", examples="remove i", accepted=Received)
@dataclass(frozen=True, slots=True)
class ClassicRemove:
    """An operator sends a LeaveGroup with an instance id and no member id."""

    instance: Annotated[str, about("group.instance.id of the member"), typical(*consumer_group.INSTANCES)]

    @property
    def client(self) -> str:
        return OPERATOR


@operation(
    "classic-receive", "client", "receive {client}", examples="receive x", sender="{client}", accepted=Received,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Receive:
    """A client receives the answer to its last request, if there is one by now."""

    client: Annotated[str, about("its name"), typical(*CLIENTS)]


Classic: TypeAlias = ClassicJoin | ClassicSync | ClassicBeat | ClassicLeave | ClassicRemove | Receive
Event: TypeAlias = Beat | Pass | Classic | log_ops.Event
Action: TypeAlias = Answered | Rejected | Received | log_ops.Fetched
OPERATIONS: Operations[Event, Action] = Operations(
    "migration",
    Role.COORDINATOR,
    (
        variant(Beat, "mixed-heartbeat", kinds={}),
        variant(Pass, "mixed-elapse", kinds={}),
        ClassicJoin,
        ClassicSync,
        ClassicBeat,
        ClassicLeave,
        ClassicRemove,
        Receive,
        variant(log_ops.Reload, "mixed-reload", kinds={}),
        variant(log_ops.Commit, "mixed-commit", kinds={}),
        variant(log_ops.Fetch, "mixed-fetch", kinds={}),
    ),
    sample="classic-join x on t; pass 3000; receive x",
)
