"""Lenient reading, rule by rule as the table in ``lenient`` has them, and beside the released jars."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.tests.support.agreement import BY_HAND
from kipcheck.conformance.tests.support.draws import damaged, value as drawn
from kipcheck.conformance.tests.support.releases import CLIENTS
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.constructs import read
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.lenient import java_text
from kipcheck.conformance.wire.primitives import uvarint
from kipcheck.conformance.wire.schema import Layout, Slot, messages, spec

HEARTBEAT_0, HEARTBEAT_3, HEARTBEAT_4 = (layout("apache", "HeartbeatRequest", version) for version in (0, 3, 4))
LEAVE_3, LEAVE_4 = (layout("apache", "LeaveGroupRequest", version) for version in (3, 4))
VERSIONS_3 = layout("apache@4.3.1", "ApiVersionsResponse", 3)
VERSIONS_3_LIMITED = layout("apache@4.4.0", "ApiVersionsResponse", 3)
DESCRIBE = layout("apache", "ConsumerGroupDescribeRequest", 0)
ASSIGNMENT_10 = layout("apache", "AssignmentInfo", 10)
ANY = object()


def tag(number: int, data: bytes) -> dict[str, Any]:
    return {"tag": number, "data": data}


def spaced(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("found", "data", "expected"),
    [
        # bytes after the end
        (HEARTBEAT_0, "000167 00000001 00016d ffff", {"groupId": "g", "generationId": 1, "memberId": "m"}),
        # booleans
        (DESCRIBE, "01 02 00", {"includeAuthorizedOperations": True}),
        (DESCRIBE, "01 ff 00", {"includeAuthorizedOperations": True}),
        # lengths that are not compact
        (HEARTBEAT_3, "000167 00000001 00016d fffe", {"groupInstanceId": None}),
        (HEARTBEAT_3, "000167 00000001 00016d 8000", {"groupInstanceId": None}),
        (HEARTBEAT_0, "fffe 00000001 00016d", None),
        (LEAVE_3, "0000 fffffffe", None),
        (LEAVE_3, "0000 80000000", None),
        # compact lengths
        (HEARTBEAT_4, "ffffffff0f 00000001 01 00 00", None),
        (HEARTBEAT_4, "01 00000001 01 ffffffff0f 00", {"groupInstanceId": None}),
        (HEARTBEAT_4, "01 00000001 01 8080808008 00", None),
        (HEARTBEAT_4, "01 00000001 01 818080801000", {"groupInstanceId": ""}),
        (LEAVE_4, "01 00 00", None),
        (LEAVE_4, "01 ffffffff0f 00", None),
        # varints
        (HEARTBEAT_4, "828000 67 00000001 01 00 00", {"groupId": "g"}),
        (HEARTBEAT_4, "8280808000 67 00000001 01 00 00", {"groupId": "g"}),
        (HEARTBEAT_4, "8280808070 67 00000001 01 00 00", {"groupId": "g"}),
        (HEARTBEAT_4, "828080808000 67 00000001 01 00 00", None),
        (HEARTBEAT_4, "ffffffffff", None),
        (HEARTBEAT_4, "8280", None),
        # text
        (HEARTBEAT_0, "0001ff 00000001 0000", {"groupId": "\ufffd"}),
        (HEARTBEAT_0, "0003eda080 00000001 0000", {"groupId": "\ufffd"}),
        (HEARTBEAT_4, "81 80 02" + "61" * 32768 + "00000001 01 00 00", None),
        (HEARTBEAT_4, "80 80 02" + "61" * 32767 + "00000001 01 00 00", {"groupId": "a" * 32767}),
        (HEARTBEAT_0, "0005 6767", None),
        # counts
        (LEAVE_3, "0000 00000001", None),
        (LEAVE_3, "0000 7fffffff 00", None),
        (LEAVE_3, "0000 00000000", {"members": []}),
        # tags
        (
            layout("apache@4.3.1", "HeartbeatRequest", 4),
            "01 00000001 01 00 ffffffff0f",
            {"_unknownTaggedFields": ANY},
        ),
        (
            HEARTBEAT_4,
            "01 00000001 01 00 03 0701aa 0501bb 0700",
            {"_unknownTaggedFields": [tag(7, b"\xaa"), tag(5, b"\xbb"), tag(7, b"")]},
        ),
        (HEARTBEAT_4, "01 00000001 01 00 01 07 09 aa", None),
        (HEARTBEAT_4, "01 00000001 01 00 01 07 ffffffff0f", None),
        (HEARTBEAT_4, "01 00000001 01 00 01 ffffffff0f 00", {"_unknownTaggedFields": [tag(2**32 - 1, b"")]}),
        (VERSIONS_3, "0000 01 00000000 ffffffff0f", {"finalizedFeaturesEpoch": -1}),
        (VERSIONS_3, "0000 01 00000000 01 01 04 0000000000000005", {"finalizedFeaturesEpoch": 5}),
        (VERSIONS_3, "0000 01 00000000 01 01 09 0000000000000005 77", {"finalizedFeaturesEpoch": 5}),
        (VERSIONS_3, "0000 01 00000000 01 01 ffffffff0f 0000000000000005", {"finalizedFeaturesEpoch": 5}),
        (
            VERSIONS_3,
            "0000 01 00000000 03 01 08 0000000000000005 03 01 01 01 08 0000000000000006",
            {"finalizedFeaturesEpoch": 6, "zkMigrationReady": True},
        ),
        (VERSIONS_3, "0000 01 00000000 01 01 08 00000000", None),
        # versions that lead
        (layout("apache", "ConsumerProtocolAssignment", 3), "0064 00000000 ffffffff aa", {"assignedPartitions": []}),
        (layout("apache", "ConsumerProtocolAssignment", 3), "0002 00000000 ffffffff", None),
        (layout("apache", "ConsumerProtocolAssignment", 3), "ffff 00000000 ffffffff", None),
        (layout("apache", "ConsumerProtocolAssignment", 2), "0003 00000000 ffffffff", None),
        (layout("apache", "GroupMetadataValue", 4), "0005" + "00" * 40, None),
        (layout("apache", "SubscriptionInfo", 2), "00000003" + "00" * 40, None),
        # java.io
        (ASSIGNMENT_10, "0000000a 0000000a ffffffff" + "00" * 40, None),
        (
            ASSIGNMENT_10,
            "0000000a 0000000a 00000001 00000001 00000002 ffffffff" + "00" * 28 + "aa",
            {"activeTasks": [{"topicGroupId": 1, "partition": 2, "namedTopology": ""}]},
        ),
        (
            ASSIGNMENT_10,
            "0000000a 0000000a 00000001 00000001 00000002 00000001 d800" + "00" * 28,
            {"activeTasks": [{"topicGroupId": 1, "partition": 2, "namedTopology": "\ud800"}]},
        ),
        (
            ASSIGNMENT_10,
            "0000000a 0000000a 00000000 00000000 00000001 00000000 0004 00c1a161" + "00" * 20,
            {"topics": [{"index": 0, "topic": "\0aa"}]},
        ),
        (
            ASSIGNMENT_10,
            "0000000a 0000000a 00000000 00000000 00000001 00000000 0003 eda0b4" + "00" * 20,
            {"topics": [{"index": 0, "topic": "\ud834"}]},
        ),
        (ASSIGNMENT_10, "0000000a 0000000a 00000000 00000000 00000001 00000000 0001 80" + "00" * 20, None),
        (ASSIGNMENT_10, "0000000a 0000000a 00000000 00000000 00000001 00000000 0004 f09d849e" + "00" * 20, None),
    ],
)  # fmt: skip
def test_rules(found: Layout, data: str, expected: Mapping[str, Any] | None) -> None:
    raw = spaced(data)
    try:
        value = found.decode(raw, lenient=True)
    except Refused as refused:
        assert expected is None, refused
        return
    assert expected is not None, value
    for name, each in expected.items():
        if each is ANY:
            assert name not in value
        else:
            assert value[name] == each
    if "_unknownTaggedFields" not in expected:
        assert tuple(value) == found.names
    assert read(found, raw, lenient=True) == value


def test_a_nullable_struct() -> None:
    point = Layout("Point", 0, False, (Slot("x", "int8"),))
    found = Layout("Made", 0, False, (Slot("f", "Point", point, nullable=True, default=None),))
    for byte in range(256):
        value = found.decode(bytes((byte, 5)), lenient=True)
        assert value == {"f": {"x": 5} if byte < 128 else None}
    inside = Layout("Made", 0, True, (Slot("f", "Point", point, nullable=True, tag=0, default=None),))
    for data, here in (("01 00 00 00", False), ("01 00 00 01 05", True), ("01 00 00 7f 05", True),
                       ("01 00 00 ffffffff0f", False)):  # fmt: skip
        assert inside.decode(spaced(data), lenient=True) == {"f": {"x": 5} if here else None}


def test_limits_of_some_releases() -> None:
    """10,000 tags and a million elements are read, one more is not; nor is a negative number of tags."""
    head = spaced("0000 01 00000000")
    for count in (10_000, 10_001):
        tags = b"".join(uvarint(each) + b"\0" for each in range(128, 128 + count))
        data = head + uvarint(count) + tags
        assert len(VERSIONS_3.decode(data, lenient=True)["_unknownTaggedFields"]) == count
        assert _accepts(VERSIONS_3_LIMITED, data) == (count == 10_000)
    assert not _accepts(VERSIONS_3_LIMITED, head + spaced("ffffffff0f"))
    flags = Layout("Made", 0, False, (Slot("f", "int8", array=True, default=()),), limits=VERSIONS_3_LIMITED.limits)
    for count in (1_000_000, 1_000_001):
        data = count.to_bytes(4, "big") + bytes(count)
        assert _accepts(flags, data) == (count == 1_000_000)
        assert len(flags.decode(data)["f"]) == count, "the writers of these releases write it"


def _accepts(found: Layout, data: bytes) -> bool:
    try:
        found.decode(data, lenient=True)
    except Refused:
        return False
    return True


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ("ff", 1), ("c3", 1), ("c328", 2), ("c080", 2), ("e282", 1), ("e28228", 2), ("e08080", 3), ("eda080", 1),
        ("eda0", 1), ("edbfbf41", 2), ("f09d84", 1), ("f09d", 1), ("f0808080", 4), ("f4908080", 4), ("f8888888", 4),
        ("f09d8441", 2), ("41ff42", 3), ("fffe", 2), ("8080", 2),
    ],
)  # fmt: skip
def test_pieces_of_bad_text(data: str, count: int) -> None:
    """As many characters as Java makes of it (checked with JDK 17)."""
    assert len(java_text(bytes.fromhex(data))) == count


def test_what_is_strictly_right_is_leniently_the_same() -> None:
    rng = random.Random(5)
    for message in messages(edition("apache")):
        for found in spec(edition("apache"), message):
            value = drawn(found, rng)
            assert found.decode(found.encode(value), lenient=True) == value


@pytest.mark.jars
@pytest.mark.parametrize("release", CLIENTS)
def test_the_codec_reads_damaged_bytes_as_the_jars_do(release: str, judge: JavaCodec) -> None:
    """Thousands of inputs: accepted by both and alike, or refused by both."""
    rng, asked = random.Random(release), []
    for message in messages(edition(f"apache@{release}")):
        if message in BY_HAND:
            continue
        for found in spec(edition(f"apache@{release}"), message):
            for _ in range(20):
                data = found.encode(drawn(found, rng))
                asked.append((found, damaged(data, rng) if rng.random() < 0.9 else data))
    orders = [Order("decode", found.message, found.version, hex=data.hex(), release=release) for found, data in asked]
    seen = {"accepted": 0, "rejected": 0}
    for (found, data), answer in zip(asked, judge.answers(orders), strict=True):
        if answer.status not in seen:
            assert answer.status == "unsupported", answer
            continue
        seen[answer.status] += 1
        try:
            value = found.codec.to_json(found.decode(data, lenient=True))
        except Refused as refused:
            assert answer.status == "rejected", (str(refused), data.hex(), answer)
        else:
            assert value == answer.value, (str(found), data.hex(), answer)
    assert min(seen.values()) > 500, seen
