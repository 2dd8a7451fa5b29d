"""Answers of a broker with an error in them, made of those without one."""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.protocols.client.ops import Error, Refusal

GROUP_ERRORS_SINCE: Final = 2
"""OffsetFetch with an error of the group."""
OF_PARTITIONS: Final = frozenset({"UNSTABLE_OFFSET_COMMIT", "TOPIC_AUTHORIZATION_FAILED"})
"""Errors of OffsetFetch that are none of the group."""
NOWHERE: Final = {"nodeId": -1, "host": "", "port": -1}


def with_error(api: str, version: int, body: Mapping[str, Any], error: Error | Refusal) -> dict[str, Any]:
    """The answer as a broker gives it with that error. ``body``: without an error."""
    code = KafkaError[error]
    match api, body:
        case "FindCoordinator", {"coordinators": coordinators}:
            return {**body, "coordinators": [{**place, **NOWHERE, "errorCode": code} for place in coordinators]}
        case "FindCoordinator", _:
            return {**body, **NOWHERE, "errorCode": code}
        case "Metadata", {"topics": topics}:
            return {**body, "topics": [_described(topic, error, code) for topic in topics]}
        case "OffsetFetch", {"groups": groups}:
            return {**body, "groups": [_fetched_offsets(version, group, error, code) for group in groups]}
        case "OffsetFetch", _:
            return _fetched_offsets(version, body, error, code)
        case "ListOffsets", {"topics": topics}:
            return {**body, "topics": _each(topics, {"errorCode": code, "timestamp": -1, "offset": -1})}
        case "OffsetForLeaderEpoch", {"topics": topics}:
            return {**body, "topics": _each(topics, {"errorCode": code, "leaderEpoch": -1, "endOffset": -1})}
    raise LookupError(f"no errors of {api}")


def _each(topics: Any, changed: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**topic, "partitions": [{**part, **changed} for part in topic["partitions"]]} for topic in topics]


def _described(topic: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    """Partitions without a leader, or a topic that the broker does not know yet, or does not show."""
    if error == "LEADER_NOT_AVAILABLE":
        return {**topic, "partitions": [{**part, "errorCode": code, "leaderId": -1} for part in topic["partitions"]]}
    known = {"topicId": uuid.UUID(int=0)} if "topicId" in topic else {}
    return {**topic, **known, "errorCode": code, "partitions": []}


def _fetched_offsets(version: int, part: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    """``part``: the answer, or its part about a group."""
    empty = {"errorCode": code, "committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
    if error in OF_PARTITIONS or version < GROUP_ERRORS_SINCE:
        return {**part, "topics": _each(part["topics"], empty)}
    return {**part, "topics": [], "errorCode": code}
