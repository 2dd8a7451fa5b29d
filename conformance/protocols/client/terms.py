"""Error codes, APIs and times that invariants of live clients name."""

from typing import Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.protocols.client.ops import Topic

FENCING: Final = frozenset({
    KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID,
    KafkaError.FENCED_MEMBER_EPOCH,
})  # fmt: skip
"""The errors that end a membership."""
OF_THE_ID: Final = frozenset({
    KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID, KafkaError.GROUP_ID_NOT_FOUND,
})  # fmt: skip
"""The errors after which a member id is worth nothing, whatever generation its request had."""
FATAL: Final = frozenset({
    KafkaError.INCONSISTENT_GROUP_PROTOCOL, KafkaError.INVALID_GROUP_ID, KafkaError.INVALID_SESSION_TIMEOUT,
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.UNSUPPORTED_VERSION, KafkaError.INVALID_REQUEST,
    KafkaError.GROUP_MAX_SIZE_REACHED, KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID,
    KafkaError.UNSUPPORTED_ASSIGNOR, KafkaError.INVALID_REGULAR_EXPRESSION, KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.STREAMS_INVALID_TOPOLOGY, KafkaError.STREAMS_INVALID_TOPOLOGY_EPOCH, KafkaError.STREAMS_TOPOLOGY_FENCED,
})  # fmt: skip
"""Errors after which a consumer raises: protocols that do not match, invalid settings, no authorization, a group that
is gone, and so on. One that joins again after the last is right, too."""
ENDING: Final = FATAL - {KafkaError.TOPIC_AUTHORIZATION_FAILED}
"""The errors of a heartbeat of KIP-848 after which a client is no member any more. One for a topic may pass."""
NOT_YET: Final = frozenset({
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_OR_FOLLOWER,
    KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
})  # fmt: skip
"""Errors that end when the broker has loaded, or the news has spread: what is repeated at once fails again."""
OF_COORDINATORS: Final = frozenset({
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR,
})  # fmt: skip
"""Errors of a coordinator that is not there; how often a client tries again is its own matter."""
OF_GROUPS: Final = frozenset({
    "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "LeaveGroup", "ConsumerGroupHeartbeat",
    "StreamsGroupHeartbeat", "ShareGroupHeartbeat",
})  # fmt: skip
"""Requests without which no client is a member that reads, or leaves."""
GRACE_MS: Final = 1000
"""What the client does so long after an answer may precede it."""
RACE_MS: Final = 100
"""So long after an answer a request of another thread or connection may have been written before it was read."""
UNREAD_MS: Final = 3000
"""So long after its assignment, or after what last hindered the client, a partition is read."""
NEVER: Final = 1 << 60
SESSION_MS: Final = 3000
"""Where a JoinGroup names none."""
MISSING: Final[Topic] = "gone"
"""A topic that does not exist."""
INTERVALS_OF_ITS_OWN: Final = 10
"""So many pauses between its attempts, and a session timeout, a client has that returns to its group."""
LATE_MS: Final = 50
"""A breach of a bound in time proves nothing if an idle loop of ours was late by so much meanwhile."""
BY_SCRIPT: Final = "by the script"
"""Why a connection was closed that a script disturbs: the fault is not the client's."""
HEARTBEAT: Final = "ConsumerGroupHeartbeat"
"""The only request of groups of KIP-848, but for OffsetCommit; what is a generation elsewhere is an epoch there."""
SHARE_HEARTBEAT: Final = "ShareGroupHeartbeat"
HEARTBEATS: Final = (HEARTBEAT, "StreamsGroupHeartbeat", SHARE_HEARTBEAT)
"""The same, and those of streams groups (KIP-1071) and share groups (KIP-932), whose members owe the same."""
GROUP_REQUESTS: Final = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""Those that carry member id and generation."""
COORDINATED: Final = GROUP_REQUESTS | {"JoinGroup", *HEARTBEATS}
"""Those that only the coordinator of the group accepts from a member."""
ATTEMPTS: Final = frozenset({"FindCoordinator", "JoinGroup", "SyncGroup", *HEARTBEATS})
"""The requests by which a client returns to its group."""
WITHOUT_GENERATION: Final = frozenset({"JoinGroup", "LeaveGroup", *HEARTBEATS})
"""Requests without a generation; and that of KIP-848, an error to which ends the membership whatever its epoch."""


def topic_of(partition: str) -> str:
    """Of a partition's name, ``t-0``."""
    return partition.rpartition("-")[0]
