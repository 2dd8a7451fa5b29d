"""The steps of a script for a live client: what the broker and the other members of its group do.

The answer to a step is the traffic while it lasts, as a list of the events of ``client.events``.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from kipcheck.conformance.core.operations.declaration import Operations, operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.client import log_ops
from kipcheck.conformance.protocols.client.log_ops import BROKER, OTHERS, USER

CLIENT: Final = "client"
"""The machine: a program that consumes, in a group whose broker and other members follow a script."""
Kind: TypeAlias = Literal[
    "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "FindCoordinator", "Metadata", "OffsetFetch", "ListOffsets",
    "Fetch", "LeaveGroup", "ConsumerGroupHeartbeat",
]  # fmt: skip
"""The requests whose answers a script changes."""
Error: TypeAlias = Literal[
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT", "OFFSET_OUT_OF_RANGE", "FENCED_MEMBER_EPOCH",
    "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH",
    "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID",
]  # fmt: skip
Refusal: TypeAlias = Literal[
    "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID",
    "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "UNSUPPORTED_VERSION", "INVALID_REQUEST",
    "UNSUPPORTED_ASSIGNOR", "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID",
]  # fmt: skip
"""Errors that a client cannot recover from."""
Released: TypeAlias = Literal["4.0.0", "3.9.2", "2.8.2", "2.1.1", "1.1.1", "0.11.0.3"]
Renewed: TypeAlias = Literal["4.0.0", "4.4.0"]
Becomes: TypeAlias = Literal["same", "4.4.0", "4.0.0", "3.9.2", "2.8.2", "2.1.1"]
Phase: TypeAlias = Literal["now", "start", "stop", "next"]
Topic: TypeAlias = Literal["t", "u", "gone"]
Damage: TypeAlias = Literal["whole", "future", "tail", "cut", "empty", "long", "negative"]
MALFORMED: Final[frozenset[Damage]] = frozenset({"cut", "empty", "long", "negative"})
"""What no reader of subscriptions can read."""
Assignor: TypeAlias = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
Times: TypeAlias = Annotated[int, about("how many requests of that kind in a row"), typical(2, 6), optional]
At: TypeAlias = Annotated[
    Phase, about("when; now: the broker does what lets the client send such a request, and waits for it; start: at the "
                 "next start of the program; stop: when it is stopped; next: when the client sends one by itself, "
                 "while the script goes on"),
    typical("start", "stop", "next"), optional,
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
                        typical("roundrobin"), optional] = "any"  # fmt: skip


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


@operation("client-rebalance", OTHERS, "rebalance", sentence="another member joins or leaves")
@dataclass(frozen=True, slots=True)
class Rebalance:
    """The group rebalances.

    The step ends when the client is a stable member again.
    """


@operation(
    "client-answer", BROKER, "answer {kind} {error}[ times {times}][ at {at}]",
    examples="answer Heartbeat UNKNOWN_MEMBER_ID; answer Heartbeat NOT_COORDINATOR times 6",
    sentence="answers the next {kind} with {error}[, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Answer:
    """The next request of a kind is answered with an error.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    error: Annotated[Error, about("the error")]
    times: Times = 1
    at: At = "now"


@operation(
    "client-refuse", BROKER, "refuse {kind} {error}[ at {at}]",
    examples="refuse JoinGroup GROUP_AUTHORIZATION_FAILED",
    sentence="answers each {kind} with {error} from now on[, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Refuse:
    """All further requests of a kind are answered with an error that the client cannot recover from. It may end.

    The step ends a second and a half after the first of these answers.
    """

    kind: Annotated[Kind, about("the requests")]
    error: Annotated[Refusal, about("the error")]
    at: At = "now"


@operation(
    "client-late", BROKER, "late {kind} {ms}[ times {times}][ at {at}]",
    examples="late SyncGroup 400",
    sentence="answers the next {kind} after {ms} ms[, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Late:
    """The next request of a kind is answered later.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


@operation(
    "client-pieces", BROKER, "pieces {kind}",
    examples="pieces JoinGroup",
    sentence="answers the next {kind} in pieces of one byte",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Pieces:
    """The answer to the next request of a kind comes in pieces of one byte, the part after 256 bytes at once.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]


@operation(
    "client-reset", BROKER, "reset {kind}[ {when}][ times {times}][ at {at}]",
    examples="reset Heartbeat; reset JoinGroup amid",
    sentence="resets the connection at the next {kind}[, {when} its answer][, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset before, amid or after the answer to the next request of a kind.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    when: Annotated[
        Literal["before", "amid", "after"],
        about("when; before: there is no answer"),
        typical("amid", "after"),
        optional,
    ] = "before"
    times: Times = 1
    at: At = "now"


@operation(
    "client-silent", BROKER, "silent {kind} {ms}[ times {times}][ at {at}]",
    examples="silent Heartbeat 400",
    sentence="never answers the next {kind}, and closes the connection after {ms} ms[, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Silent:
    """The next request of a kind is never answered.

    The connection is closed later, if the client does not close it before. The step ends when the client is a stable
    member again.
    """

    kind: Annotated[Kind, about("the request")]
    ms: Annotated[int, about("milliseconds until the connection is closed"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


@operation(
    "client-together", BROKER, "together {kind}",
    examples="together Heartbeat",
    sentence="answers the next {kind} in one segment with the request after it",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Together:
    """The answer to the next request of a kind comes in one segment with that to the following request.

    If the client sends none meanwhile, it comes alone after 300 ms. The step ends when the client is a stable member
    again.
    """

    kind: Annotated[Kind, about("the request")]


@operation(
    "client-tags", BROKER, "tags {kind}",
    examples="tags JoinGroup",
    sentence="adds unknown tags to the answer to the next {kind}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Tags:
    """The answer to the next request of a kind has tagged fields that no release has, if its version is flexible.

    The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]


@operation(
    "client-throttle", BROKER, "throttle {kind} {ms}[ times {times}][ at {at}]",
    examples="throttle Fetch 400",
    sentence="throttles the client for {ms} ms with the answer to the next {kind}[, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Throttle:
    """The answer to the next request of a kind has a throttle time, in which the broker reads nothing more.

    A version without that field is answered alike (KIP-219). The step ends when the client is a stable member again.
    """

    kind: Annotated[Kind, about("the request")]
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


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

    name: Annotated[Literal["consumer", "classic"], about("the protocol; consumer is that of KIP-848")]


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

    how: Annotated[Literal["auto", "seldom", "sync", "async", "late"], about(
        "auto, seldom: the client does, at a short or long interval; sync, async: after each poll; "
        "late: after the next rebalance"), typical("seldom", "sync", "async", "late")]  # fmt: skip


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
)
"""What concerns the next start of the program."""
Disturbed: TypeAlias = Late | Pieces | Reset | Silent | Together | Tags | Throttle
"""What happens to the answer to a request."""
Timed: TypeAlias = Answer | Refuse | Late | Reset | Silent | Throttle
"""What changes answers now, or at the next start or stop of the program."""
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
TIMED: Final = (Answer, Refuse, Late, Reset, Silent, Throttle)
SETTINGS: Final = (
    Static, Assignors, GroupProtocol, Older, Subscribe, Newer, Offer, Intervals, Commits, Works, MaxPoll, Pattern,
    Begins,
)  # fmt: skip
EVENTS: Final = (
    Others, Assign, Rebalance, Answer, Late, Pieces, Reset, Pass, Member, Grow, Silent, Together, Tags, Move,
    Throttle, Down, Disband, *log_ops.EVENTS, *SETTINGS, Committed, Fence, Restart, Freeze, Refuse, Stop,
)  # fmt: skip
OPERATIONS: Operations[Event, Any] = Operations(CLIENT, Role.CLIENT, EVENTS, sample="stop")


def held_ms(event: Event) -> int:
    """How long the broker holds one answer back, which is no time of the client's."""
    return event.ms if isinstance(event, Late | Silent | Throttle) else 0


def held_in_all_ms(event: Event) -> int:
    """The same for all answers that a step changes."""
    return held_ms(event) * getattr(event, "times", 1)
