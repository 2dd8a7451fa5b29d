"""The second reading: agrees with the codec on every bytes, and says where they go wrong."""

import random
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import construct as c
import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.tests.support.draws import damaged, spoiled, value
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.constructs import build, construct_for, read, read_first, scalars
from kipcheck.conformance.wire.errors import CLASSES, Refused
from kipcheck.conformance.wire.schema import Layout, Limits, MessageSpec, messages, spec

EDITIONS = ("apache", "apache@0.10.2.2", "apache@2.8.2", "apache@4.3.1", "kip-268", "kip-429", "kip-584")


def layouts(name: str) -> list[Layout]:
    return [each for message in messages(edition(name)) for each in spec(edition(name), message)]


def outcome(work: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The value, or that there is none. As text: -0.0 and NaN are told apart, and so is the order of keys."""
    try:
        return repr(work(*args, **options))
    except Refused:
        return "refused"


# Agreement


@pytest.mark.parametrize("name", some_by_default(EDITIONS, 2))
def test_both_readings_agree_on_values_and_on_damaged_bytes(name: str) -> None:
    seen = {"read": 0, "refused": 0}
    for each in layouts(name):
        rng = random.Random(f"{name} {each}")
        for _ in range(2):
            drawn = value(each, rng)
            data = each.encode(drawn)
            assert build(each, drawn) == data, (each, drawn)
            assert read(each, data) == each.decode(data) == drawn, (each, data.hex())
            for broken in (damaged(data, rng), damaged(data, rng), rng.randbytes(rng.randrange(40))):
                for lenient in (False, True):
                    first = outcome(each.decode, broken, lenient=lenient)
                    second = outcome(read, each, broken, lenient)
                    assert first == second, (str(each), name, lenient, broken.hex())
                    seen["refused" if first == "refused" else "read"] += 1
    assert min(seen.values()) > 20, "damage that is always or never refused compares nothing"


def test_strict_reading_builds_the_same_bytes_again() -> None:
    for each in layouts("apache"):
        data = build(each, value(each, random.Random(str(each))))
        assert build(each, read(each, data)) == data


def test_what_strict_takes_lenient_takes_alike() -> None:
    for each in layouts("apache"):
        data = build(each, value(each, random.Random(str(each))))
        assert read(each, data, lenient=True) == read(each, data)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [("int16", c.Int16sl), ("int32", c.Int32ub), ("int64", c.Int64ub), ("int8", c.Int8ub), ("float64", c.Float64l)],
)
def test_a_wrong_primitive_is_noticed(kind: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"int64": "OffsetCommitRequest", "int8": "FindCoordinatorRequest"}.get(kind, "JoinGroupRequest")
    found = layout("apache", message, 5)
    if kind == "float64":
        found = floats()
    monkeypatch.setattr(scalars, "NUMBERS", {**scalars.NUMBERS, kind: wrong})
    rng = random.Random(1)
    with pytest.raises((AssertionError, Refused)):
        for _ in range(50):
            drawn = value(found, rng)
            data = found.encode(drawn)
            assert build(found, drawn) == data
            assert read(found, data) == drawn


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("groupInstanceId", {"compact": False}),
        ("groupInstanceId", {"nullable": False}),
        ("protocols", {"compact": False}),
        ("sessionTimeoutMs", {"type": "int64"}),
        ("rebalanceTimeoutMs", {"default": 0}),
        ("memberId", {"type": "bytes"}),
        ("reason", {"tag": 0}),
    ],
)
def test_a_wrong_declaration_is_noticed(name: str, wrong: dict[str, Any]) -> None:
    right = layout("apache", "JoinGroupRequest", 9)
    other = replace(right, slots=tuple(replace(each, **wrong) if each.name == name else each for each in right.slots))
    rng = random.Random(2)
    seen = set()
    for _ in range(30):
        drawn = {key: each for key, each in value(right, rng).items() if rng.random() < 0.8}
        data = right.encode(drawn)
        seen.add(located(build, other, drawn) == data and located(read, other, data) == right.decode(data))
    assert False in seen


def floats() -> Layout:
    raw = {"type": "data", "name": "Floats", "validVersions": "0", "fields": [
        {"name": "Each", "type": "[]float64", "versions": "0+"}]}  # fmt: skip
    return MessageSpec.of(raw, edition("apache")).at(0)


# Where bytes go wrong

JOIN_0, JOIN_5, JOIN_6 = (layout("apache", "JoinGroupRequest", version) for version in (0, 5, 6))
VERSIONS_3 = layout("apache", "ApiVersionsResponse", 3)
SUBSCRIPTION_1 = layout("apache", "ConsumerProtocolSubscription", 1)
LEAVE_3 = layout("apache", "LeaveGroupRequest", 3)
METADATA_12 = layout("apache", "MetadataRequest", 12)
ASSIGNMENT_11 = layout("apache", "AssignmentInfo", 11)
STREAMS_0 = layout("apache", "StreamsGroupHeartbeatRequest", 0)
MEMBER = layout("apache", "ConsumerGroupMemberMetadataValue", 0)

NO_TASKS = "0000000b 0000000b 00000000 00000000"


@pytest.mark.parametrize(
    ("found", "data", "kind", "path", "offset"),
    [
        pytest.param(JOIN_0, "", "truncated", "groupId", 0, id="nothing at all"),
        pytest.param(JOIN_0, "0001 67 0000", "truncated", "sessionTimeoutMs", 3, id="ends inside a number"),
        pytest.param(JOIN_0, "0005 67", "length", "groupId", 0, id="string past the end"),
        pytest.param(JOIN_0, "ffff", "null", "groupId", 0, id="null string where there is none"),
        pytest.param(JOIN_5, "0000 00000001 00000001 0000 fffe", "length", "groupInstanceId", 12, id="length -2"),
        pytest.param(JOIN_0, "0002 c328", "text", "groupId", 2, id="no UTF-8"),
        pytest.param(JOIN_0, "0003 61eda0", "text", "groupId", 3, id="offset of the byte that is no UTF-8"),
        pytest.param(JOIN_0, "0000 00000000 0000 0000 7fffffff", "length", "protocols", 10, id="count past the end"),
        pytest.param(JOIN_0, "0000 00000000 0000 0000 ffffffff", "null", "protocols", 10, id="null array"),
        pytest.param(
            JOIN_0, "0000 00000000 0000 0000 00000002 000161 00000000 000162 00000384 aa", "length",
            "protocols[1].metadata", 24, id="bytes past the end, in the second element",
        ),
        pytest.param(JOIN_0, "0000 00000000 0000 0000 00000000 ff", "trailing", "", 14, id="a byte too many"),
        pytest.param(JOIN_6, "00", "null", "groupId", 0, id="compact null"),
        pytest.param(JOIN_6, "8100", "varint", "groupId", 0, id="varint longer than it needs"),
        pytest.param(JOIN_6, "ffffffff1f", "varint", "groupId", 0, id="varint past 32 bits"),
        pytest.param(JOIN_6, "ffffffffff01", "varint", "groupId", 0, id="varint past 5 bytes"),
        pytest.param(JOIN_6, "ffff", "truncated", "groupId", 0, id="ends inside a varint"),
        pytest.param(JOIN_6, "ffffffff07", "length", "groupId", 0, id="compact string past 32767"),
        pytest.param(VERSIONS_3, "0000 01 00000000 01 0105 00", "length", "finalizedFeaturesEpoch", 9, id="tag past"),
        pytest.param(VERSIONS_3, "0000 01 00000000 01 0301 02", "boolean", "zkMigrationReady", 10, id="boolean 2"),
        pytest.param(VERSIONS_3, "0000 01 00000000 01 0302 0000", "tag", "zkMigrationReady", 11, id="tag too large"),
        pytest.param(
            VERSIONS_3, "0000 01 00000000 01 0104 0000000000000000", "tag", "finalizedFeaturesEpoch", 10,
            id="tag too small",
        ),
        pytest.param(VERSIONS_3, "0000 01 00000000 02 0900 0500", "tag", "", 10, id="tags out of order"),
        pytest.param(VERSIONS_3, "0000 01 00000000 02 0900 0900", "tag", "", 10, id="a tag twice"),
        pytest.param(VERSIONS_3, "0000 01 00000000 05 0900", "length", "", 7, id="more tags than bytes"),
        pytest.param(
            VERSIONS_3, "0000 01 00000000 01 0905 00", "length", "_unknownTaggedFields[0]", 9, id="unknown tag past end"
        ),
        pytest.param(
            VERSIONS_3, "0000 02 0012 0000 0003 01 0aff", "truncated", "apiKeys[0]._unknownTaggedFields[0]", 11,
            id="ends inside the tags of an element",
        ),
        pytest.param(SUBSCRIPTION_1, "0002", "version", "", 0, id="another version leads"),
        pytest.param(ASSIGNMENT_11, "0000000a", "version", "version", 0, id="another version leads, part of the value"),
        pytest.param(ASSIGNMENT_11, "0000000b 0000000b ffffffff", "null", "activeTasks", 8, id="no null in Streams"),
        pytest.param(
            ASSIGNMENT_11, f"{NO_TASKS} 00000001 00000000 0002 c000", "text", "topics[0].topic", 26, id="modified UTF-8"
        ),
        pytest.param(
            ASSIGNMENT_11, f"{NO_TASKS} 00000001 00000000 0001 00", "text", "topics[0].topic", 26, id="a bare NUL"
        ),
        pytest.param(
            ASSIGNMENT_11, "0000000b 0000000b 00000001 00000000 00000000 00000001 d800", "text",
            "activeTasks[0].namedTopology", 24, id="half a surrogate pair",
        ),
        pytest.param(
            STREAMS_0, "0267 026d 00000001 00000000 00 00 ffffffff 02", "presence", "topology", 18, id="presence byte 2"
        ),
        pytest.param(
            MEMBER, "0000 00 00 01 01 01 00 00000000 00 01 0001 02", "presence", "classicMemberMetadata", 16,
            id="presence varint 2 in a tag",
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_what_and_where(found: Layout, data: str, kind: str, path: str, offset: int) -> None:
    with pytest.raises(Refused) as caught:
        read(found, bytes.fromhex(data))
    assert (caught.value.kind, caught.value.path, caught.value.offset) == (kind, path, offset), str(caught.value)
    with pytest.raises(Refused) as asked:
        found.decode(bytes.fromhex(data))
    assert str(asked.value) == str(caught.value), "the codec tells what the second reading found"


def test_the_refusal_of_the_design() -> None:
    data = bytes.fromhex("0267 00000000 00000000 01 00 01 03 0161 01 00 0162 8507") + bytes(288)
    with pytest.raises(
        Refused, match=r"^JoinGroupRequest v6 / protocols\[1\].name at byte 18: null where the field has none$"
    ):
        read(JOIN_6, bytes.fromhex("0267 00000000 00000000 01 00 01 03 0261 01 00 00") + bytes(9))
    with pytest.raises(Refused) as caught:
        read(JOIN_6, data.replace(b"\1a\1\0", b"\2a\1\0").replace(b"\1b", b"\2b"))
    assert str(caught.value) == (
        "JoinGroupRequest v6 / protocols[1].metadata at byte 20: length 900 runs 612 past the end"
    )


def test_every_class_of_refusal_of_bytes_is_met_above() -> None:
    (marks,) = (each for each in test_a_refusal_says_what_and_where.pytestmark if each.name == "parametrize")  # type: ignore[attr-defined]
    met = {each.values[2] for each in marks.args[1]}
    of_values = {"type", "range", "unknown-field", "absent-field"}
    assert met | of_values >= set(CLASSES) - {"json", "missing", "checksum"}


# What Kafka's readers take


@pytest.mark.parametrize(
    ("found", "data", "path", "expected"),
    [
        pytest.param(JOIN_5, "0000 00000001 00000001 0000 fffe 0000 00000000", "groupInstanceId", None, id="length -2"),
        pytest.param(JOIN_0, "0003 61ff62 00000000 0000 0000 00000000", "groupId", "a\ufffdb", id="no UTF-8"),
        pytest.param(JOIN_0, "0003 eda080 00000000 0000 0000 00000000", "groupId", "\ufffd", id="a surrogate"),
        pytest.param(JOIN_0, "0000 00000007 0000 0000 00000000 ffff", "sessionTimeoutMs", 7, id="trailing bytes"),
        pytest.param(JOIN_6, "82808000 67 00000007 00000000 01 00 01 01 00", "groupId", "g", id="long varint"),
        pytest.param(JOIN_6, "8280808070 67 00000007 00000000 01 00 01 01 00", "groupId", "g", id="bits past 32"),
        pytest.param(JOIN_6, "01 00000007 00000000 01 ffffffff0f 01 01 00", "groupInstanceId", None, id="compact -2"),
        pytest.param(VERSIONS_3, "0000 01 00000000 01 0301 02", "zkMigrationReady", True, id="boolean 2"),
        pytest.param(
            VERSIONS_3, "0000 01 00000000 02 0301 01 0301 00", "zkMigrationReady", False, id="last one counts"
        ),
        pytest.param(VERSIONS_3, "0000 01 00000000 01 0309 01", "zkMigrationReady", True, id="size not looked at"),
    ],
)
def test_lenient_reads_as_kafka_does(found: Layout, data: str, path: str, expected: object) -> None:
    raw = bytes.fromhex(data)
    assert read(found, raw, lenient=True)[path] == expected
    assert outcome(read, found, raw) == "refused"


def test_unknown_tags_in_any_order_are_kept() -> None:
    raw = bytes.fromhex("0000 01 00000000 03 0901aa 0500 0901bb")
    tags = [{"tag": 9, "data": b"\xaa"}, {"tag": 5, "data": b""}, {"tag": 9, "data": b"\xbb"}]
    assert read(VERSIONS_3, raw, lenient=True)["_unknownTaggedFields"] == tags


def test_a_negative_number_of_tags_depends_on_the_release() -> None:
    raw = bytes.fromhex("0000 01 00000000 ffffffff0f")
    assert "_unknownTaggedFields" not in read(layout("apache@4.3.1", "ApiVersionsResponse", 3), raw, lenient=True)
    assert outcome(read, layout("apache@4.4.0", "ApiVersionsResponse", 3), raw, lenient=True) == "refused"


def test_the_limits_of_some_releases_hold_for_lenient_reading_only() -> None:
    within, past = (bytes.fromhex("0000 01 00000000") + tags(number) for number in (10_000, 10_001))
    newest, before = (layout(f"apache@{each}", "ApiVersionsResponse", 3) for each in ("4.4.0", "4.3.1"))
    assert newest.limits == Limits() and before.limits is None
    assert len(read(newest, within, lenient=True)["_unknownTaggedFields"]) == 10_000
    assert outcome(read, newest, past, lenient=True) == "refused"
    assert len(read(before, past, lenient=True)["_unknownTaggedFields"]) == 10_001
    assert len(read(newest, past)["_unknownTaggedFields"]) == 10_001


def tags(number: int) -> bytes:
    count = bytes([number & 0x7F | 0x80, number >> 7])
    return count + b"".join(bytes([tag & 0x7F | 0x80, tag >> 7]) + b"\0" for tag in range(128, 128 + number))


def test_a_blob_of_a_newer_consumer_reads_with_the_newest_layout() -> None:
    newest = layout("apache", "ConsumerProtocolSubscription", 3)
    raw = b"\x00\x63" + newest.encode({"topics": ["t"]})[2:] + b"more"
    assert read(newest, raw, lenient=True)["topics"] == ["t"]
    assert outcome(read, newest, raw) == "refused"
    assert outcome(read, SUBSCRIPTION_1, b"\0\2" + raw[2:], lenient=True) == "refused"


# Hostile bytes


def test_a_count_allocates_nothing() -> None:
    raw = bytes.fromhex("0000 00000000 0000 0000 7fffffff") + bytes(100)
    for lenient in (False, True):
        with pytest.raises(Refused) as caught:
            read(JOIN_0, raw, lenient)
        assert caught.value.kind == "length"


def test_a_long_varint_is_given_up_after_five_bytes() -> None:
    with pytest.raises(Refused) as caught:
        read(JOIN_6, b"\xff" * 1_000_000)
    assert (caught.value.kind, caught.value.offset) == ("varint", 0)


# Building


@pytest.mark.parametrize(
    ("found", "given", "kind", "path"),
    [
        (JOIN_0, {"nonsense": 1}, "unknown-field", "nonsense"),
        (JOIN_0, {"protocols": [{"nonsense": 1}]}, "unknown-field", "protocols[0].nonsense"),
        (JOIN_0, {"groupInstanceId": "x"}, "absent-field", "groupInstanceId"),
        (JOIN_0, {"groupId": None}, "null", "groupId"),
        (JOIN_0, {"groupId": b"x"}, "type", "groupId"),
        (JOIN_0, {"groupId": "x" * 32768}, "length", "groupId"),
        (JOIN_0, {"groupId": "\ud800"}, "text", "groupId"),
        (JOIN_0, {"sessionTimeoutMs": 1 << 31}, "range", "sessionTimeoutMs"),
        (JOIN_0, {"sessionTimeoutMs": True}, "type", "sessionTimeoutMs"),
        (JOIN_0, {"protocols": [{"metadata": "x"}]}, "type", "protocols[0].metadata"),
        (JOIN_0, {"protocols": [None]}, "null", "protocols[0]"),
        (JOIN_6, {"_unknownTaggedFields": [{"tag": 5, "data": b""}, {"tag": 5, "data": b""}]}, "tag",
         "_unknownTaggedFields[1].tag"),
        (VERSIONS_3, {"_unknownTaggedFields": [{"tag": 1, "data": b""}]}, "tag", "_unknownTaggedFields[0].tag"),
        (ASSIGNMENT_11, {"version": 10}, "version", "version"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused_by_both(found: Layout, given: Any, kind: str, path: str) -> None:
    assert located(build, found, given) == located(found.encode, given) == (kind, path)


def located(work: Callable[..., Any], *args: Any) -> Any:
    """What came out, or class and path of the refusal."""
    try:
        return work(*args)
    except Refused as refused:
        return refused.kind, refused.path


def test_both_refuse_the_same_values_for_the_same_reason() -> None:
    refused = 0
    for each in layouts("apache"):
        rng = random.Random(f"{each} spoiled")
        for _ in range(5):
            wrong = spoiled(value(each, rng), rng)
            first = located(each.encode, wrong)
            assert located(build, each, wrong) == first, (str(each), wrong)
            refused += isinstance(first, tuple)
    assert refused > 100


def test_a_field_that_a_version_lacks_may_hold_its_default() -> None:
    assert build(JOIN_0, {"groupInstanceId": None}) == build(JOIN_0, {})


def test_tagged_fields_at_their_default_are_not_written() -> None:
    assert build(VERSIONS_3, {"finalizedFeaturesEpoch": -1, "supportedFeatures": []}).hex() == "00000100000000" + "00"
    assert build(VERSIONS_3, {"finalizedFeaturesEpoch": 0}).hex() == "00000100000000" + "01" + "0108" + "00" * 8


# The library's face


def test_the_construct_can_be_used_as_the_library_has_it() -> None:
    found: Any = construct_for(JOIN_5)
    data: Any = found.build({"groupId": "g"})
    assert found.parse(data)["groupId"] == "g"
    assert isinstance(found, c.Construct)


def test_the_first_of_more_bytes() -> None:
    header = layout("apache", "ResponseHeader", 1)
    assert read_first(header, bytes.fromhex("00000007 01 0501aa ffff")) == (
        {"correlationId": 7, "_unknownTaggedFields": [{"tag": 5, "data": b"\xaa"}]}, 8,
    )  # fmt: skip


def test_types_of_python() -> None:
    found = read(METADATA_12, build(METADATA_12, {"topics": [{"topicId": uuid.UUID(int=7)}]}))
    assert found["topics"] == [{"topicId": uuid.UUID(int=7), "name": None}] or found["topics"][0]["name"] == ""
    assert type(found["topics"][0]["topicId"]) is uuid.UUID
