"""Whole frames are explained, without a name where one is in the bytes, and what is inside is opened."""

import json
import random
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.tests.support.draws import value
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.explain import explain
from kipcheck.conformance.wire.explain_frame import Sent, find
from kipcheck.conformance.wire.explain_inside import insides
from kipcheck.conformance.wire.framing import encode_request, encode_response, frame
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.conformance.wire.workbench import Unreadable, unhex

STREAMS = layout("apache", "SubscriptionInfo", 8)
INFO = STREAMS.encode(value(STREAMS, random.Random(1)))
SUBSCRIPTION = layout("apache", "ConsumerProtocolSubscription", 1).encode({"topics": ["t"], "userData": INFO})


def join(name: str = "stream", metadata: bytes = SUBSCRIPTION, kind: str = "consumer") -> bytes:
    body = {"groupId": "g", "protocolType": kind, "protocols": [{"name": name, "metadata": metadata}]}
    return encode_request("apache", "JoinGroupRequest", 9, 7, "me", body)


def check_tiles(sent: Sent) -> None:
    at = 0
    for row in sent.explained.rows:
        assert row.offset == at and row.size > 0
        at += row.size
    assert at == len(sent.explained.data)


def within(data: bytes, message: str | None = None) -> list[tuple[str, str, int]]:
    found = insides(find(data, "apache", message, None).explained)
    return [(each.path, each.explained.layout.message, each.explained.layout.version) for each in found]


@pytest.mark.parametrize("message", [each for each in messages(APACHE) if each.endswith("Request")])
def test_a_request_is_found_by_its_header_with_and_without_size(message: str) -> None:
    for each in spec(APACHE, message):
        rng = random.Random(str(each))
        data = encode_request("apache", message, each.version, 7, "me", value(each, rng))
        for sent, size in ((find(data, "apache", None, None), False), (find(frame(data), "apache", None, None), True)):
            found = sent.explained
            assert (found.layout.message, found.layout.version, sent.size) == (message, each.version, size)
            assert sent.whole and sent.header is not None
            check_tiles(sent)


@pytest.mark.parametrize("message", [each for each in messages(APACHE) if each.endswith("Response")])
def test_a_response_needs_its_name_and_every_version_that_fits_is_named(message: str) -> None:
    for each in spec(APACHE, message):
        body = value(each, random.Random(str(each)))
        data = frame(encode_response("apache", message, each.version, 7, body))
        sent = find(data, "apache", message, None)
        assert sent.whole and sent.size
        assert each.version in (sent.explained.layout.version, *sent.others)
        check_tiles(sent)
        named = find(data, "apache", message, each.version)
        assert named.whole and named.size and named.explained.layout.version == each.version


def test_a_body_alone_is_explained_as_before() -> None:
    at = layout("apache", "HeartbeatRequest", 4)
    data = at.encode({"groupId": "g"})
    assert find(data, "apache", "HeartbeatRequest", 4) == Sent(explain(at, data))
    damaged = find(data[:-1], "apache", "HeartbeatRequest", 4)
    assert (damaged.header, damaged.explained.rows) == (None, explain(at, data[:-1]).rows) and not damaged.whole
    assert find(data, "apache", "HeartbeatRequest", None).explained.layout == at


def test_a_damaged_frame_is_explained_up_to_the_damage_with_offsets_of_the_frame() -> None:
    data = frame(join())[:-30]
    sent = find(data, "apache", None, None)
    assert not sent.whole and sent.size and sent.explained.layout.message == "JoinGroupRequest"
    check_tiles(sent)
    data = join()[:-30]
    sent = find(data, "apache", None, None)
    assert sent.explained.layout.message == "JoinGroupRequest" and sent.header == 2
    assert sent.explained.damage is not None and (sent.explained.damage.offset or 0) >= 13
    check_tiles(sent)


NEEDS = "; a response needs --message, a body alone --message and --version"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "there are no bytes"),
        (b"\x00\x11", f"2 bytes are too few for a request{NEEDS}"),
        (b"\x7f\xff" + bytes(20), f"the bytes have API key 32767, which kipcheck does not know{NEEDS}"),
        (b"\x00\x00\x00\x07" + bytes(9), f"the bytes are a damaged ProduceRequest v7{NEEDS}"),
        (b"\x00\x0c\x00\x63" + bytes(9), f"the bytes are HeartbeatRequest v99; apache has versions 0-4{NEEDS}"),
    ],
)
def test_bytes_without_name_that_begin_no_request_are_unreadable(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=f"{why}$"):
        find(data, "apache", None, None)


def test_a_produce_request_needs_a_name_only_if_it_is_damaged() -> None:
    """Its API key is 0, as are the first bytes of a correlation id."""
    data = frame(encode_request("apache", "ProduceRequest", 9, 7, "me", {"topicData": [{"name": "t"}]}))
    sent = find(data, "apache", None, None)
    assert sent.whole and sent.title() == "ProduceRequest v9, edition apache: size, header v2, body"
    short = frame(data[4:-1])
    with pytest.raises(Unreadable, match="a damaged ProduceRequest v9"):
        find(short, "apache", None, None)
    damaged = find(short, "apache", "ProduceRequest", None)
    assert not damaged.whole and damaged.explained.layout.version == 9


def test_frames_that_follow_each_other_are_explained_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    beat = encode_request("apache", "HeartbeatRequest", 3, 7, "me", {"groupId": "g"})
    both = frame(join()) + frame(beat)
    assert run(["explain", both.hex()]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("at byte ")]
    assert [each.split(",")[0] for each in titles] == [
        "at byte 0: JoinGroupRequest v9",
        f"at byte {len(frame(join()))}: HeartbeatRequest v3",
    ]
    assert run(["explain", "--json", both.hex()]) == 0
    assert [each["at"] for each in json.loads(capsys.readouterr().out)["frames"]] == [0, len(frame(join()))]


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (22, "frame at byte 27: HeartbeatRequest v3 / memberId at byte 22: "),
        (8, "byte 27: a frame of 23 bytes begins, and 4 of them are there"),
    ],
)
def test_a_truncated_last_frame_is_damage(kept: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    beat = frame(encode_request("apache", "HeartbeatRequest", 3, 7, "m", {"groupId": "g", "memberId": "m"}))
    assert run(["explain", (beat + beat[:kept]).hex()]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("at byte 0: HeartbeatRequest v3")
    assert why in shown.err


def test_a_size_in_front_of_one_frame_and_more_bytes_is_damage_there(capsys: pytest.CaptureFixture[str]) -> None:
    beat = encode_response("apache", "HeartbeatResponse", 3, 7, {})
    both = frame(beat) * 2
    assert run(["explain", "--message", "HeartbeatResponse", "--version", "3", both.hex()]) == 0
    assert capsys.readouterr().out.count("HeartbeatResponse v3, edition apache: size, header v0, body") == 2


def test_the_subscription_in_a_join_and_streams_data_in_it_are_opened() -> None:
    opened = [
        ("protocols[0].metadata", "ConsumerProtocolSubscription", 1),
        ("protocols[0].metadata.userData", "SubscriptionInfo", 8),
    ]
    assert within(join()) == within(frame(join())) == opened
    sent = find(frame(join()), "apache", None, None)
    for inner in insides(sent.explained):
        assert sent.explained.data[inner.offset :].startswith(inner.explained.data)
        assert inner.explained.damage is None


def test_the_assignment_in_a_sync_and_streams_data_in_it_are_opened() -> None:
    info = layout("apache", "AssignmentInfo", 11)
    data = info.encode(value(info, random.Random(2)))
    assignment = layout("apache", "ConsumerProtocolAssignment", 3).encode({"userData": data})
    body = {"protocolType": "consumer", "protocolName": "stream", "assignment": assignment}
    answer = encode_response("apache", "SyncGroupResponse", 5, 7, body)
    assert within(answer, "SyncGroupResponse") == [
        ("assignment", "ConsumerProtocolAssignment", 3), ("assignment.userData", "AssignmentInfo", 11)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "inside"),
    [
        (join(kind="connect"), []),
        (join(name="range"), ["ConsumerProtocolSubscription"]),
        (join(metadata=b"\x00\x63nonsense"), []),
        (join(metadata=b""), []),
    ],
)
def test_what_is_of_another_type_stays_closed(data: bytes, inside: list[str]) -> None:
    assert [message for _, message, _ in within(data)] == inside


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("sticky", layout("apache", "StickyAssignorUserData", 1).encode({}), "StickyAssignorUserData"),
        ("cooperative-sticky", b"\0\0\0\7", "CooperativeStickyAssignorUserData"),
    ],
)
def test_user_data_is_opened_by_the_name_of_the_assignor(name: str, data: bytes, message: str) -> None:
    metadata = layout("apache", "ConsumerProtocolSubscription", 1).encode({"topics": ["t"], "userData": data})
    assert [each for _, each, _ in within(join(name, metadata))] == ["ConsumerProtocolSubscription", message]


def test_without_a_name_ambiguous_user_data_stays_closed() -> None:
    at = layout("apache", "ConsumerProtocolSubscription", 1)
    assert within(at.encode({"userData": INFO}), at.message) == [("userData", "SubscriptionInfo", 8)]
    assert within(at.encode({"userData": b"\0\0\0\0"}), at.message) == []


def test_the_command_prints_tables_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", frame(join()).hex()]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("JoinGroupRequest v9, edition apache: size, header v2, body\n")
    assert "\nprotocols[0].metadata.userData: SubscriptionInfo v8\n" in printed
    assert run(["explain", "--json", frame(join()).hex()]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["message"], found["version"], found["size"], found["header"]) == ("JoinGroupRequest", 9, True, 2)
    assert [each["message"] for each in found["inside"]] == ["ConsumerProtocolSubscription", "SubscriptionInfo"]
    for each in found["inside"]:
        size = sum(row["size"] for row in each["rows"])
        assert frame(join())[each["offset"] :].hex().startswith("".join(row["bytes"] for row in each["rows"])) and size


def test_a_response_without_name_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    answer = frame(encode_response("apache", "SyncGroupResponse", 5, 7, {})).hex()
    assert run(["explain", answer]) == 2
    assert run(["explain", "--message", "SyncGroupResponse", answer]) == 0
    assert "header v1, body" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("message", "version", "body"),
    [
        ("ConsumerProtocolSubscription", 0, {"topics": ["orders"]}),
        ("ConsumerProtocolSubscription", 3, {"topics": ["orders"], "rackId": "r"}),
        ("ConsumerProtocolAssignment", 1, {"assignedPartitions": [{"topic": "orders", "partitions": [0, 1]}]}),
        ("AssignmentInfo", 2, {}),
        ("OffsetCommitKey", 1, {"group": "g", "topic": "orders", "partition": 1}),
        ("OffsetCommitValue", 3, {"offset": 7, "leaderEpoch": 2, "metadata": "", "commitTimestamp": 9}),
        ("GroupMetadataKey", 2, {"group": "g"}),
        ("ConsumerGroupMemberMetadataKey", 5, {"groupId": "g", "memberId": "m"}),
    ],
)
def test_a_record_needs_no_name(message: str, version: int, body: dict[str, Any]) -> None:
    data = layout("apache", message, version).encode(body)
    found = find(data, "apache", None, None)
    named = [f"{found.explained.layout.message} v{found.explained.layout.version}", *found.alike]
    assert f"{message} v{version}" in named and found.whole, named
    assert named[0] == f"{message} v{version}", named
    assert all(each in found.title() for each in found.alike)


def test_bytes_that_only_a_later_version_would_take_are_no_record() -> None:
    with pytest.raises(Unreadable, match="too few for a request"):
        find(bytes.fromhex("0001000167"), "apache", None, None)


def test_an_array_of_bytes_as_java_prints_it() -> None:
    assert unhex("[0, 3, -1]") == unhex("[0,3,255]") == unhex("0003ff") == b"\x00\x03\xff"
    assert unhex("[]") == b""
    with pytest.raises(Unreadable, match="300 is no byte"):
        unhex("[0, 300]")
    with pytest.raises(Unreadable, match="character 1 is '\\['"):
        unhex("[0x1]")
