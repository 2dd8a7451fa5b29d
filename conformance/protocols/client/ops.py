"""The steps of a script for a live client: what the broker and the other members of its group do.

The answer to a step is the traffic while it lasts, as a list of the events of ``client.events``.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.client import log_ops
from kipcheck.conformance.protocols.client.answer_ops import (
    BROKER,
    TIMED,
    Answer,
    Disturbed,
    Error,
    Kind,
    Late,
    Phase,
    Pieces,
    Refusal,
    Refuse,
    Reset,
    Silent,
    Tags,
    Throttle,
    Timed,
    Together,
)
from kipcheck.conformance.protocols.client.log_ops import OTHERS, USER

__all__ = [
    "OPERATIONS", "TIMED", "Answer", "Disturbed", "Error", "Kind", "Late", "Phase", "Pieces", "Refusal", "Refuse",
    "Reset", "Silent", "Tags", "Throttle", "Timed", "Together",
]  # fmt: skip
CLIENT: Final = "client"
"""The machine: a program that consumes, in a group whose broker and other members follow a script."""
STREAMS_CLIENT: Final = "client-streams"
"""The same for an application of Kafka Streams in a streams group (KIP-1071)."""
SHARE_CLIENT: Final = "client-share"
"""The same for a share consumer (KIP-932)."""
Released: TypeAlias = Literal["4.0.0", "3.9.2", "2.8.2", "2.1.1", "1.1.1", "0.11.0.3"]
Renewed: TypeAlias = Literal["4.0.0", "4.4.0"]
Becomes: TypeAlias = Literal["same", "4.4.0", "4.0.0", "3.9.2", "2.8.2", "2.1.1"]
Topic: TypeAlias = Literal["t", "u", "gone"]
Damage: TypeAlias = Literal["whole", "future", "tail", "cut", "empty", "long", "negative"]
MALFORMED: Final[frozenset[Damage]] = frozenset({"cut", "empty", "long", "negative"})
"""What no reader of subscriptions can read."""
Assignor: TypeAlias = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


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


@operation(
    "client-member", OTHERS,
    "member[ reads {topics}][ owns {owned}][ of {back}][ v{version}][ data {data}][ damaged {damage}]"
    "[ takes {assignor}]",
    examples="member reads t,u owns 0,1 of 1 v3; member reads t data noise; member damaged future; "
             "member takes roundrobin",
    sentence="another member: reads[ {topics}][, owns {owned}][ of {back} generations ago][, version {version}]"
             "[, user data: {data}][, metadata: {damage}][, takes no assignor but {assignor}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Member:
    """One more other member is in the group from its next rebalance on, after the client joined it.

    The client is shown its subscription where it leads.
    """

    topics: Annotated[tuple[Topic, ...], about("topics that it subscribes to; gone does not exist"),
                      typical(("t",), ("t", "u"), ("u",), ("gone",), ("t", "gone"), ())] = ()  # fmt: skip
    owned: Annotated[tuple[int, ...], about("partitions of t that it claims; none: what the leader gave it"),
                     typical((), (0,), (1, 2), (0, 1, 2, 3), (7,))] = ()  # fmt: skip
    back: Annotated[int, about("how many generations ago it was given them"), typical(0, 1, 3)] = 0
    version: Annotated[int, about("version of its metadata"), typical(range(4))] = 0
    data: Annotated[Literal["none", "sticky", "noise", "huge"], about("its user data; sticky: its claims")] = "none"
    damage: Annotated[Damage, about("what is wrong with its metadata; future: a version that does not exist yet"),
                      typical("future", "tail", "cut", "empty", "long", "negative"), optional] = "whole"  # fmt: skip
    assignor: Annotated[Literal["any", Assignor], about("the only assignor that it has, if the client offers it; any: "
                                                         "all of them"),
                        typical("roundrobin", "range"), optional] = "any"  # fmt: skip


@operation(
    "client-assign", OTHERS, "assign[ {partitions}][ and {more}]",
    examples="assign 0,2; assign 1 and 0",
    sentence="assigns[ {partitions}][, and {more} of the second topic]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Assign:
    """The leader gives a client that follows these partitions, from its next assignment on."""

    partitions: Annotated[tuple[int, ...], about("partitions of the topic"),
                          typical((), (0,), (1, 2), (0, 1, 2), (3,))] = ()  # fmt: skip
    more: Annotated[tuple[int, ...], about("partitions of the second topic, if the client has one"),
                    typical((0,), (1,)), optional] = ()  # fmt: skip


@operation(
    "client-grow", USER, "grow {partitions}",
    examples="grow 8",
    sentence="gives the topic {partitions} partitions",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Grow:
    """The topic gets more partitions."""

    partitions: Annotated[int, about("how many it has then"), typical(5, 8, 100)]


@operation(
    "client-rebalance", OTHERS, "rebalance[ at {at}]",
    examples="rebalance; rebalance at stop",
    sentence="another member joins or leaves[, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Rebalance:
    """The group rebalances.

    The step ends when the client is a stable member again. At the stop: when the program is to be stopped, which
    waits until the client takes part in it.
    """

    at: Annotated[Literal["now", "stop"], about("when; stop: right before the program is stopped"), optional] = "now"


@operation("client-move", BROKER, "move", sentence="the coordinator moves to the other node")
@dataclass(frozen=True, slots=True)
class Move:
    """The coordinator of the group moves to the other node of the cluster.

    The step ends when the client is a stable member again.
    """


@operation(
    "client-down", BROKER, "down {nodes} {ms}[ {how}][ then {release}]",
    examples="down coordinator 1000; down all 500 then 2.8.2; down coordinator 4000 silent",
    sentence="takes {nodes} down for {ms} ms[, {how}][, and is of release {release} then]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Down:
    """The node of the coordinator, or the whole cluster, is down for a while: connections are closed, and refused.

    The other node takes over what the first one coordinates and leads, and keeps it. silent: the connections stay open,
    requests are answered when the time is over, and no other node takes over. The step ends when the client is a stable
    member again.
    """

    nodes: Annotated[Literal["coordinator", "all"], about("the nodes")]
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]
    how: Annotated[Literal["closed", "silent"], about("what they do meanwhile"), typical("silent"), optional] = "closed"
    release: Annotated[
        Becomes, about("the release of all nodes after that"), typical("same", "3.9.2", "4.0.0"), optional
    ] = "same"


@operation("client-disband", OTHERS, "disband", sentence="another client deletes the group")
@dataclass(frozen=True, slots=True)
class Disband:
    """Another client removes all members of the group, and deletes it with its committed offsets.

    The step ends when the client is a stable member again.
    """


@operation(
    "client-older", BROKER, "older {release}",
    examples="older 2.8.2",
    sentence="is of release {release}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Older:
    """The broker has the versions of an older release from the next start of the program on."""

    release: Annotated[Released, about("the release"), typical(*get_args(Released)[:4])]


@operation(
    "client-newer", BROKER, "newer {release}",
    examples="newer 4.0.0",
    sentence="is of release {release}, without the versions that are gone",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Newer:
    """The broker has the versions of a newer release from the next start of the program on, if its own is older."""

    release: Annotated[Renewed, about("the release")]


@operation(
    "client-offer", BROKER, "offer {kind} {low}-{high}",
    examples="offer Metadata 0-4; offer JoinGroup 5-9",
    sentence="offers versions {low} to {high} of {kind}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Offer:
    """The broker serves these versions of a request from the next start of the program on, of those that it has.

    Other ranges stay, as those of hosted brokers, which are of no release.
    """

    kind: Annotated[Kind, about("the request")]
    low: Annotated[int, about("the lowest version"), typical(0, 2)]
    high: Annotated[int, about("the highest version"), typical(4, 2, 9)]


@operation(
    "client-intervals", USER, "intervals {heartbeat_ms} of {session_ms}",
    examples="intervals 1000 of 10000",
    sentence="gives the program a heartbeat interval of {heartbeat_ms} ms and a session timeout of {session_ms} ms",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Intervals:
    """The program has this heartbeat interval and this session timeout from its next start on, and the broker too.

    No session of a script ends by itself, however short. Steps that wait for a heartbeat take as long as one.
    """

    heartbeat_ms: Annotated[int, about("milliseconds; without this step 300"), typical(1000, 3000)]
    session_ms: Annotated[int, about("milliseconds; without this step 3000"), typical(10_000)]


@operation("client-pass", BROKER, "pass {ms}", examples="pass 500", sentence="{ms} ms pass")
@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    ms: Annotated[int, about("milliseconds"), typical(200, 1200)]


@operation("client-stop", USER, "stop", sentence="SIGTERM")
@dataclass(frozen=True, slots=True)
class Stop:
    """The user ends the program with SIGTERM; the step ends with the program."""


@operation("client-static", USER, "static", sentence="gives the program an instance id")
@dataclass(frozen=True, slots=True)
class Static:
    """The program is a static member from its next start on."""


@operation(
    "client-assignors", USER, "assignors {names}",
    examples="assignors cooperative-sticky",
    sentence="lets the program use {names}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Assignors:
    """The program uses these assignors from its next start on."""

    names: Annotated[tuple[Assignor, ...], about("assignors, preferred first"),
                     typical(("range",), ("roundrobin",), ("cooperative-sticky",),
                             ("sticky",))]  # fmt: skip


@operation(
    "client-protocol", USER, "protocol {name}",
    examples="protocol consumer",
    sentence="lets the program use the protocol {name}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class GroupProtocol:
    """The program uses this protocol of groups from its next start on."""

    name: Annotated[
        Literal["consumer", "classic", "streams", "share"],
        about("the protocol; consumer is that of KIP-848, streams that of KIP-1071, share that of KIP-932"),
        typical("consumer", "classic"),
    ]


@operation("client-topics", USER, "topics {number}", examples="topics 2", sentence="names {number} topics")
@dataclass(frozen=True, slots=True)
class Subscribe:
    """The program is given so many topics at its next start: t, or t and u."""

    number: Annotated[int, about("how many topics"), typical(2, 1)]


@operation("client-commit", USER, "commit {how}", examples="commit late", sentence="lets the program commit {how}")
@dataclass(frozen=True, slots=True)
class Commits:
    """The program commits in this way from its next start on.

    A program that commits late holds the records that it reads; after the next rebalance it commits those of the
    partitions that it still has, and forgets the others.
    """

    how: Annotated[Literal["auto", "seldom", "sync", "async", "late", "revoked"], about(
        "auto, seldom: the client does, at a short or long interval; sync, async: after each poll; late: after the "
        "next rebalance; revoked: in the callback for revoked partitions"),
        typical("seldom", "sync", "async", "late", "revoked")]  # fmt: skip


@operation(
    "client-pause", USER, "pause {ms}", examples="pause 500", sentence="lets the program work {ms} ms after a poll"
)
@dataclass(frozen=True, slots=True)
class Works:
    """The program works between two polls from its next start on, as soon as it has read its first records."""

    ms: Annotated[int, about("milliseconds"), typical(500, 2000)]


@operation(
    "client-max-poll", USER, "max-poll {ms}",
    examples="max-poll 4000",
    sentence="lets at most {ms} ms pass between two polls",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class MaxPoll:
    """The program has this max.poll.interval.ms from its next start on, which is its rebalance timeout, too."""

    ms: Annotated[int, about("milliseconds"), typical(4000)]


@operation("client-pattern", USER, "pattern", sentence="lets the program subscribe by a pattern")
@dataclass(frozen=True, slots=True)
class Pattern:
    """The program subscribes by a pattern from its next start on: to all topics whose names are one letter."""


@operation(
    "client-begin", USER, "begin {where}",
    examples="begin latest",
    sentence="lets the program begin at the {where} record where nothing is committed",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Begins:
    """The program begins to read there from its next start on, if its group has committed nothing of a partition."""

    where: Annotated[Literal["latest", "earliest"], about("the policy for partitions without a committed offset")]


@operation(
    "client-poll", USER, "poll {ms}", examples="poll 0", sentence="lets a poll of the program wait {ms} ms for records"
)
@dataclass(frozen=True, slots=True)
class Polls:
    """The polls of the program have this timeout from its next start on; with 0 it rests 20 ms after each."""

    ms: Annotated[int, about("milliseconds; without this step 100"), typical(0, 1000)]


@operation("client-resume", USER, "resume", sentence="lets the program resume all its partitions before each poll")
@dataclass(frozen=True, slots=True)
class Resumes:
    """The program resumes all partitions that it has before each poll, and pauses none."""


@operation(
    "client-committed", USER, "committed {offset}",
    examples="committed 0",
    sentence="commits offset {offset} of all partitions for the group",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Committed:
    """An administrator sets the committed offsets of the group, which has no members yet."""

    offset: Annotated[int, about("the offset"), typical(0, 4)]


@operation(
    "client-freeze", USER, "freeze {ms}",
    examples="freeze 4000",
    sentence="stops the process of the program for {ms} ms",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Freeze:
    """The process gets SIGSTOP, and SIGCONT later. Its connections stay open.

    If its session ends meanwhile, the broker removes the member. The step ends when the client is a stable member
    again.
    """

    ms: Annotated[int, about("milliseconds"), typical(1000, 3500)]


@operation("client-fence", USER, "fence", sentence="starts another program with the same instance id")
@dataclass(frozen=True, slots=True)
class Fence:
    """Another program joins with the instance id of the client, which is no member any more. It may end."""


@operation("client-restart", USER, "restart", sentence="SIGTERM, then a new start")
@dataclass(frozen=True, slots=True)
class Restart:
    """The user ends the program with SIGTERM, and starts it again.

    The step ends when the client is a stable member again.
    """


Setting: TypeAlias = (
    Static
    | Assignors
    | GroupProtocol
    | Older
    | Subscribe
    | Newer
    | Offer
    | Intervals
    | Commits
    | Works
    | MaxPoll
    | Pattern
    | Begins
    | Polls
    | Resumes
)
"""What concerns the next start of the program."""
Event: TypeAlias = (
    Others
    | Member
    | Assign
    | Grow
    | Rebalance
    | Answer
    | Disturbed
    | Move
    | Down
    | Disband
    | log_ops.Event
    | Pass
    | Setting
    | Committed
    | Freeze
    | Fence
    | Restart
    | Refuse
    | Stop
)
SETTINGS: Final = (
    Static, Assignors, GroupProtocol, Older, Subscribe, Newer, Offer, Intervals, Commits, Works, MaxPoll, Pattern,
    Begins, Polls, Resumes,
)  # fmt: skip
EVENTS: Final = (
    Others, Assign, Rebalance, Answer, Late, Pieces, Reset, Pass, Member, Grow, Silent, Together, Tags, Move,
    Throttle, Down, Disband, *log_ops.EVENTS, *SETTINGS, Committed, Fence, Restart, Freeze, Refuse, Stop,
)  # fmt: skip
OPERATIONS: Operations[Event, Any] = Operations(
    CLIENT, Role.CLIENT, EVENTS, sample="stop", alike=(STREAMS_CLIENT, SHARE_CLIENT)
)


def held_ms(event: Event) -> int:
    """How long the broker holds one answer back, which is no time of the client's."""
    return event.ms if isinstance(event, Late | Silent | Throttle) else 0


def held_in_all_ms(event: Event) -> int:
    """The same for all answers that a step changes."""
    return held_ms(event) * getattr(event, "times", 1)
