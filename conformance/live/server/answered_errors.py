"""Answers of a broker with an error in them, made of those without one."""

import uuid
from collections.abc import Mapping
from typing import Any, Final, cast

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.classic_api import BATCHES_SINCE, joined
from kipcheck.conformance.live.server.offsets_api import committed
from kipcheck.conformance.protocols.client.ops import Error, Refusal
from kipcheck.conformance.protocols.group.errors import Error as GroupError
from kipcheck.conformance.protocols.group.model.messages import Joined

CODES: Final[Mapping[Error | Refusal, int]] = {
    "OFFSET_OUT_OF_RANGE": 1, "UNKNOWN_TOPIC_OR_PARTITION": 3, "LEADER_NOT_AVAILABLE": 5, "NOT_LEADER_OR_FOLLOWER": 6,
    "COORDINATOR_LOAD_IN_PROGRESS": 14, "COORDINATOR_NOT_AVAILABLE": 15, "NOT_COORDINATOR": 16,
    "ILLEGAL_GENERATION": 22, "UNKNOWN_MEMBER_ID": 25, "REBALANCE_IN_PROGRESS": 27, "KAFKA_STORAGE_ERROR": 56,
    "FENCED_LEADER_EPOCH": 74, "UNKNOWN_LEADER_EPOCH": 75, "OFFSET_NOT_AVAILABLE": 78, "UNSTABLE_OFFSET_COMMIT": 88,
    "FENCED_MEMBER_EPOCH": 110, "INCONSISTENT_GROUP_PROTOCOL": 23, "INVALID_GROUP_ID": 24,
    "INVALID_SESSION_TIMEOUT": 26, "TOPIC_AUTHORIZATION_FAILED": 29, "GROUP_AUTHORIZATION_FAILED": 30,
    "UNSUPPORTED_VERSION": 35, "INVALID_REQUEST": 42, "GROUP_MAX_SIZE_REACHED": 81, "FENCED_INSTANCE_ID": 82,
    "UNRELEASED_INSTANCE_ID": 111, "UNSUPPORTED_ASSIGNOR": 112,
}  # fmt: skip
"""``org.apache.kafka.common.protocol.Errors``"""
REFUSED: Final[Mapping[int, str]] = {
    16: "NOT_COORDINATOR", 24: "INVALID_GROUP_ID", 25: "UNKNOWN_MEMBER_ID", 30: "GROUP_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION", 42: "INVALID_REQUEST", 69: "GROUP_ID_NOT_FOUND", 81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID", 110: "FENCED_MEMBER_EPOCH", 111: "UNRELEASED_INSTANCE_ID", 112: "UNSUPPORTED_ASSIGNOR",
    128: "INVALID_REGULAR_EXPRESSION", 130: "STREAMS_INVALID_TOPOLOGY", 131: "STREAMS_INVALID_TOPOLOGY_EPOCH",
    132: "STREAMS_TOPOLOGY_FENCED",
}  # fmt: skip
"""Errors of consumer groups and streams groups."""
_OF_GROUPS: Final = {each.value: each.name for each in GroupError}
GROUP_ERRORS_SINCE: Final = 2
"""OffsetFetch with an error of the group."""
OF_PARTITIONS: Final = frozenset({"UNSTABLE_OFFSET_COMMIT", "TOPIC_AUTHORIZATION_FAILED"})
"""Errors of OffsetFetch that are none of the group."""
NOWHERE: Final = {"nodeId": -1, "host": "", "port": -1}


def name_of(code: int) -> str:
    """Of an error of groups; ``error N`` for another one."""
    return REFUSED.get(code) or _OF_GROUPS.get(code, f"error {code}")


def code_of(name: str) -> int:
    """Of an error of consumer groups. Errors: StopIteration for another one."""
    return next(code for code, each in REFUSED.items() if each == name)


def refused(request: Received, error: int) -> dict[str, Any]:
    """The answer of a coordinator that has done nothing."""
    body = request.body
    match request.api:
        case "JoinGroup":
            return joined(request, Joined(0, cast(GroupError, error), member=body["memberId"]))
        case "SyncGroup":
            return {"errorCode": error, "assignment": b""}
        case "LeaveGroup" if request.version >= BATCHES_SINCE:
            return {"errorCode": error, "members": []}
        case "OffsetCommit":
            return {"topics": [committed(each, {}, error) for each in body["topics"]]}
        case "ConsumerGroupHeartbeat":
            return {"errorCode": error, "memberId": body["memberId"], "memberEpoch": 0, "heartbeatIntervalMs": 0}
    return {"errorCode": error}


def with_error(api: str, version: int, body: Mapping[str, Any], error: Error | Refusal) -> dict[str, Any]:
    """The answer as a broker gives it with that error. ``body``: without an error."""
    code = CODES[error]
    match api:
        case "FindCoordinator" if "coordinators" in body:
            return {**body, "coordinators": [{**each, **NOWHERE, "errorCode": code} for each in body["coordinators"]]}
        case "FindCoordinator":
            return {**body, **NOWHERE, "errorCode": code}
        case "Metadata":
            return {**body, "topics": [_described(each, error, code) for each in body["topics"]]}
        case "OffsetFetch":
            return _fetched_offsets(version, body, error, code)
        case "ListOffsets":
            return {**body, "topics": _each(body["topics"], {"errorCode": code, "timestamp": -1, "offset": -1})}
        case "Fetch":
            empty = {"errorCode": code, "highWatermark": -1, "lastStableOffset": -1, "logStartOffset": -1,
                     "records": b""}  # fmt: skip
            return {**body, "responses": _each(body["responses"], empty)}
    raise LookupError(f"no errors of {api}")


def _each(topics: Any, changed: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**each, "partitions": [{**part, **changed} for part in each["partitions"]]} for each in topics]


def _described(topic: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    """Partitions without a leader, or a topic that the broker does not know yet, or does not show."""
    if error == "LEADER_NOT_AVAILABLE":
        return {**topic, "partitions": [{**each, "errorCode": code, "leaderId": -1} for each in topic["partitions"]]}
    known = {"topicId": uuid.UUID(int=0)} if "topicId" in topic else {}
    return {**topic, **known, "errorCode": code, "partitions": []}


def _fetched_offsets(version: int, body: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    empty = {"errorCode": code, "committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
    groups = "groups" in body
    if error in OF_PARTITIONS or version < GROUP_ERRORS_SINCE:
        if groups:
            return {**body, "groups": [{**each, "topics": _each(each["topics"], empty)} for each in body["groups"]]}
        return {**body, "topics": _each(body["topics"], empty)}
    if groups:
        return {**body, "groups": [{**each, "topics": [], "errorCode": code} for each in body["groups"]]}
    return {**body, "topics": [], "errorCode": code}
