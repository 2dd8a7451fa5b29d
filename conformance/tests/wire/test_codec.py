"""The compiled codec: what it writes and reads, and how it is compiled."""

import gc
import json
import random
from contextlib import suppress
from types import FrameType
from typing import Any
from uuid import UUID

import pytest

from kipcheck.conformance.tests.support.draws import damaged, value as drawn
from kipcheck.conformance.tests.support.layouts import (
    ALL,
    FUTURE,
    HEARTBEAT_4,
    JOIN_0,
    JOIN_9,
    SUBSCRIPTION_3,
    VERSIONS_0,
    VERSIONS_3,
    refusal,
    spaced,
)
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
from kipcheck.conformance.wire.schema import Layout

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
    rng = random.Random(str(found))
    for _ in range(8):
        value = drawn(found, rng)
        data = found.encode(value)
        back = found.decode(data)
        assert back == value
        assert tuple(back)[: len(found.names)] == found.names, "in the order of the declaration"
        assert found.decode(data, lenient=True) == value
        assert found.codec.from_json(json.loads(json.dumps(found.codec.to_json(value)))) == value
    assert found.decode(found.encode({})) == found.defaults(), "omitted keys take their default"


def test_every_strict_prefix_is_refused_unless_it_is_a_message_of_its_own() -> None:
    rng, tried = random.Random(1), 0
    for found in ALL:
        value = drawn(found, rng)
        data = found.encode(value)
        for size in {*range(min(len(data), 24)), *(rng.randrange(len(data)) for _ in range(8) if data)}:
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
    rng, accepted = random.Random(2), 0
    for found in ALL:
        for _ in range(6):
            data = damaged(found.encode(drawn(found, rng)), rng)
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
    rng = random.Random(3)
    for found in ALL:
        for lenient in (False, True):
            for data in (b"", b"\0", b"\xff" * 40, rng.randbytes(7), rng.randbytes(40)):
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


@pytest.mark.parametrize("lenient", [False, True])
def test_a_refusal_leaves_nothing_to_the_garbage_collector(lenient: bool) -> None:
    """A frame in its own traceback kept the bytes: gigabytes of them where no collection runs."""
    gc.collect()
    gc.disable()
    try:
        before = decoding_frames()  # those of failures that other tests keep
        with suppress(Refused):
            SUBSCRIPTION_3.decode(bytes(100), lenient=lenient)
        kept = [each for each in decoding_frames() if each not in before]
    finally:
        gc.enable()
    assert not kept


def decoding_frames() -> list[FrameType]:
    return [each for each in gc.get_objects() if isinstance(each, FrameType) and each.f_code.co_name == "decode"]
