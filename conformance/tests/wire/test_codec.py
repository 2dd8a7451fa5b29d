"""The compiled codec: what it writes, what it reads, what it refuses, and what that costs in memory."""

import json
import random
import tracemalloc
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

from kipcheck.conformance.core.edition import EDITIONS
from kipcheck.conformance.tests.support.draws import damaged, value as drawn
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.codec import Codec, compile_codec
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.primitives import (
    MANY,
    Rough,
    modified_utf8,
    read_modified_utf8,
    read_uvarint,
    uuid_of,
    uvarint,
)
from kipcheck.conformance.wire.schema import Absent, Layout, Slot, messages, spec

JOIN_0, JOIN_4, JOIN_5, JOIN_9 = (layout("apache", "JoinGroupRequest", version) for version in (0, 4, 5, 9))
VERSIONS_0, VERSIONS_3 = (layout("apache", "ApiVersionsResponse", version) for version in (0, 3))
SUBSCRIPTION_3 = layout("apache", "ConsumerProtocolSubscription", 3)
HEARTBEAT_4 = layout("apache", "HeartbeatRequest", 4)
STREAMS_10 = layout("apache", "AssignmentInfo", 10)

ALL = [each for edition in EDITIONS.values() for message in messages(edition) for each in spec(edition, message)]
FUTURE = spec(EDITIONS["apache"], "SubscriptionInfo").at(12)


def refusal(work: Any, *arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        work(*arguments)
    return caught.value


def spaced(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


# Bytes worked out by hand, or seen from released code


@pytest.mark.parametrize(
    ("message", "version", "value", "data"),
    [
        (
            "ConsumerProtocolSubscription",
            1,
            {
                "topics": ["foo", "bar"],
                "ownedPartitions": [{"topic": "bar", "partitions": [2]}, {"topic": "foo", "partitions": [1]}],
            },
            "0001 00000002 0003666f6f 0003626172 ffffffff 00000002"
            + "0003626172 00000001 00000002 0003666f6f 00000001 00000001",
        ),
        (
            "ConsumerProtocolSubscription",
            3,
            {
                "topics": ["bar", "foo"],
                "ownedPartitions": [{"topic": "bar", "partitions": [2]}, {"topic": "foo", "partitions": [1]}],
            },
            "0003 00000002 0003626172 0003666f6f ffffffff 00000002"
            + "0003626172 00000001 00000002 0003666f6f 00000001 00000001 ffffffff ffff",
        ),
        (
            "ConsumerProtocolAssignment",
            3,
            {"assignedPartitions": [{"topic": "foo", "partitions": [1, 0]}, {"topic": "bar", "partitions": [2]}]},
            "0003 00000002 0003666f6f 00000002 00000001 00000000 0003626172 00000001 00000002 ffffffff",
        ),
        (
            "StickyAssignorUserData",
            1,
            {"previousAssignment": [{"topic": "t", "partitions": [0, 2]}], "generation": 7},
            "00000001 000174 00000002 00000000 00000002 00000007",
        ),
        ("CooperativeStickyAssignorUserData", 0, {"generation": 7}, "00000007"),
        (
            "RequestHeader",
            1,
            {"requestApiKey": 11, "requestApiVersion": 6, "correlationId": 7, "clientId": "cl"},
            "000b 0006 00000007 0002636c",
        ),
        (
            "RequestHeader",
            2,
            {"requestApiKey": 11, "requestApiVersion": 6, "correlationId": 7, "clientId": "cl"},
            "000b 0006 00000007 0002636c 00",
        ),
        ("ApiVersionsResponse", 3, {}, "0000 01 00000000 00"),
        ("ApiVersionsResponse", 3, {"finalizedFeaturesEpoch": 0}, "0000 01 00000000 01 01 08 0000000000000000"),
        (
            "ApiVersionsResponse",
            3,
            {
                "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}],
                "supportedFeatures": [{"name": "f", "minVersion": 1, "maxVersion": 2}],
                "_unknownTaggedFields": [{"tag": 9, "data": b"\xaa"}],
            },
            "0000 02 0012 0000 0003 00 00000000 02 00 08 02 0266 0001 0002 00 09 01 aa",
        ),
        (
            "JoinGroupRequest",
            9,
            {"groupId": "g", "protocols": [{"name": "p", "metadata": b"\1"}], "reason": "r"},
            "0267 00000000 ffffffff 01 00 01 02 0270 0201 00 0272 00",
        ),
        (
            "HeartbeatRequest",
            4,
            {"groupId": "g", "generationId": 1, "memberId": "m", "_unknownTaggedFields": [{"tag": 7, "data": b""}]},
            "0267 00000001 026d 00 01 07 00",
        ),
        ("ConsumerGroupDescribeRequest", 0, {"groupIds": ["a"], "includeAuthorizedOperations": True}, "02 0261 01 00"),
        (
            "AssignmentInfo",
            10,
            {"activeTasks": [{"topicGroupId": 4, "partition": 0, "namedTopology": "topö"}]},
            "0000000a ffffffff 00000001 00000004 00000000 00000004 0074006f007000f6"
            + "00000000 00000000 00000000 00000000 00000000 7fffffffffffffff",
        ),
        (
            "AssignmentInfo",
            2,
            {"partitionsByHost": [{"host": "h\0", "port": 9, "partitions": [{"topic": "𝄞", "partition": 1}]}]},
            "00000002 00000000 00000000 00000001 000368c080 00000009 00000001 0006eda0b4edb49e 00000001",
        ),
    ],
)
def test_vectors(message: str, version: int, value: dict[str, Any], data: str) -> None:
    found = layout("apache", message, version)
    assert found.encode(value).hex() == spaced(data).hex()
    assert found.decode(spaced(data)) == {**found.defaults(), **value}


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (8192, "8040"),
        (2**31 - 1, "ffffffff07"),
        (2**31, "8080808008"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_unsigned_varints(number: int, data: str) -> None:
    assert uvarint(number).hex() == data
    assert read_uvarint(bytes.fromhex(data) + b"\x55", 0) == (number, len(data) // 2)


@pytest.mark.parametrize("data", ["8000", "828000", "ffffffff1f", "ffffffffff01", "ffffffffffff", "8080808000"])
def test_varints_that_are_too_long_or_too_large(data: str) -> None:
    with pytest.raises(Rough):
        read_uvarint(bytes.fromhex(data), 0)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", ""),
        ("a\0b", "61c08062"),
        ("é", "c3a9"),
        ("€", "e282ac"),
        ("𝄞", "eda0b4edb49e"),
        ("\0𝄞", "c080eda0b4edb49e"),
    ],
)
def test_modified_utf8(text: str, data: str) -> None:
    assert modified_utf8(text).hex() == data
    assert read_modified_utf8(bytes.fromhex(data)) == text


@pytest.mark.parametrize("data", ["00", "c1a1", "e08080", "f09d849e", "eda0b4", "c3", "e282", "80", "ff", "c341"])
def test_what_is_no_modified_utf8(data: str) -> None:
    """A bare NUL, forms too long, plain UTF-8 of four bytes, half a pair, pieces."""
    with pytest.raises(ValueError):
        read_modified_utf8(bytes.fromhex(data))


def test_uuids_made_the_quick_way_are_the_same() -> None:
    plain = UUID("00112233-4455-6677-8899-aabbccddeeff")
    quick = uuid_of(plain.bytes)
    assert quick == plain and hash(quick) == hash(plain) and repr(quick) == repr(plain)
    assert quick.is_safe is plain.is_safe


# Every message at every version


@for_each([*ALL, FUTURE])
def test_every_version_comes_back(found: Layout) -> None:
    luck = random.Random(str(found))
    for _ in range(8):
        value = drawn(found, luck)
        data = found.encode(value)
        back = found.decode(data)
        assert back == value
        assert tuple(back)[: len(found.names)] == found.names, "in the order of the declaration"
        assert found.decode(data, lenient=True) == value
        assert found.codec.from_json(json.loads(json.dumps(found.codec.to_json(value)))) == value
    assert found.decode(found.encode({})) == found.defaults(), "omitted keys take their default"


def test_every_strict_prefix_is_refused_unless_it_is_a_message_of_its_own() -> None:
    luck, tried = random.Random(1), 0
    for found in ALL:
        value = drawn(found, luck)
        data = found.encode(value)
        for size in {*range(min(len(data), 24)), *(luck.randrange(len(data)) for _ in range(8) if data)}:
            try:
                shorter = found.decode(data[:size])
            except Refused as refused:
                assert refused.offset is not None and 0 <= refused.offset <= size
                tried += 1
            else:
                assert found.encode(shorter) == data[:size], (found, data.hex(), size)
    assert tried > 3000


def test_any_bytes_give_a_value_that_writes_them_or_a_refusal() -> None:
    """Strict reading and writing are each other's inverse."""
    luck, accepted = random.Random(2), 0
    for found in ALL:
        for _ in range(6):
            data = damaged(found.encode(drawn(found, luck)), luck)
            try:
                value = found.decode(data)
            except Refused as refused:
                assert refused.message == found.message and refused.version == found.version
            else:
                accepted += 1
                again = found.encode(value)
                assert again == data or found.decode(again) == value, (found, data.hex())
    assert accepted > 50


def test_random_bytes_are_refused_with_our_own_error() -> None:
    luck = random.Random(3)
    for found in ALL:
        for lenient in (False, True):
            for data in (b"", b"\0", b"\xff" * 40, luck.randbytes(7), luck.randbytes(40)):
                with suppress(Refused):
                    found.decode(data, lenient=lenient)


@pytest.mark.parametrize(
    ("found", "data", "kind", "path", "offset"),
    [
        (JOIN_0, "0001", "length", "groupId", 0),
        (JOIN_0, "ffff", "null", "groupId", 0),
        (JOIN_0, "fffe", "length", "groupId", 0),
        (JOIN_0, "000167 000000", "truncated", "sessionTimeoutMs", 3),
        (JOIN_0, "000167 00000000 0000 0000 7fffffff", "length", "protocols", 11),
        (JOIN_0, "000167 00000000 0000 0000 ffffffff", "null", "protocols", 11),
        (JOIN_0, "000167 00000000 0000 0000 00000001 000170 00000384 00", "length", "protocols[0].metadata", 18),
        (JOIN_0, "000167 00000000 0000 0000 00000000 00", "trailing", "", 15),
        (JOIN_0, "0001ff 00000000 0000 0000 00000000", "text", "groupId", 2),
        (HEARTBEAT_4, "0267 00000001 026d 00 02 0700 0500", "tag", "", 12),
        (HEARTBEAT_4, "0267 00000001 026d 00 02 0700 0700", "tag", "", 12),
        (HEARTBEAT_4, "0267 00000001 026d 00 01 0709", "length", "_unknownTaggedFields[0]", 11),
        (HEARTBEAT_4, "0267 00000001 026d 00 8000", "varint", "", 9),
        (HEARTBEAT_4, "8200 67 00000001 026d 00 00", "varint", "groupId", 0),
        (HEARTBEAT_4, "ffffffffffff", "varint", "groupId", 0),
        (VERSIONS_3, "0000 01 00000000 01 0109 0000000000000000 00", "tag", "finalizedFeaturesEpoch", None),
        (VERSIONS_3, "0000 01 00000000 01 0301 02", "boolean", "zkMigrationReady", None),
        (layout("apache", "ConsumerGroupDescribeRequest", 0), "01 02 00", "boolean", "includeAuthorizedOperations", 1),
        (SUBSCRIPTION_3, "0002 00000000 ffffffff 00000000 00000000 ffff", "version", "", 0),
        (layout("apache", "StreamsGroupDescribeResponse", 0),
         "00000000 02 0000 00 01 01 00000000 00000000 02" + "00" * 9, "presence", "groups[0].topology", 18),
    ],
)  # fmt: skip
def test_refusals_say_what_and_where(found: Layout, data: str, kind: str, path: str, offset: int | None) -> None:
    refused = refusal(found.decode, spaced(data))
    assert (refused.kind, refused.path) == (kind, path)
    assert refused.offset is not None
    if offset is not None:
        assert refused.offset == offset
    assert str(found) in str(refused) and (path in str(refused)) and f"byte {refused.offset}" in str(refused)


def test_bytes_like_input() -> None:
    data = JOIN_9.encode({"groupId": "g", "protocols": [{"name": "p", "metadata": b"m"}]})
    for other in (bytearray(data), memoryview(data), memoryview(bytearray(b"x" + data))[1:]):
        for lenient in (False, True):
            value = JOIN_9.decode(other, lenient=lenient)  # type: ignore[arg-type]
            assert value == JOIN_9.decode(data)
            assert type(value["protocols"][0]["metadata"]) is bytes
    with pytest.raises(TypeError):
        JOIN_9.decode(5)  # type: ignore[arg-type]


# Tables of rows, read and written at once where they can be


@pytest.mark.parametrize("found", [VERSIONS_0, VERSIONS_3], ids=str)
@pytest.mark.parametrize("count", [0, 1, MANY - 1, MANY, MANY + 1, 1000])
def test_rows(found: Layout, count: int) -> None:
    rows = [{"apiKey": at % 100, "minVersion": -at, "maxVersion": at} for at in range(count)]
    data = found.encode({"apiKeys": rows})
    assert found.decode(data)["apiKeys"] == rows
    one_by_one = b"".join(
        b"".join(number.to_bytes(2, "big", signed=True) for number in row.values()) + b"\0" * found.flexible
        for row in rows
    )
    assert one_by_one in data


@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_row_with_a_tag_among_rows_without(at: int) -> None:
    rows: list[dict[str, Any]] = [{"apiKey": each, "minVersion": 0, "maxVersion": 1} for each in range(3)]
    rows[at]["_unknownTaggedFields"] = [{"tag": 0, "data": b"\0\0\0\0\0\0\0"}]
    data = VERSIONS_3.encode({"apiKeys": rows})
    assert VERSIONS_3.decode(data)["apiKeys"] == rows


@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_row_that_leaves_a_key_out(at: int) -> None:
    rows: list[dict[str, Any]] = [{"apiKey": each, "minVersion": 3, "maxVersion": 9} for each in range(3)]
    del rows[at]["minVersion"]
    for found in (VERSIONS_0, VERSIONS_3):
        assert [each["minVersion"] for each in found.decode(found.encode({"apiKeys": rows}))["apiKeys"]] == [
            0 if each == at else 3 for each in range(3)
        ]


@pytest.mark.parametrize("wrong", [True, False, 1.0, "1", None, 2**15, -(2**15) - 1, b"1"])
@pytest.mark.parametrize("count", [1, 3, MANY + 5])
def test_a_cell_that_is_no_int16(wrong: Any, count: int) -> None:
    rows: list[dict[str, Any]] = [{"apiKey": 1, "minVersion": 0, "maxVersion": 1} for _ in range(count)]
    rows[-1]["minVersion"] = wrong
    for found in (VERSIONS_0, VERSIONS_3):
        refused = refusal(found.encode, {"apiKeys": rows})
        assert refused.path == f"apiKeys[{count - 1}].minVersion"
        assert refused.kind == ("range" if type(wrong) is int else "null" if wrong is None else "type")


def test_booleans_do_not_hide_among_numbers() -> None:
    found = layout("apache", "ConsumerProtocolAssignment", 0)
    for partitions in ([True, False, True, 2**31, 2**31], [2**31, True], [True], [False, 5]):
        refused = refusal(found.encode, {"assignedPartitions": [{"topic": "t", "partitions": partitions}]})
        assert refused.path.startswith("assignedPartitions[0].partitions[")
    wide = layout("apache", "SubscriptionInfo", 7)
    sums = [{"topicGroupId": 0, "partitionToOffsetSum": [{"partition": 0, "offsetSum": 2**62}]}]
    assert wide.decode(wide.encode({"latestSupportedVersion": 7, "taskOffsetSums": sums}))["taskOffsetSums"] == sums
    sums[0]["partitionToOffsetSum"][0]["offsetSum"] = True  # type: ignore[index]
    assert refusal(wide.encode, {"taskOffsetSums": sums}).path.endswith("partitionToOffsetSum[0].offsetSum")


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
    held = [each for function in functions for each in function.__globals__.values()]
    sizes = [max(each) for each in held if type(each).__name__ == "Table" and each]
    assert sizes and max(sizes) < MANY


# The codec itself


def test_the_source_can_be_read() -> None:
    source = compile_codec(JOIN_9).source
    for line in ("def encode(value):", "def decode(d, /, *, lenient=False):", "def to_json(value):", "def from_json("):
        assert line in source
    assert "'groupId'" in source
    compile(source, "<all of it>", "exec")


def test_nothing_is_compiled_before_it_is_asked_for() -> None:
    codec = compile_codec(JOIN_9)
    assert vars(codec) == {"layout": JOIN_9}
    codec.decode(JOIN_9.encode({}))
    assert "encode" not in vars(codec) and "decode_lenient" not in vars(codec)


def test_a_refusal_that_the_second_reading_does_not_share_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two is wrong then, and silence would hide which."""
    from kipcheck.conformance.wire import constructs

    monkeypatch.setattr(constructs, "read", lambda layout, data, lenient: {})
    refused = refusal(Codec(JOIN_0).decode, b"\0\5a")
    assert refused.message == "JoinGroupRequest"
    assert refusal(Codec(JOIN_9).decode, spaced("0267 00000000 ffffffff 01 00 01 01 00 00 00")).kind == "trailing"


@pytest.mark.parametrize(
    ("message", "version", "tag", "taken"),
    [
        ("FetchRequest", 12, 1, False),
        ("FetchRequest", 12, 2, True),
        ("FetchResponse", 15, 0, False),
        ("ProduceResponse", 9, 0, False),
    ],
)
def test_a_tag_of_a_field_of_other_versions_is_refused(message: str, version: int, tag: int, taken: bool) -> None:
    at = layout("apache", message, version)
    data = at.encode({})[:-1] + bytes((1, tag, 0))
    value = {"_unknownTaggedFields": [{"tag": tag, "data": b""}]}
    for lenient in (False, True):
        if taken:
            assert at.decode(data, lenient=lenient) == {**at.defaults(), **value}
            continue
        with pytest.raises(Refused, match=f"tag {tag} belongs to a field of other versions") as refused:
            at.decode(data, lenient=lenient)
        assert (refused.value.kind, refused.value.offset) == ("tag", len(data) - 2)
    if taken:
        assert at.encode(value) == data
    else:
        with pytest.raises(Refused, match=f"tag {tag} is that of a field of other versions"):
            at.encode(value)
