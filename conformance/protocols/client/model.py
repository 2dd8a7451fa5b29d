"""Which steps a script may have: what a broker, a network, a user and the other members can do to a client."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.client import log_ops, ops
from kipcheck.conformance.protocols.client.answer_ops import SHARES, STREAMS, UNDRAWN

COORDINATOR: Final[tuple[ops.Error, ...]] = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
LEADER: Final[tuple[ops.Error, ...]] = (
    "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
)  # fmt: skip
ERRORS: Final[Mapping[ops.Kind, tuple[ops.Error, ...]]] = {
    "JoinGroup": (*COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID"),
    "SyncGroup": (*COORDINATOR, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"),
    "Heartbeat": (*COORDINATOR, "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"),
    "OffsetCommit": (
        *COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID",
        "REBALANCE_IN_PROGRESS", "UNKNOWN_TOPIC_OR_PARTITION", "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH",
    ),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "Metadata": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "OffsetFetch": (
        "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT", "STALE_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
    ),
    "ListOffsets": (*LEADER, "OFFSET_NOT_AVAILABLE"),
    "Fetch": (
        *LEADER, "OFFSET_OUT_OF_RANGE", "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH",
        "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID",
    ),
    "OffsetForLeaderEpoch": LEADER,
    "LeaveGroup": (*COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID"),
    "ConsumerGroupHeartbeat": (
        *COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH",
        "GROUP_ID_NOT_FOUND",
    ),
    "StreamsGroupHeartbeat": (
        *COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH",
    ),
    "ShareGroupHeartbeat": (
        *COORDINATOR, "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH",
    ),
    "ShareFetch": ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"),
    "ShareAcknowledge": ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"),
}  # fmt: skip
"""The errors that pass with which a broker answers each request of a known group and topic.

Sources: ``GroupCoordinatorService`` and ``GroupMetadataManager`` for groups, ``KafkaApis`` for FindCoordinator and
Metadata, ``ReplicaManager`` and ``Partition`` for Fetch and ListOffsets. A heartbeat of a group that is loading is
accepted, and a SyncGroup of one is answered as if the group rebalanced. An OffsetFetch that cannot be answered now gets
NOT_COORDINATOR, since consumers before 3.9 do not expect COORDINATOR_NOT_AVAILABLE. A deleted group is not found by
heartbeats of KIP-848, nor by commits from version 9 on (``OffsetMetadataManager.validateOffsetCommit``); an epoch is
stale, and a member that fetches offsets unknown, in groups of KIP-848 (``ConsumerGroup.validateOffsetFetch``). A
member of a streams group does not expect GROUP_ID_NOT_FOUND (``StreamsGroupHeartbeatRequestManager.onErrorResponse``).
"""
OF_KIP_848: Final = frozenset({("OffsetCommit", "STALE_MEMBER_EPOCH"), ("OffsetFetch", "STALE_MEMBER_EPOCH"),
                               ("OffsetFetch", "UNKNOWN_MEMBER_ID")})  # fmt: skip
"""The errors of ``ERRORS`` that only members of KIP-848 are sent."""
OF_CLASSIC: Final = frozenset({("OffsetCommit", "ILLEGAL_GENERATION"), ("OffsetCommit", "REBALANCE_IN_PROGRESS")})
"""Those that no member with heartbeats of its own kind is sent: its epoch is stale (``OffsetMetadataManager``)."""
GROUP: Final[tuple[ops.Refusal, ...]] = ("GROUP_AUTHORIZATION_FAILED",)
TOPIC: Final[tuple[ops.Refusal, ...]] = ("TOPIC_AUTHORIZATION_FAILED",)
STATIC: Final[tuple[ops.Refusal, ...]] = ("FENCED_INSTANCE_ID", "UNSUPPORTED_VERSION")
REFUSALS: Final[Mapping[ops.Kind, tuple[ops.Refusal, ...]]] = {
    "JoinGroup": (
        *GROUP, *STATIC, "INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED",
        "INVALID_GROUP_ID",
    ),
    "SyncGroup": (*GROUP, *STATIC, "INCONSISTENT_GROUP_PROTOCOL"),
    "Heartbeat": (*GROUP, *STATIC),
    "OffsetCommit": (*GROUP, *TOPIC, *STATIC),
    "FindCoordinator": GROUP,
    "Metadata": TOPIC,
    "OffsetFetch": (*GROUP, *TOPIC),
    "ListOffsets": TOPIC,
    "Fetch": TOPIC,
    "OffsetForLeaderEpoch": TOPIC,
    "LeaveGroup": GROUP,
    "ConsumerGroupHeartbeat": (
        *GROUP, *TOPIC, "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID", "UNSUPPORTED_VERSION", "INVALID_REQUEST",
        "UNSUPPORTED_ASSIGNOR", "GROUP_MAX_SIZE_REACHED", "INVALID_GROUP_ID",
    ),
    "StreamsGroupHeartbeat": (
        *GROUP, *TOPIC, "UNSUPPORTED_VERSION", "INVALID_REQUEST", "GROUP_MAX_SIZE_REACHED", "STREAMS_INVALID_TOPOLOGY",
        "STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED",
    ),
    "ShareGroupHeartbeat": (*GROUP, "UNSUPPORTED_VERSION", "INVALID_REQUEST", "GROUP_MAX_SIZE_REACHED"),
    "ShareFetch": GROUP,
    "ShareAcknowledge": GROUP,
}  # fmt: skip
"""The errors with which a broker answers each request, and which a client cannot recover from.

Sources: those of ``ERRORS``, and ``KafkaApis`` for authorization. A group may get full, and the limits of timeouts may
change, while the client is a member of it. Apache Kafka takes every name of a group; other brokers need not.
"""
STATIC_ONLY: Final = frozenset(
    (kind, error) for kind, errors in REFUSALS.items() for error in errors
    if error in ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")
    or (error == "UNSUPPORTED_VERSION" and kind not in ("ConsumerGroupHeartbeat", *UNDRAWN))
)  # fmt: skip
"""The refusals that are about an instance id. A broker that does not know them all yet does not take static members."""
SINCE: Final[Mapping[tuple[ops.Kind, ops.Error | ops.Refusal], int]] = {
    ("SyncGroup", "INCONSISTENT_GROUP_PROTOCOL"): 5,
    ("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"): 7,
    ("OffsetFetch", "STALE_MEMBER_EPOCH"): 9,
    ("OffsetFetch", "UNKNOWN_MEMBER_ID"): 9,
    ("OffsetCommit", "STALE_MEMBER_EPOCH"): 9,
    ("OffsetCommit", "GROUP_ID_NOT_FOUND"): 9,
    ("ListOffsets", "FENCED_LEADER_EPOCH"): 4,
    ("ListOffsets", "UNKNOWN_LEADER_EPOCH"): 4,
    ("ListOffsets", "OFFSET_NOT_AVAILABLE"): 5,
    ("OffsetForLeaderEpoch", "FENCED_LEADER_EPOCH"): 2,
    ("OffsetForLeaderEpoch", "UNKNOWN_LEADER_EPOCH"): 2,
    ("Fetch", "FENCED_LEADER_EPOCH"): 9,
    ("Fetch", "UNKNOWN_LEADER_EPOCH"): 9,
    ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"): 7,
    ("Fetch", "INVALID_FETCH_SESSION_EPOCH"): 7,
    ("Fetch", "UNKNOWN_TOPIC_ID"): 13,
    ("Fetch", "INCONSISTENT_TOPIC_ID"): 13,
}
"""The version of a request since which a broker gives that answer; others: all versions."""
CONSUMER_ONLY: Final = frozenset({"ConsumerGroupHeartbeat"})
CLASSIC_ONLY: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"})
OF_POSITIONS: Final = frozenset({"OffsetCommit", "OffsetFetch", "ListOffsets", "Fetch", "OffsetForLeaderEpoch"})
UNSENT: Final[Mapping[str, frozenset[str]]] = {
    "classic": CONSUMER_ONLY | UNDRAWN,
    "consumer": CLASSIC_ONLY | UNDRAWN,
    "streams": CLASSIC_ONLY | CONSUMER_ONLY | frozenset(SHARES),
    "share": CLASSIC_ONLY | CONSUMER_ONLY | OF_POSITIONS | {STREAMS},
}
"""Protocol of a group -> the requests that its members do not send."""
AT_THE_END: Final = frozenset({"OffsetCommit", "LeaveGroup", "ConsumerGroupHeartbeat", *UNDRAWN})
"""The requests that a program sends when it is stopped."""
MOST_OTHERS: Final = 16
PARTITIONS: Final = 4
"""Of each topic."""
MOST_PARTITIONS: Final = 1000
MOST_MS: Final = 10_000
"""The longest delay of a script."""
MOST_SESSION_MS: Final = 60_000
MOST_VERSION: Final = 100
"""Of a request."""
MOST_TIMES: Final = 20
"""The most requests that one step changes, unless it changes all."""
RECORDS: Final = 10
"""Of each partition, at first."""
LEAST_POLL_MS: Final = 3000
"""The session timeout of scripts: librdkafka refuses a shorter max.poll.interval.ms."""
GENERATIONS: Final = range(10)
VERSIONS: Final = range(4)
"""Of a subscription."""


class State(NamedTuple):
    """What the steps so far say about the program."""

    started: bool = False
    static: bool = False
    protocol: str = "classic"
    """Of its group; ``consumer``: that of KIP-848, ``streams``: that of KIP-1071, ``share``: that of KIP-932."""
    shut_out: bool = False
    """It may have ended: another program has its instance id, or the broker refuses it."""
    missing: frozenset[log_ops.Subscribable] = frozenset()
    """The topics that do not exist."""

    @property
    def by_heartbeats(self) -> bool:
        """Whether its group has epochs, and a coordinator that assigns."""
        return self.protocol != "classic"


class Scripts:
    """The machine along which scripts are drawn. Any order of steps is a script; not all are worth a draw."""

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, Any]:
        match event:
            case ops.Static():
                state = state._replace(static=True)
            case ops.GroupProtocol(name):
                state = state._replace(protocol=name)
            case ops.Fence():
                state = state._replace(shut_out=state.static, started=True)
            case ops.Refuse():
                state = state._replace(shut_out=True, started=True)
            case log_ops.Create(topic):
                state = state._replace(missing=state.missing - {topic})
            case log_ops.Delete(topic):
                state = state._replace(missing=state.missing | {topic})
            case (
                ops.Others()
                | ops.Assign()
                | ops.Grow()
                | ops.Committed()
                | log_ops.Records()
                | log_ops.Trim()
                | log_ops.Elect()
                | log_ops.Lags()
            ):
                pass
            case _ if not isinstance(event, ops.SETTINGS) and getattr(event, "at", "now") == "now":
                state = state._replace(started=True)
        return Transition(state)


def is_worth(state: State, event: ops.Event) -> bool:
    """Whether a client can notice the step after these."""
    if state.shut_out or not is_possible(event):
        return False
    match event:
        case ops.Fence():
            return state.static and not state.by_heartbeats
        case ops.Others() | ops.Member():
            return not state.by_heartbeats
        case ops.Committed():
            return not state.started
        case log_ops.Create(topic):
            return topic in state.missing
        case log_ops.Delete(topic):
            return topic not in state.missing
        case ops.Refuse(kind, error) if (kind, error) in STATIC_ONLY and not state.static:
            return False
        case ops.Answer(kind, error) if (kind, error) in (OF_CLASSIC if state.by_heartbeats else OF_KIP_848):
            return False
        case (
            ops.Refuse()
            | ops.Answer()
            | ops.Late()
            | ops.Pieces()
            | ops.Reset()
            | ops.Silent()
            | ops.Together()
            | ops.Tags()
            | ops.Throttle()
        ):
            phase = getattr(event, "at", "now")
            if (phase == "start" and state.started) or (phase == "stop" and event.kind not in AT_THE_END):
                return False
            return event.kind not in UNSENT[state.protocol]
    return not (state.started and isinstance(event, ops.SETTINGS))


def is_possible(event: ops.Event) -> bool:
    """Whether a broker, a network, a user and other members can do that."""
    if not 1 <= getattr(event, "times", 1) <= MOST_TIMES:
        return False
    if getattr(event, "at", "now") == "start" and getattr(event, "kind", "") == "LeaveGroup":
        return False
    match event:
        case ops.Answer(kind, error):
            return error in ERRORS[kind]
        case ops.Refuse(kind, refusal):
            return refusal in REFUSALS[kind] and event.at != "next"
        case ops.Others(number):
            return 0 <= number <= MOST_OTHERS
        case ops.Member():
            return event.version in VERSIONS and event.back in GENERATIONS and all(each >= 0 for each in event.owned)
        case ops.Assign(partitions, more):
            return all(0 <= each < MOST_PARTITIONS for each in (*partitions, *more))
        case ops.Grow(partitions):
            return PARTITIONS <= partitions <= MOST_PARTITIONS
        case ops.Subscribe(number):
            return number in (1, 2)
        case ops.Down(nodes, release=release) if release != "same" and nodes != "all":
            return False  # the versions of connections to the other node would change too
        case log_ops.Trim(records):
            return records >= 0
        case log_ops.Elect(partitions, ms):
            return ms <= MOST_MS and all(0 <= number < MOST_PARTITIONS for number in partitions)
        case ops.Committed(offset):
            return 0 <= offset <= RECORDS
        case ops.Offer(kind, low, high):
            return 0 <= low <= high <= MOST_VERSION
        case ops.Intervals(heartbeat_ms, session_ms):
            return 0 < heartbeat_ms < session_ms <= MOST_SESSION_MS
        case ops.MaxPoll(ms):
            return LEAST_POLL_MS <= ms <= MOST_MS
    return 0 <= getattr(event, "ms", 0) <= MOST_MS


PLACEHOLDERS: Final[Mapping[type, str]] = {
    ops.Static: "instance",
    ops.Assignors: "assignors",
    ops.GroupProtocol: "protocol",
    ops.Commits: "commit",
    ops.Works: "pause_ms",
    ops.MaxPoll: "max_poll_ms",
    ops.Pattern: "pattern",
    ops.Begins: "offset_reset",
    ops.Polls: "poll_ms",
    ops.Resumes: "resume",
}


def needs(steps: Iterable[Step]) -> frozenset[str]:
    """The optional placeholders that a command has to have for a script: ``instance`` and so on."""
    of_verb = {ops.OPERATIONS.verb_of[made]: name for made, name in PLACEHOLDERS.items()}
    return frozenset(of_verb[each.verb] for each in steps if each.verb in of_verb)
