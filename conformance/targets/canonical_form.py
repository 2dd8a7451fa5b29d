"""A canonical form of values, without what a class with sets and maps loses, so that two values can be compared.

The public classes of Streams and of the consumer protocol lose the order of elements, the numbers in a topic
dictionary, and the difference between an absent and an empty name.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Value = Mapping[str, Any]


def canonical(message: str, value: Value) -> dict[str, Any]:
    """``value``, as JSON, without what such a class of ``message`` loses."""
    return _CANONICAL[message](value)


def exceeds_collections(value: Value) -> bool:
    """Whether a value, as JSON, contains something that no such class can keep.

    That is: a key twice, the number of a topic that the dictionary lacks, or a name that is not text.
    """
    topics = value.get("topics")
    if topics and isinstance(topics[0], Mapping) and (_twice(topics, "index") or _twice(topics, "topic")):
        return True
    indices = {each["index"] for each in topics or () if isinstance(each, Mapping)}
    standby = value.get("standbyTasks", ())
    hosts = [each for field in ("partitionsByHost", "standbyPartitionsByHost") for each in value.get(field, ())]
    inner = [each.get("partitions", ()) for each in (*standby, *hosts)]
    return (
        any(_twice(value.get(field, ()), *TASK) for field in ("prevTasks", "standbyTasks"))
        or any(
            _twice(value.get(field, ()), "host", "port") for field in ("partitionsByHost", "standbyPartitionsByHost")
        )
        or any(_twice(some, "topic", "topicIndex", "partition") for some in inner)
        or any("topicIndex" in one and one["topicIndex"] not in indices for some in inner for one in some)
        or not _text(value.get("userEndPoint", ""))
    )


TASK: Final = ("topicGroupId", "partition", "namedTopology")


def _twice(elements: Iterable[Value], *keys: str) -> bool:
    seen = [tuple(each.get(key) for key in keys) for each in elements]
    return len(seen) != len(set(seen))


def _text(data: str) -> bool:
    try:
        bytes.fromhex(data).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _subscription_info(value: Value) -> dict[str, Any]:
    out = dict(value)
    for field in ("prevTasks", "standbyTasks", "clientTags"):
        if field in out:
            out[field] = _set(out[field])
    if "taskOffsetSums" in out:
        out["taskOffsetSums"] = _set(_sums(out["taskOffsetSums"]))
    return out


def _sums(sums: Iterable[Value]) -> list[dict[str, Any]]:
    """One row per task, in versions that group tasks too."""
    rows: list[dict[str, Any]] = []
    for each in sums:
        if "partitionToOffsetSum" in each:
            rows += [{"topicGroupId": each["topicGroupId"], **one} for one in each["partitionToOffsetSum"]]
        else:
            rows.append({**each, "namedTopology": each["namedTopology"] or None})
    return rows


def _assignment_info(value: Value) -> dict[str, Any]:
    out = dict(value)
    # The dictionary may have unused entries; a release reads from it only the topics of the hosts.
    topics = {each["index"]: each["topic"] for each in out.pop("topics", ())}
    out["standbyTasks"] = _set({**each, "partitions": _set(each["partitions"])} for each in value["standbyTasks"])
    for field in ("partitionsByHost", "standbyPartitionsByHost"):
        if field in out:
            out[field] = _set(
                {**each, "partitions": _set(_with_topic_names(each["partitions"], topics))} for each in out[field]
            )
    return out


def _with_topic_names(partitions: Iterable[Value], topics: Mapping[int, str]) -> list[dict[str, Any]]:
    return [
        {"topic": topics[each["topicIndex"]], "partition": each["partition"]} if "topicIndex" in each else dict(each)
        for each in partitions
    ]


def _consumer_subscription(value: Value) -> dict[str, Any]:
    out = dict(value)
    out["topics"] = sorted(value["topics"])
    if "ownedPartitions" in out:
        out["ownedPartitions"] = _flat(value["ownedPartitions"])
    if (out.get("generationId") or 0) < 0:
        out["generationId"] = None
    if out.get("rackId") == "":
        out["rackId"] = None
    return out


def _consumer_assignment(value: Value) -> dict[str, Any]:
    return {**value, "assignedPartitions": _flat(value["assignedPartitions"])}


def _sticky(value: Value) -> dict[str, Any]:
    return {**value, "previousAssignment": _flat(value["previousAssignment"])}


def _flat(topics: Iterable[Value]) -> list[tuple[str, int]]:
    return sorted((each["topic"], partition) for each in topics for partition in each["partitions"])


def _set(elements: Iterable[Any]) -> list[str]:
    return sorted({json.dumps(each, sort_keys=True) for each in elements})


_CANONICAL: Final[Mapping[str, Callable[[Value], dict[str, Any]]]] = {
    "SubscriptionInfo": _subscription_info,
    "AssignmentInfo": _assignment_info,
    "ConsumerProtocolSubscription": _consumer_subscription,
    "ConsumerProtocolAssignment": _consumer_assignment,
    "StickyAssignorUserData": _sticky,
    "CooperativeStickyAssignorUserData": dict,
}
