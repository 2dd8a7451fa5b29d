"""The values of golden vectors: defaults, small and typical values, bounds of every type, nulls, tags."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final
from uuid import UUID

from kipcheck.conformance.wire.schema import INTEGERS, Layout, Slot

Value = dict[str, Any]

UNKNOWN_TAGS: Final = "_unknownTaggedFields"
SMALL: Final = "small"
"""The note of the value whose bytes are damaged: short values, nothing null, nothing empty."""
LONG: Final = "grüße ↯ \U0001f600 " * 9
"""More than 127 bytes, with characters of one to four bytes."""
LAST_TAG: Final = (1 << 31) - 2
"""The greatest tag that Kafka writes."""

SUBSCRIPTION = bytes.fromhex("0001000000020003666f6f0003626172ffffffff0000000100036261720000000100000002")
ASSIGNMENT = bytes.fromhex("00010000000100036261720000000100000002ffffffff")
MEMBER: Final = "consumer-1-0c9f2f1f-5b0d-4d5b-8d5e-7a529e0c8a11"

TYPICAL: Final[Mapping[str, Value]] = {
    "JoinGroupRequest": {
        "groupId": "orders", "sessionTimeoutMs": 45000, "rebalanceTimeoutMs": 300000, "memberId": MEMBER,
        "groupInstanceId": "static-1", "protocolType": "consumer", "reason": "rebalance enforced by user",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}, {"name": "cooperative-sticky", "metadata": b""}],
    },
    "JoinGroupResponse": {
        "throttleTimeMs": 100, "errorCode": 0, "generationId": 7, "protocolType": "consumer", "protocolName": "range",
        "leader": MEMBER, "skipAssignment": True, "memberId": MEMBER,
        "members": [
            {"memberId": MEMBER, "groupInstanceId": None, "metadata": SUBSCRIPTION},
            {"memberId": "m2", "groupInstanceId": "static-2", "metadata": b""},
        ],
    },
    "ApiVersionsRequest": {
        "clientSoftwareName": "kipcheck", "clientSoftwareVersion": "0.1.0", "clusterId": "lkc-1", "nodeId": 3,
    },
    "ApiVersionsResponse": {
        "errorCode": 35, "throttleTimeMs": 12,
        "apiKeys": [
            {"apiKey": 18, "minVersion": 0, "maxVersion": 4}, {"apiKey": 11, "minVersion": 2, "maxVersion": 9},
        ],
        "supportedFeatures": [{"name": "metadata.version", "minVersion": 1, "maxVersion": 27}],
        "finalizedFeaturesEpoch": 1 << 40,
        "finalizedFeatures": [{"name": "metadata.version", "maxVersionLevel": 25, "minVersionLevel": 25}],
        "zkMigrationReady": True,
    },
    "ConsumerProtocolSubscription": {
        "topics": ["orders", "payments"], "userData": bytes.fromhex("00000007"), "generationId": 7, "rackId": "eu-1a",
        "ownedPartitions": [{"topic": "orders", "partitions": [0, 2]}, {"topic": "payments", "partitions": [1]}],
    },
    "ConsumerProtocolAssignment": {
        "assignedPartitions": [{"topic": "orders", "partitions": [0, 2]}, {"topic": "payments", "partitions": [1]}],
        "userData": b"\x00\x01",
    },
    "SubscriptionInfo": {
        "latestSupportedVersion": 11, "processId": UUID("0c9f2f1f-5b0d-4d5b-8d5e-7a529e0c8a11"),
        "prevTasks": [{"topicGroupId": 0, "partition": 0}, {"topicGroupId": 1, "partition": 3}],
        "standbyTasks": [{"topicGroupId": 0, "partition": 1}], "userEndPoint": b"localhost:8080",
        "taskOffsetSums": [
            {
                "topicGroupId": 0, "partition": 0, "offsetSum": -2, "namedTopology": None,
                "partitionToOffsetSum": [{"partition": 0, "offsetSum": -2}, {"partition": 1, "offsetSum": 1234567}],
            },
            {
                "topicGroupId": 1, "partition": 3, "offsetSum": -3, "namedTopology": "topology-1",
                "partitionToOffsetSum": [{"partition": 3, "offsetSum": -3}],
            },
        ],
        "uniqueField": 1, "errorCode": 4, "clientTags": [{"key": b"zone", "value": b"eu-1a"}],
    },
    "AssignmentInfo": {
        "commonlySupportedVersion": 11,
        "activeTasks": [
            {"topicGroupId": 0, "partition": 0, "namedTopology": ""},
            {"topicGroupId": 0, "partition": 0, "namedTopology": ""},
            {"topicGroupId": 1, "partition": 3, "namedTopology": "topology-1"},
        ],
        "standbyTasks": [
            {
                "topicGroupId": 0, "partition": 1, "namedTopology": "",
                "partitions": [{"topic": "orders", "partition": 1}, {"topic": "payments", "partition": 1}],
            }
        ],
        "topics": [{"index": 0, "topic": "orders"}, {"index": 1, "topic": "payments"}],
        "partitionsByHost": [
            {
                "host": "localhost", "port": 8080,
                "partitions": [
                    {"topic": "orders", "topicIndex": 0, "partition": 0},
                    {"topic": "payments", "topicIndex": 1, "partition": 0},
                ],
            }
        ],
        "standbyPartitionsByHost": [
            {"host": "other.example", "port": 9090, "partitions": [{"topicIndex": 0, "partition": 1}]},
        ],
        "errCode": 1, "nextRebalanceMs": 1_700_000_000_000,
    },
}  # fmt: skip
"""Values with the fields of every version; ``fitting`` selects those of a version."""


def samples(layout: Layout) -> Iterator[tuple[str, Value]]:
    """Notes and values for any message."""
    typical = fitting(layout, TYPICAL[layout.message]) if layout.message in TYPICAL else ordinary(layout)
    yield "defaults", sound(layout, layout.defaults())
    yield SMALL, small(layout)
    yield "typical", typical
    yield "lowest", sound(layout, filled(layout, _lowest))
    yield "highest", sound(layout, filled(layout, _highest))
    if _nullable(layout):
        yield "nulls", sound(layout, filled(layout, _null))
    if layout.flexible:
        yield "unknown tags", tagged(layout, typical, top=True)


def small(layout: Layout) -> Value:
    return sound(layout, filled(layout, _small), "ab:1")


def ordinary(layout: Layout) -> Value:
    """All fields have different values, so that none can be confused; two elements in every array."""
    numbers = count(1)

    def one(slot: Slot) -> Any:
        n = next(numbers)
        if slot.type in INTEGERS:
            return n % 100
        if slot.type == "uuid":
            return UUID(int=(n << 64) + n)
        some = bytes((n % 256, 0))
        by_type = {"bool": True, "bytes": some, "records": some, "rest": some, "float64": n + 0.5}
        return by_type.get(slot.type, f"{slot.name}-{n}")

    def whole(at: Layout) -> Value:
        out = at.defaults()
        for slot in at.slots:
            make = (lambda item=slot.item: whole(item)) if slot.item else (lambda slot=slot: one(slot))
            out[slot.name] = [make(), make()] if slot.array else make()
        return out

    return sound(layout, whole(layout))


def fitting(layout: Layout, value: Mapping[str, Any]) -> Value:
    """Only the fields of the layout, with the default for those that ``value`` lacks."""
    out = layout.defaults()
    for slot in layout.slots:
        if slot.name in value:
            out[slot.name] = _each(slot, value[slot.name], lambda item, one: fitting(item, one))
    return out


def tagged(layout: Layout, value: Value, top: bool = False) -> Value:
    """Adds tagged fields of a later version, at the top and in every struct below it."""
    out = {slot.name: _each(slot, value[slot.name], tagged) for slot in layout.slots}
    known = max(layout.declared_tags, default=-1)
    tags = [{"tag": known + 1, "data": b""}]
    if top:
        tags += [{"tag": 300, "data": b"\x00\xff" * 70}, {"tag": LAST_TAG, "data": b"\x2a"}]
    return out | {UNKNOWN_TAGS: tags}


def filled(layout: Layout, choose: Callable[[Slot], Any]) -> Value:
    """Every field by ``choose``; one element in each array."""
    out = layout.defaults()
    for slot in layout.slots:
        if choose is _null and slot.nullable:
            out[slot.name] = None
        elif slot.item is not None:
            inner = filled(slot.item, choose)
            out[slot.name] = [inner] if slot.array else inner
        elif slot.array:
            # A count past 127 takes a second byte as a varint.
            out[slot.name] = [choose(slot)] * (130 if choose is _highest and slot.type in INTEGERS else 1)
        else:
            out[slot.name] = choose(slot)
    return out


def sound(layout: Layout, value: Value, end_point: str = LONG) -> Value:
    """Adjusts values of Streams: it refuses a member that supports less than its version; the end point is text in
    bytes.
    """
    if layout.message == "SubscriptionInfo":
        if "latestSupportedVersion" in value:
            value["latestSupportedVersion"] = max(value["latestSupportedVersion"], layout.version)
        if value.get("userEndPoint"):
            value["userEndPoint"] = end_point.encode()
    return value


def _each(slot: Slot, value: Any, change: Callable[[Layout, Any], Any]) -> Any:
    if slot.item is None or value is None:
        return value
    return [change(slot.item, one) for one in value] if slot.array else change(slot.item, value)


def _nullable(layout: Layout) -> bool:
    return any(slot.nullable or (slot.item is not None and _nullable(slot.item)) for slot in layout.slots)


def _lowest(slot: Slot) -> Any:
    if slot.type in INTEGERS:
        return 0 if slot.type.startswith("u") else -(1 << INTEGERS[slot.type] - 1)
    least = {"bool": False, "uuid": UUID(int=0), "bytes": b"", "records": b"", "rest": b"", "float64": -1.5}
    return least.get(slot.type, "")


def _highest(slot: Slot) -> Any:
    if slot.type in INTEGERS:
        return (1 << INTEGERS[slot.type] - (not slot.type.startswith("u"))) - 1
    # NUL and characters above U+FFFF differ between Java's modified UTF-8 and UTF-8.
    text = "a\0b" + LONG if slot.type in ("utf", "utf16") else LONG
    many = bytes(range(200))
    most: dict[str, Any] = {
        "bool": True, "uuid": UUID(int=(1 << 128) - 1), "bytes": many, "records": many, "rest": b"\xff"
    }  # fmt: skip
    return 1e300 if slot.type == "float64" else most.get(slot.type, text)


def _small(slot: Slot) -> Any:
    if slot.type in INTEGERS:
        # The only number of an assignment that another part of it refers to.
        return 0 if slot.name in ("index", "topicIndex") else 1
    two = b"\x01\x02"
    by_type = {"bool": True, "uuid": UUID(int=1), "bytes": two, "records": two, "rest": b"\x01", "float64": 1.0}
    return by_type.get(slot.type, "abcd")


def _null(slot: Slot) -> Any:
    """A short value for a field without null."""
    if slot.type in INTEGERS:
        return 1
    short = {"bool": True, "uuid": UUID(int=1), "bytes": b"\x01", "records": b"\x01", "rest": b"", "float64": 1.0}
    return short.get(slot.type, "a")
