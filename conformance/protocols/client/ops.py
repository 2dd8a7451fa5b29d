"""The steps of a script for a live client: what the broker and the other members of its group do.

The answer to a step is the traffic while it lasts as a list of plain events.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.operations import Operations, about, operation, typical

CLIENT: Final = "client"
"""The machine: a program that consumes, in a group whose broker and other members follow a script."""
BROKER: Final = "broker"
OTHERS: Final = "others"
USER: Final = "user"
Kind: TypeAlias = Literal["JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"]
"""The requests that a script answers with errors."""
Error: TypeAlias = Literal[
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS",
]  # fmt: skip


@operation(
    "client-others", OTHERS, "others {number} {place}",
    examples="others 2 follow",
    sentence="{number} other members; the client will {place}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Others:
    """The group has other members from its next rebalance on."""

    number: Annotated[int, about("how many other members"), typical(range(4))]
    place: Annotated[Literal["lead", "follow"], about("what the client does; alone it leads")]


@operation("client-assign", OTHERS, "assign[ {partitions}]", examples="assign 0,2", sentence="assigns[ {partitions}]")
@dataclass(frozen=True, slots=True)
class Assign:
    """The leader gives a client that follows these partitions, from its next assignment on."""

    partitions: Annotated[tuple[int, ...], about("partitions of the topic"),
                          typical((), (0,), (1, 2), (0, 1, 2), (3,))] = ()  # fmt: skip


@operation("client-rebalance", OTHERS, "rebalance", sentence="another member joins or leaves")
@dataclass(frozen=True, slots=True)
class Rebalance:
    """The group rebalances.

    The step ends when the client is a stable member again.
    """


@operation(
    "client-answer", BROKER, "answer {kind} {error}",
    examples="answer Heartbeat UNKNOWN_MEMBER_ID",
    sentence="answers the next {kind} with {error}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Answer:
    """The next request of a kind is answered with an error.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    error: Annotated[Error, about("the error")]


@operation(
    "client-late", BROKER, "late {kind} {ms}",
    examples="late SyncGroup 400",
    sentence="answers the next {kind} after {ms} ms",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Late:
    """The next request of a kind is answered later.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]


@operation(
    "client-pieces", BROKER, "pieces {kind}",
    examples="pieces JoinGroup",
    sentence="answers the next {kind} in pieces of one byte",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Pieces:
    """The answer to the next request of a kind comes in pieces of one byte.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]


@operation(
    "client-reset", BROKER, "reset {kind}",
    examples="reset Heartbeat",
    sentence="resets the connection at the next {kind}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset in place of an answer to the next request of a kind.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]


@operation("client-pass", BROKER, "pass {ms}", examples="pass 500", sentence="{ms} ms pass")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(200, 1200)]


@operation("client-stop", USER, "stop", sentence="SIGTERM")
@dataclass(frozen=True, slots=True)
class Stop:
    """The user ends the program with SIGTERM; the step ends with the program."""


Event: TypeAlias = Others | Assign | Rebalance | Answer | Late | Pieces | Reset | Pass | Stop
EVENTS: Final = (Others, Assign, Rebalance, Answer, Late, Pieces, Reset, Pass, Stop)
OPERATIONS: Operations[Event, Any] = Operations(CLIENT, Role.CLIENT, EVENTS, sample="stop")
