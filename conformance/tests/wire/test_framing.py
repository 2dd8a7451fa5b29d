"""Headers and sizes around bodies."""

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    frame,
    header_version,
    unframe,
)
from kipcheck.conformance.wire.schema import messages, spec

HEARTBEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


@pytest.mark.parametrize(
    ("message", "version", "expected"),
    [
        ("JoinGroupRequest", 5, 1),
        ("JoinGroupRequest", 6, 2),
        ("JoinGroupResponse", 5, 0),
        ("JoinGroupResponse", 6, 1),
        ("ApiVersionsRequest", 2, 1),
        ("ApiVersionsRequest", 3, 2),
        ("ApiVersionsResponse", 2, 0),
        ("ApiVersionsResponse", 3, 0),
        ("ApiVersionsResponse", 4, 0),
        ("ConsumerGroupHeartbeatRequest", 0, 2),
        ("ConsumerGroupHeartbeatResponse", 0, 1),
    ],
)
def test_the_body_decides_the_header(message: str, version: int, expected: int) -> None:
    assert header_version(layout("apache", message, version)) == expected


def test_the_client_id_keeps_its_long_form() -> None:
    """Bytes as kafka-clients 3.9 writes them."""
    header = bytes.fromhex("000b0006000000070002636c") + b"\0"
    assert encode_request("apache", "JoinGroupRequest", 6, 7, "cl", {}).startswith(header)
    header = bytes.fromhex("000b0005000000070002636c")
    assert encode_request("apache", "JoinGroupRequest", 5, 7, "cl", {}) == header + layout(
        "apache", "JoinGroupRequest", 5
    ).encode({})
    assert encode_request("apache", "JoinGroupRequest", 5, 7, None, {})[8:10] == b"\xff\xff"


@pytest.mark.parametrize("version", [0, 3, 4])
def test_requests_there_and_back(version: int) -> None:
    data = encode_request("apache", "HeartbeatRequest", version, -5, "client", HEARTBEAT)
    found = decode_request(data)
    assert (found.message, found.version, found.correlation_id, found.client_id) == (
        "HeartbeatRequest", version, -5, "client",
    )  # fmt: skip
    assert HEARTBEAT.items() <= found.body.items()


@pytest.mark.parametrize("version", [0, 3, 4])
def test_responses_there_and_back(version: int) -> None:
    data = encode_response("apache", "HeartbeatResponse", version, 9, {"errorCode": 27})
    found = decode_response(data, "apache", "HeartbeatResponse", version)
    assert (found.message, found.version, found.correlation_id, found.body["errorCode"]) == (
        "HeartbeatResponse", version, 9, 27,
    )  # fmt: skip


def test_every_request_is_found_by_its_key() -> None:
    for name in ("apache", "apache@2.7.0", "kip-584"):
        for message in messages(edition(name)):
            if message.endswith("Request"):
                for each in spec(edition(name), message):
                    data = encode_request(name, message, each.version, 1, "c", {})
                    found = decode_request(data, name)
                    assert (found.message, found.version) == (message, each.version)


def test_the_draft_has_a_key_of_its_own() -> None:
    draft = encode_request("kip-584", "UpdateFeaturesRequest", 0, 1, None, {})
    released = encode_request("apache", "UpdateFeaturesRequest", 0, 1, None, {})
    assert (draft[:2], released[:2]) == (b"\0\x34", b"\0\x39")
    with pytest.raises(Refused):
        decode_request(draft)


def test_tags_of_a_header_are_kept() -> None:
    data = bytes.fromhex("000c000400000007ffff 01 0902aabb 0267 00000001 026d 00 00")
    found = decode_request(data)
    assert found.header["_unknownTaggedFields"] == [{"tag": 9, "data": b"\xaa\xbb"}]
    assert (found.client_id, found.body["memberId"]) == (None, "m")


@pytest.mark.parametrize(
    ("data", "kind", "path", "offset"),
    [
        ("", "truncated", "", 0),
        ("000b", "truncated", "", 2),
        ("0063 0000 00000000 ffff", "version", "requestApiKey", 0),
        ("000c 0063 00000000 ffff", "version", "requestApiVersion", 2),
        ("000c ffff 00000000 ffff", "version", "requestApiVersion", 2),
        ("000c 0000 0000", "truncated", "correlationId", 4),
        ("000c 0000 00000001 0005 61", "length", "clientId", 8),
        ("000c 0000 00000001 ffff 0009 67", "length", "groupId", 10),
        ("000c 0004 00000001 0000 00 0267 00000001 026d 00 00 ff", "trailing", "", 21),
    ],
)
def test_damaged_requests_are_refused_where_they_are_damaged(data: str, kind: str, path: str, offset: int) -> None:
    with pytest.raises(Refused) as caught:
        decode_request(bytes.fromhex(data))
    assert (caught.value.kind, caught.value.path, caught.value.offset) == (kind, path, offset), str(caught.value)


def test_lenient_requests() -> None:
    data = bytes.fromhex("000c 0004 00000001 fffe 00 0267 00000001 026d 00 00 ff")
    assert decode_request(data, lenient=True).client_id is None
    with pytest.raises(Refused):
        decode_request(data)


def test_what_is_no_request() -> None:
    for message in ("JoinGroupResponse", "ConsumerProtocolSubscription", "Nonsense"):
        with pytest.raises(LookupError):
            encode_request("apache", message, 0, 1, None, {})
    with pytest.raises(LookupError):
        decode_response(b"", "apache", "JoinGroupRequest", 0)


# Sizes


def test_frames() -> None:
    assert frame(b"abc") == b"\0\0\0\3abc"
    assert unframe(frame(b"abc") + frame(b"")) == (b"abc", b"\0\0\0\0")
    assert unframe(frame(b"")) == (b"", b"")


@pytest.mark.parametrize(
    ("data", "kind", "offset"),
    [
        (b"", "truncated", 0),
        (b"\0\0\0", "truncated", 0),
        (b"\0\0\0\4abc", "truncated", 4),
        (b"\xff\xff\xff\xff", "length", 0),
        (b"\x06\x40\x00\x01", "length", 0),
        (b"\x7f\xff\xff\xff", "length", 0),
    ],
)
def test_bad_frames(data: bytes, kind: str, offset: int) -> None:
    with pytest.raises(Refused) as caught:
        unframe(data)
    assert (caught.value.kind, caught.value.offset) == (kind, offset)


def test_the_largest_frame_is_a_choice() -> None:
    assert unframe(frame(b"abc"), largest=3) == (b"abc", b"")
    with pytest.raises(Refused):
        unframe(frame(b"abcd"), largest=3)
    with pytest.raises(Refused) as caught:
        unframe(b"\x06\x40\x00\x00")
    assert caught.value.kind == "truncated", "100 MiB are not too large"
