"""The steps of a script about answers: which requests are answered with errors, later, or not at all."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from kipcheck.conformance.core.operations.declaration import operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical

BROKER: Final = "broker"
Kind: TypeAlias = Literal[
    "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "FindCoordinator", "Metadata", "OffsetFetch", "ListOffsets",
    "Fetch", "LeaveGroup", "ConsumerGroupHeartbeat", "OffsetForLeaderEpoch", "StreamsGroupHeartbeat",
    "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge",
]  # fmt: skip
"""The requests whose answers a script changes."""
STREAMS: Final[Kind] = "StreamsGroupHeartbeat"
SHARES: Final[tuple[Kind, ...]] = ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
UNDRAWN: Final = frozenset({STREAMS, *SHARES})
"""The requests of members of streams groups and share groups alone, which no consumer sends."""
OF_STREAMS: Final = frozenset({
    "STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED",
})  # fmt: skip
"""The errors of that request alone."""
Error: TypeAlias = Literal[
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT", "OFFSET_OUT_OF_RANGE", "FENCED_MEMBER_EPOCH",
    "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH",
    "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID",
    "SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH",
]  # fmt: skip
Refusal: TypeAlias = Literal[
    "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID",
    "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "UNSUPPORTED_VERSION", "INVALID_REQUEST",
    "UNSUPPORTED_ASSIGNOR", "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID", "STREAMS_INVALID_TOPOLOGY",
    "STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED",
]  # fmt: skip
"""Errors that a client cannot recover from."""
Phase: TypeAlias = Literal["now", "start", "stop", "next"]
Sent: TypeAlias = Annotated[
    Kind, about("the request"), typical(*(kind for kind in get_args(Kind) if kind not in UNDRAWN))
]  # fmt: skip
Several: TypeAlias = Annotated[
    Kind, about("the requests"), typical(*(kind for kind in get_args(Kind) if kind not in UNDRAWN))
]  # fmt: skip
Times: TypeAlias = Annotated[int, about("how many requests of that kind in a row"), typical(2, 6), optional]
At: TypeAlias = Annotated[
    Phase, about("when; now: the broker does what lets the client send such a request, and waits for it; start: at the "
                 "next start of the program; stop: when it is stopped; next: when the client sends one by itself, "
                 "while the script goes on"),
    typical("start", "stop", "next"), optional,
]  # fmt: skip


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

    kind: Sent
    error: Annotated[
        Error, about("the error"), typical(*(each for each in get_args(Error) if "SHARE_SESSION" not in each))
    ]
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

    kind: Several
    error: Annotated[
        Refusal, about("the error"), typical(*(each for each in get_args(Refusal) if each not in OF_STREAMS))
    ]
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

    kind: Sent
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


@operation(
    "client-pieces", BROKER, "pieces {kind}[ at {at}]",
    examples="pieces JoinGroup",
    sentence="answers the next {kind} in pieces of one byte[, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Pieces:
    """The answer to the next request of a kind comes in pieces of one byte, the part after 256 bytes at once.

    The step ends when the client is a stable member again.
    """

    kind: Sent
    at: At = "now"


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

    kind: Sent
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

    kind: Sent
    ms: Annotated[int, about("milliseconds until the connection is closed"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


@operation(
    "client-together", BROKER, "together {kind}[ at {at}]",
    examples="together Heartbeat",
    sentence="answers the next {kind} in one segment with the request after it[, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Together:
    """The answer to the next request of a kind comes in one segment with that to the following request.

    If the client sends none meanwhile, it comes alone after 300 ms. The step ends when the client is a stable member
    again.
    """

    kind: Sent
    at: At = "now"


@operation(
    "client-tags", BROKER, "tags {kind}[ times {times}][ at {at}]",
    examples="tags JoinGroup",
    sentence="adds unknown tags to the answer to the next {kind}[, {times} times][, at the {at}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Tags:
    """The answer to the next request of a kind has tagged fields that no release has, if its version is flexible.

    The step ends when the client is a stable member again.
    """

    kind: Sent
    times: Times = 1
    at: At = "now"


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

    kind: Sent
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]
    times: Times = 1
    at: At = "now"


Disturbed: TypeAlias = Late | Pieces | Reset | Silent | Together | Tags | Throttle
"""What happens to the answer to a request."""
Timed: TypeAlias = Answer | Refuse | Disturbed
"""What changes answers now, or at the next start or stop of the program."""
TIMED: Final = (Answer, Refuse, Late, Pieces, Reset, Silent, Together, Tags, Throttle)
