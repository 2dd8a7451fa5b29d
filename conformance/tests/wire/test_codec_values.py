"""Which values the compiled codec takes and refuses, and what hostile input costs in memory."""

import json
import tracemalloc
from collections import OrderedDict
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

from kipcheck.conformance.tests.support.layouts import (
    FUTURE,
    HEARTBEAT_4,
    JOIN_0,
    JOIN_4,
    JOIN_5,
    JOIN_9,
    STREAMS_10,
    SUBSCRIPTION_3,
    VERSIONS_0,
    VERSIONS_3,
    refusal,
    spaced,
)
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.primitives import (
    MANY,
)
from kipcheck.conformance.wire.schema import Absent, Layout, Slot

# What may be written


@pytest.mark.parametrize(
    ("found", "value", "kind", "path"),
    [
        (JOIN_5, {"groupID": "g"}, "unknown-field", "groupID"),
        (JOIN_5, {"protocols": [{"name": "p", "metadata": b"", "x": 1}]}, "unknown-field", "protocols[0].x"),
        (JOIN_5, {"groupId": None}, "null", "groupId"),
        (JOIN_5, {"groupId": b"g"}, "type", "groupId"),
        (JOIN_5, {"groupId": 1}, "type", "groupId"),
        (JOIN_5, {"groupId": "x" * 32768}, "length", "groupId"),
        (JOIN_9, {"groupId": "é" * 16384}, "length", "groupId"),
        (JOIN_5, {"groupInstanceId": "x" * 32768}, "length", "groupInstanceId"),
        (JOIN_5, {"groupId": "\ud800"}, "text", "groupId"),
        (JOIN_5, {"sessionTimeoutMs": True}, "type", "sessionTimeoutMs"),
        (JOIN_5, {"sessionTimeoutMs": 1.0}, "type", "sessionTimeoutMs"),
        (JOIN_5, {"sessionTimeoutMs": "1"}, "type", "sessionTimeoutMs"),
        (JOIN_5, {"sessionTimeoutMs": 2**31}, "range", "sessionTimeoutMs"),
        (JOIN_5, {"sessionTimeoutMs": 10**5000}, "range", "sessionTimeoutMs"),
        (JOIN_5, {"protocols": None}, "null", "protocols"),
        (JOIN_5, {"protocols": {}}, "type", "protocols"),
        (JOIN_5, {"protocols": "ab"}, "type", "protocols"),
        (JOIN_5, {"protocols": [None]}, "null", "protocols[0]"),
        (JOIN_5, {"protocols": [["p", b""]]}, "type", "protocols[0]"),
        (JOIN_5, {"protocols": [{}, {"metadata": "00"}]}, "type", "protocols[1].metadata"),
        (JOIN_5, {"protocols": [{}, {"metadata": [0]}]}, "type", "protocols[1].metadata"),
        (SUBSCRIPTION_3, {"topics": "abc"}, "type", "topics"),
        (SUBSCRIPTION_3, {"topics": ["a", None]}, "null", "topics[1]"),
        (SUBSCRIPTION_3, {"ownedPartitions": [{"topic": "t", "partitions": [0, True]}]}, "type",
         "ownedPartitions[0].partitions[1]"),
        (SUBSCRIPTION_3, {"ownedPartitions": [{"topic": "t", "partitions": b"ab"}]}, "type",
         "ownedPartitions[0].partitions"),
        (layout("apache", "ConsumerGroupDescribeRequest", 0), {"includeAuthorizedOperations": 1}, "type",
         "includeAuthorizedOperations"),
        (layout("apache", "ConsumerGroupHeartbeatRequest", 0), {"topicPartitions": [{"topicId": "0" * 32}]}, "type",
         "topicPartitions[0].topicId"),
        (layout("apache", "StreamsGroupHeartbeatRequest", 0), {"userEndpoint": {"host": "h", "port": 65536}}, "range",
         "userEndpoint.port"),
        (layout("apache", "StreamsGroupHeartbeatRequest", 0), {"userEndpoint": {"port": -1}}, "range",
         "userEndpoint.port"),
        (STREAMS_10, {"version": 9}, "version", "version"),
        (STREAMS_10, {"version": True}, "version", "version"),
        (STREAMS_10, {"topics": [{"index": 0, "topic": "x" * 65536}]}, "length", "topics[0].topic"),
        (STREAMS_10, {"activeTasks": [{"namedTopology": "\udc00"}]}, "text", "activeTasks[0].namedTopology"),
        (JOIN_5, {"_unknownTaggedFields": [{"tag": 1, "data": b""}]}, "absent-field", "_unknownTaggedFields"),
        (JOIN_9, {"_unknownTaggedFields": {}}, "type", "_unknownTaggedFields"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 1}]}, "type", "_unknownTaggedFields[0]"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": True, "data": b""}]}, "type", "_unknownTaggedFields[0].tag"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 2**31, "data": b""}]}, "range", "_unknownTaggedFields[0].tag"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 1, "data": "00"}]}, "type", "_unknownTaggedFields[0].data"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 2, "data": b""}, {"tag": 1, "data": b""}]}, "tag",
         "_unknownTaggedFields[1].tag"),
        (VERSIONS_3, {"_unknownTaggedFields": [{"tag": 2, "data": b""}]}, "tag", "_unknownTaggedFields[0].tag"),
        (VERSIONS_3, {"supportedFeatures": None}, "null", "supportedFeatures"),
        (VERSIONS_3, {"supportedFeatures": ()}, "", ""),
        (VERSIONS_3, {"supportedFeatures": 0}, "type", "supportedFeatures"),
        (VERSIONS_3, {"zkMigrationReady": 0}, "type", "zkMigrationReady"),
    ],
)  # fmt: skip
def test_values_that_no_writer_takes(found: Layout, value: dict[str, Any], kind: str, path: str) -> None:
    if not kind:
        assert found.encode(value) == found.encode({})
        return
    refused = refusal(found.encode, value)
    assert (refused.kind, refused.path, refused.offset) == (kind, path, None)


def test_what_is_no_mapping_is_no_message() -> None:
    for wrong in (None, 5, "abcdefgh", [1, 2, 3, 4, 5, 6, 7, 8], b"12345678", object()):
        assert refusal(JOIN_9.encode, wrong).kind == "type"


def test_fields_that_the_version_lacks() -> None:
    """Dropped if they are ignorable or hold their default; an error otherwise, as in the jars."""
    assert JOIN_4.encode({"groupInstanceId": None}) == JOIN_4.encode({})
    refused = refusal(JOIN_4.encode, {"groupInstanceId": "i"})
    assert (refused.kind, refused.path) == ("absent-field", "groupInstanceId")
    assert JOIN_0.encode({"rebalanceTimeoutMs": 5, "reason": "because"}) == JOIN_0.encode({})
    response_8 = layout("apache", "JoinGroupResponse", 8)
    assert response_8.encode({"skipAssignment": False}) == response_8.encode({})
    assert refusal(response_8.encode, {"skipAssignment": True}).kind == "absent-field"
    leave_0 = layout("apache", "LeaveGroupRequest", 0)
    assert leave_0.encode({"members": []}) == leave_0.encode({"members": ()}) == leave_0.encode({})
    assert refusal(leave_0.encode, {"members": [{}]}).kind == "absent-field"
    assert refusal(leave_0.encode, {"members": None}).kind == "absent-field"


def test_values_that_cannot_be_printed_are_refused_like_others() -> None:
    """Python prints no int of more than 4300 digits."""
    huge = 10**5000
    assert refusal(JOIN_4.encode, {"groupInstanceId": huge}).kind == "absent-field"
    assert refusal(STREAMS_10.encode, {"version": huge}).kind == "version"
    assert refusal(JOIN_9.encode, {huge: 1}).kind == "unknown-field"
    assert refusal(JOIN_9.encode, {"groupId": huge}).kind == "type"
    assert refusal(JOIN_9.encode, {"_unknownTaggedFields": [{"tag": huge, "data": b""}]}).kind == "range"
    assert refusal(JOIN_9.encode, {"_unknownTaggedFields": None}).kind == "type"


def test_fields_that_an_element_lacks() -> None:
    leave_3 = layout("apache", "LeaveGroupRequest", 3)
    without = leave_3.encode({"members": [{"memberId": "m"}]})
    assert leave_3.encode({"members": [{"memberId": "m", "reason": "r"}]}) == without


def test_values_of_other_types_that_mean_the_same() -> None:
    class Code(IntEnum):
        REBALANCE = 27

    class Name(str):
        pass

    plain = {"groupId": "g", "sessionTimeoutMs": 27, "protocols": [{"name": "p", "metadata": b"ab"}]}
    wanted = JOIN_9.encode(plain)
    protocol = {"name": Name("p"), "metadata": bytearray(b"ab")}
    others: list[Mapping[str, Any]] = [
        OrderedDict(reversed(plain.items())),
        MappingProxyType(plain),
        {**plain, "sessionTimeoutMs": Code.REBALANCE},
        {**plain, "protocols": (protocol,)},
        {**plain, "protocols": [MappingProxyType({**protocol, "metadata": memoryview(b"ab")})]},
        {**JOIN_9.defaults(), **plain, "_unknownTaggedFields": []},
        {**JOIN_9.defaults(), **plain, "groupId": Name("g")},
    ]
    for other in others:
        assert JOIN_9.encode(other) == wanted


def test_views_whose_items_are_no_bytes_are_counted_in_bytes() -> None:
    wide = memoryview(b"abcdefgh").cast("I")
    data = JOIN_9.encode({"protocols": [{"name": "p", "metadata": wide}]})
    assert JOIN_9.decode(data)["protocols"][0]["metadata"] == b"abcdefgh"


def test_encoding_changes_nothing_in_the_value() -> None:
    value = {"groupId": "g", "reason": "r", "protocols": [{"name": "p"}]}
    before = json.dumps(value)
    for found in (JOIN_0, JOIN_9):
        found.encode(value)
    assert json.dumps(value) == before
    first, second = JOIN_9.decode(JOIN_9.encode(value)), JOIN_9.decode(JOIN_9.encode(value))
    first["protocols"].append({})
    assert len(second["protocols"]) == 1


# Values in JSON


def test_json_forms() -> None:
    found = layout("apache", "ConsumerGroupHeartbeatRequest", 0)
    topic = UUID("00112233-4455-6677-8899-aabbccddeeff")
    value = {**found.defaults(), "topicPartitions": [{"topicId": topic, "partitions": [1]}]}
    value["_unknownTaggedFields"] = [{"tag": 7, "data": b"\0\xff"}]
    shown = found.codec.to_json(value)
    assert shown["topicPartitions"] == [{"topicId": "00112233-4455-6677-8899-aabbccddeeff", "partitions": [1]}]
    assert shown["_unknownTaggedFields"] == [{"tag": 7, "data": "00ff"}]
    assert found.codec.from_json(shown) == value
    assert found.codec.from_json({"topicPartitions": [{"topicId": str(topic).upper()}]}) == {
        "topicPartitions": [{"topicId": topic}]
    }


def test_json_of_a_value_made_by_hand() -> None:
    """Keys that are left out are shown with their default, as they are after the wire."""
    value = {"groupId": "g", "protocols": [{"name": "p", "metadata": memoryview(b"\xab")}]}
    assert JOIN_9.codec.to_json(value)["protocols"] == [{"name": "p", "metadata": "ab"}]
    assert JOIN_9.codec.to_json(value)["reason"] is None
    assert refusal(JOIN_9.codec.to_json, {"protocols": [{"metadata": "ab"}]}).path == "protocols[0].metadata"


@pytest.mark.parametrize(
    ("found", "value", "path"),
    [
        (JOIN_5, [], ""),
        (JOIN_5, {"protocols": "ab"}, "protocols"),
        (JOIN_5, {"protocols": ["ab"]}, "protocols[0]"),
        (JOIN_5, {"protocols": [None]}, "protocols[0]"),
        (JOIN_5, {"protocols": [{"name": "a", "metadata": "0"}]}, "protocols[0].metadata"),
        (JOIN_5, {"protocols": [{}, {"metadata": "00 ff"}]}, "protocols[1].metadata"),
        (JOIN_5, {"protocols": [{}, {"metadata": "0g"}]}, "protocols[1].metadata"),
        (JOIN_5, {"protocols": [{}, {"metadata": ["00"]}]}, "protocols[1].metadata"),
        (JOIN_9, {"_unknownTaggedFields": "x"}, "_unknownTaggedFields"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 1}]}, "_unknownTaggedFields[0]"),
        (JOIN_9, {"_unknownTaggedFields": [{"tag": 1, "data": "x"}]}, "_unknownTaggedFields[0].data"),
        (layout("apache", "ConsumerGroupHeartbeatRequest", 0), {"topicPartitions": [{"topicId": "0" * 32}]},
         "topicPartitions[0].topicId"),
        (layout("apache", "ConsumerGroupHeartbeatRequest", 0), {"topicPartitions": [{"topicId": 5}]},
         "topicPartitions[0].topicId"),
    ],
)  # fmt: skip
def test_json_that_has_no_value(found: Layout, value: Any, path: str) -> None:
    refused = refusal(found.codec.from_json, value)
    assert (refused.kind, refused.path) == ("type", path)


def test_json_leaves_to_the_encoder_what_only_it_can_judge() -> None:
    odd = {"groupId": 5, "surplus": [1], "protocols": [{"metadata": None}]}
    assert JOIN_5.codec.from_json(odd) == odd
    assert refusal(JOIN_5.encode, JOIN_5.codec.from_json({"surplus": 1})).kind == "unknown-field"


# Tagged fields


def test_tagged_fields_at_their_default_are_not_written_and_may_be_read() -> None:
    assert VERSIONS_3.encode({"supportedFeatures": [], "finalizedFeaturesEpoch": -1}) == VERSIONS_3.encode({})
    explicit = spaced("0000 01 00000000 03 00 01 01 01 08 ffffffffffffffff 03 01 00")
    assert VERSIONS_3.decode(explicit) == VERSIONS_3.defaults()


def test_known_and_unknown_tags_are_merged() -> None:
    tags = [{"tag": tag, "data": b"x"} for tag in (4, 200, 2**31 - 1)]
    data = VERSIONS_3.encode({"zkMigrationReady": True, "_unknownTaggedFields": tags})
    assert data == spaced("0000 01 00000000 04 03 01 01 04 01 78 c801 01 78 ffffffff07 01 78")
    assert VERSIONS_3.decode(data)["_unknownTaggedFields"] == tags


def of_tag(slot: Slot) -> Layout:
    return Layout("Made", 0, True, (slot,))


POINT = Layout("Point", 0, True, (Slot("x", "int32", default=7), Slot("y", "string", compact=True, default="")))


@pytest.mark.parametrize(
    ("slot", "value", "data"),
    [
        (Slot("f", "string", compact=True, tag=0, nullable=True, default=""), None, "01 00 01 00"),
        (Slot("f", "string", compact=True, tag=0, nullable=True, default=""), "", "00"),
        (Slot("f", "string", compact=True, tag=0, nullable=True, default=None), "", "01 00 01 01"),
        (Slot("f", "string", compact=True, tag=5, nullable=True, default=None), None, "00"),
        (Slot("f", "string", compact=True, tag=0, default="a"), "a", "00"),
        (Slot("f", "string", compact=True, tag=0, default="a"), "", "01 00 01 01"),
        (Slot("f", "int32", array=True, compact=True, tag=0, nullable=True, default=()), None, "01 00 01 00"),
        (Slot("f", "int32", array=True, compact=True, tag=0, nullable=True, default=None), [], "01 00 01 01"),
        (Slot("f", "int64", tag=0, default=-1), 0, "01 00 08 0000000000000000"),
        (Slot("f", "float64", tag=0, default=0.0), 1.5, "01 00 08 3ff8000000000000"),
        (Slot("f", "uuid", tag=0, default=UUID(int=0)), UUID(int=1), "01 00 10 00000000000000000000000000000001"),
        (Slot("f", "uuid", tag=0, default=UUID(int=0)), UUID(int=0), "00"),
        (Slot("f", "bytes", compact=True, tag=1, default=b""), b"ab", "01 01 03 036162"),
        (Slot("f", "Point", POINT, tag=0, default=...), {"x": 7, "y": ""}, "00"),
        (Slot("f", "Point", POINT, tag=0, default=...), {"x": 8, "y": ""}, "01 00 06 00000008 01 00"),
        (Slot("f", "Point", POINT, tag=0, nullable=True, default=None), None, "00"),
        (Slot("f", "Point", POINT, tag=0, nullable=True, default=None), {"x": 7, "y": ""},
         "01 00 07 01 00000007 01 00"),
        (Slot("f", "Point", POINT, tag=0, nullable=True, default=...), None, "01 00 01 00"),
        (Slot("f", "Point", POINT, nullable=True, default=None), None, "ff 00"),
        (Slot("f", "Point", POINT, nullable=True, default=None), {"x": 7, "y": "a"}, "01 00000007 0261 00 00"),
        (Slot("f", "bool", array=True, compact=True, default=()), [True, False], "03 01 00 00"),
        (Slot("f", "uuid", array=True, compact=True, default=()), [UUID(int=2)], "02" + "00" * 15 + "02 00"),
        (Slot("f", "float64", array=True, compact=True, default=()), [0.5], "02 3fe0000000000000 00"),
        (Slot("f", "records", compact=True, nullable=True, default=None), b"r", "0272 00"),
        (Slot("f", "bytes", nullable=True, default=None), None, "ffffffff 00"),
    ],
)  # fmt: skip
def test_forms_that_few_or_no_messages_use(slot: Slot, value: Any, data: str) -> None:
    found = of_tag(slot)
    assert found.encode({"f": value}).hex() == spaced(data).hex()
    assert found.decode(spaced(data)) == {"f": value}
    assert found.decode(spaced(data), lenient=True) == {"f": value}
    assert found.codec.from_json(found.codec.to_json({"f": value})) == {"f": value}


def test_a_presence_that_no_writer_writes() -> None:
    inside = of_tag(Slot("f", "Point", POINT, tag=0, nullable=True, default=None))
    assert refusal(inside.decode, spaced("01 00 07 02 00000007 01 00")).kind == "presence"
    outside = of_tag(Slot("f", "Point", POINT, nullable=True, default=None))
    for byte in ("00", "02", "fe", "80"):
        assert refusal(outside.decode, spaced(f"{byte} 00000007 01 00 00")).kind == "presence"


def test_flags_in_rows() -> None:
    """A table whose rows hold booleans and uuids: read at once, and each flag looked at."""
    row = Layout("Row", 0, True, (Slot("a", "bool"), Slot("b", "uuid"), Slot("c", "bool")))
    found = of_tag(Slot("rows", "Row", row, array=True, compact=True, default=()))
    rows = [{"a": bool(at % 2), "b": UUID(int=at), "c": bool(at % 3)} for at in range(5)]
    data = found.encode({"rows": rows})
    assert found.decode(data) == {"rows": rows}
    for at in range(1, len(data) - 1):
        wrong = bytearray(data)
        wrong[at] = 2
        place = (at - 1) % 19
        if place in (0, 17):
            assert refusal(found.decode, bytes(wrong)).kind == "boolean"
            assert found.decode(bytes(wrong), lenient=True)["rows"][(at - 1) // 19]["a" if place == 0 else "c"] is True


def test_the_way_past_the_newest_version() -> None:
    value = {"version": 12, "latestSupportedVersion": 15, "_rest": b"\1\2"}
    assert FUTURE.encode(value) == spaced("0000000c 0000000f 0102")
    assert FUTURE.decode(spaced("0000000c 0000000f 0102")) == value
    assert FUTURE.codec.to_json(value) == {**value, "_rest": "0102"}


def test_an_absent_field_of_any_kind_may_hold_its_default() -> None:
    defaults: list[tuple[Any, Any]] = [
        (0, 0), (False, False), ("", ""), (b"", b""), (None, None), ((), []), (..., {}), (UUID(int=0), UUID(int=0)),
    ]  # fmt: skip
    for default, value in defaults:
        found = Layout("Made", 0, False, (Slot("a", "int8", default=0),), (Absent("f", default, False),))
        assert found.encode({"a": 1, "f": value}) == b"\1"
        other = "x" if default == "" else None if default is not None else 1
        assert refusal(found.encode, {"a": 1, "f": other}).kind == "absent-field"


# What hostile input costs


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("found", "data"),
    [
        (JOIN_0, "0000 00000000 0000 0000 7fffffff"),
        (JOIN_0, "0000 00000000 0000 0000 00000001 0000 7fffffff"),
        (JOIN_9, "01 00000000 00000000 01 00 01 ffffffff07"),
        (JOIN_9, "01 00000000 00000000 01 00 01 02 01 ffffffff07"),
        (JOIN_9, "ffffffff07"),
        (VERSIONS_0, "0000 7fffffff"),
        (VERSIONS_3, "0000 ffffffff07 00000000"),
        (VERSIONS_3, "0000 01 00000000 01 00 05 ffffffff07"),
        (HEARTBEAT_4, "01 00000000 01 00 ffffffff07"),
        (HEARTBEAT_4, "01 00000000 01 00 01 07 ffffffff07"),
        (SUBSCRIPTION_3, "0003 00000000 ffffffff 00000001 0000 7fffffff"),
        (layout("apache", "AssignmentInfo", 10), "0000000a 00000000 00000001 00000000 00000000 7fffffff"),
        (HEARTBEAT_4, "ff" * 100_000),
    ],
)
def test_no_length_makes_the_decoder_allocate(found: Layout, data: str, lenient: bool) -> None:
    raw = spaced(data)
    refusal(lambda: found.decode(raw, lenient=lenient))  # compiled and imported before it is measured
    tracemalloc.start()
    try:
        refusal(lambda: found.decode(raw, lenient=lenient))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000 + 12 * len(raw)


def test_memory_is_a_small_multiple_of_long_input() -> None:
    count = 20_000
    long: list[tuple[Layout, dict[str, Any]]] = [
        (SUBSCRIPTION_3, {"ownedPartitions": [{"topic": "t", "partitions": list(range(1000, 1000 + count))}]}),
        (VERSIONS_0, {"apiKeys": [{"apiKey": 1000, "minVersion": 2000, "maxVersion": 3000}] * count}),
        (JOIN_9, {"protocols": [{"name": "p", "metadata": b"x" * count * 10}]}),
    ]
    for found, value in long:
        data = found.encode(value)
        tracemalloc.start()
        try:
            assert found.decode(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 80 * len(data), found


def test_nothing_grows_with_what_was_seen() -> None:
    """Tables are filled on demand, and for short arrays only."""
    for count in (3, 50, MANY - 1, MANY, 5000, 20_000):
        data = SUBSCRIPTION_3.encode({"ownedPartitions": [{"topic": "t", "partitions": [7] * count}]})
        SUBSCRIPTION_3.decode(data)
    codec = SUBSCRIPTION_3.codec
    functions: list[Any] = [codec.encode, codec.decode]
    result = [each for function in functions for each in function.__globals__.values()]
    sizes = [max(each) for each in result if type(each).__name__ == "Table" and each]
    assert sizes and max(sizes) < MANY
