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
        case "FindCoordinator", {"coordinators": found}:
            return {**body, "coordinators": [{**each, **NOWHERE, "errorCode": code} for each in found]}
        case "FindCoordinator", _:
            return {**body, **NOWHERE, "errorCode": code}
        case "Metadata", {"topics": topics}:
            return {**body, "topics": [_described(each, error, code) for each in topics]}
        case "OffsetFetch", {"groups": groups}:
            return {**body, "groups": [_fetched_offsets(version, each, error, code) for each in groups]}
        case "OffsetFetch", _:
            return _fetched_offsets(version, body, error, code)
        case "ListOffsets", {"topics": topics}:
            return {**body, "topics": _each(topics, {"errorCode": code, "timestamp": -1, "offset": -1})}
        case "Fetch", {"responses": topics}:
            empty = {"errorCode": code, "highWatermark": -1, "lastStableOffset": -1, "logStartOffset": -1,
                     "records": b""}  # fmt: skip
            return {**body, "responses": _each(topics, empty)}
    raise LookupError(f"no errors of {api}")


def _each(topics: Any, changed: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**each, "partitions": [{**part, **changed} for part in each["partitions"]]} for each in topics]


def _described(topic: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    """Partitions without a leader, or a topic that the broker does not know yet, or does not show."""
    if error == "LEADER_NOT_AVAILABLE":
        return {**topic, "partitions": [{**each, "errorCode": code, "leaderId": -1} for each in topic["partitions"]]}
    known = {"topicId": uuid.UUID(int=0)} if "topicId" in topic else {}
    return {**topic, **known, "errorCode": code, "partitions": []}


def _fetched_offsets(version: int, found: Mapping[str, Any], error: Error | Refusal, code: int) -> dict[str, Any]:
    """``found``: the answer, or its part about a group."""
    empty = {"errorCode": code, "committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
    if error in OF_PARTITIONS or version < GROUP_ERRORS_SINCE:
        return {**found, "topics": _each(found["topics"], empty)}
    return {**found, "topics": [], "errorCode": code}
