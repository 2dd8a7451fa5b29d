"""Error codes, APIs and times that invariants of live clients name."""

from collections.abc import Mapping
from typing import Final

from kipcheck.conformance.protocols.client.ops import Topic

NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
MEMBER_ID_REQUIRED: Final = 79
FENCED_INSTANCE_ID: Final = 82
GROUP_ID_NOT_FOUND: Final = 69
FENCED_MEMBER_EPOCH: Final = 110
FENCING: Final[Mapping[int, str]] = {
    ILLEGAL_GENERATION: "ILLEGAL_GENERATION", UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER_ID",
    FENCED_INSTANCE_ID: "FENCED_INSTANCE_ID", FENCED_MEMBER_EPOCH: "FENCED_MEMBER_EPOCH",
}  # fmt: skip
"""The errors that end a membership, with their names."""
OF_THE_ID: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND})
"""The errors after which a member id is worth nothing, whatever generation its request had."""
FATAL: Final = frozenset({23, 24, 26, 29, 30, 31, 35, 42, 81, FENCED_INSTANCE_ID, 111, 112, 128})
"""Errors after which a consumer raises: protocols that do not match, invalid settings, no authorization, and so on."""
OF_GROUPS: Final = frozenset({
    "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "LeaveGroup", "ConsumerGroupHeartbeat",
})  # fmt: skip
"""Requests without which no client is a member that reads, or leaves."""
GRACE_MS: Final = 1000
"""What the client does so long after an answer may precede it."""
RACE_MS: Final = 100
"""So long after an answer a request of another thread or connection may have been written before it was read."""
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
GROUP_REQUESTS: Final = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit"})
"""Those that carry member id and generation."""
ATTEMPTS: Final = frozenset({"FindCoordinator", "JoinGroup", "SyncGroup", HEARTBEAT})
"""The requests by which a client returns to its group."""
WITHOUT_GENERATION: Final = frozenset({"JoinGroup", "LeaveGroup", HEARTBEAT})
"""Requests without a generation; and that of KIP-848, an error to which ends the membership whatever its epoch."""
