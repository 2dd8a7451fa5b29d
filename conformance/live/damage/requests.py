"""The bytes of damaged requests: sound ones of groups, damaged at a place of frame, header or body."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.damage.ops import Send
from kipcheck.conformance.wire.complete import complete
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.framing import LARGEST, frame, header_layout, header_version
from kipcheck.conformance.wire.schema import Layout, spec
from kipcheck.strategies.damage import KINDS, apply_corruption

EDITION: Final = edition("apache")
CLIENT: Final = "kipcheck"
CORRELATION: Final = 7
STRANGER: Final[Mapping[str, Any]] = {
    "groupId": "kipcheck-damage", "memberId": "nobody", "generationId": 1, "generationIdOrMemberEpoch": 1,
    "protocolType": "consumer", "protocolName": "range", "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000,
    "protocols": [{"name": "range", "metadata": b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"}],
    "assignments": [{"memberId": "nobody", "assignment": b"\x00\x01"}],
    "members": [{"memberId": "nobody"}], "groups": ["kipcheck-damage"], "key": "kipcheck-damage",
    "coordinatorKeys": ["kipcheck-damage"], "clientSoftwareName": "kipcheck", "clientSoftwareVersion": "1",
    "allowAutoTopicCreation": False,
}  # fmt: skip
"""Fields by name. The group and its member do not exist, so that nothing comes of a request that is taken for sound."""
NOISE: Final = 64
TLS: Final = bytes.fromhex("16030100c8010000c40303") + bytes(range(64))
HTTP: Final = b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"


def sound(
    api: str, version: int, correlation: int = CORRELATION
) -> tuple[Layout, dict[str, Any], Layout, dict[str, Any]]:
    """Layouts and values of header and body."""
    declared = spec(EDITION, f"{api}Request")
    layout = declared.at(version)
    header = header_layout("Request", header_version(layout))
    fields = {"requestApiKey": declared.api_key, "requestApiVersion": version, "correlationId": correlation,
              "clientId": CLIENT}  # fmt: skip
    body = {name: each for name, each in STRANGER.items() if name in layout.names}
    return header, complete(header, fields), layout, _completed(layout, body)


def _completed(layout: Layout, body: dict[str, Any]) -> dict[str, Any]:
    """The value; OffsetFetch has groups of another kind from version 8 on."""
    if layout.message == "OffsetFetchRequest" and "groups" in body:
        body = {**body, "groups": [{"groupId": STRANGER["groupId"]}]}
    return complete(layout, body)


def nearest(api: str, version: int, announced: Mapping[int, tuple[int, int]]) -> int | None:
    """The version nearest to one that is wanted, of those that the broker and kipcheck have; None: there is none."""
    declared = spec(EDITION, f"{api}Request").versions
    assert declared.high is not None
    low, high = announced.get(key_of(api), (0, -1))
    low, high = max(low, declared.low), min(high, declared.high)
    return min(max(version, low), high) if low <= high else None


def key_of(api: str) -> int:
    key = spec(EDITION, f"{api}Request").api_key
    assert key is not None
    return key


def damaged(send: Send, version: int) -> bytes:
    """The bytes of the request, with its size in front."""
    header, head, layout, body = sound(send.api, version)
    if send.place == "frame":
        return _frame(send, header.encode(head) + layout.encode(body))
    if send.place == "header":
        if (changed := _header_field(send, head, version)) is not None:
            return frame(header.encode(changed) + layout.encode(body))
        return frame(_corrupt(send, header, head) + layout.encode(body))
    return frame(header.encode(head) + _corrupt(send, layout, body))


def _corrupt(send: Send, layout: Layout, value: Mapping[str, Any]) -> bytes:
    mapped = byte_map(layout, value)
    found = [*KINDS[send.kind].find(mapped)] if send.kind in KINDS else []
    for place in range(len(found)):
        damage = apply_corruption(mapped, found[(send.number + place) % len(found)])
        if damage is not None:
            return damage.data
    return mapped.data + b"\x00" * (1 + send.number % 8)


def _header_field(send: Send, head: Mapping[str, Any], version: int) -> dict[str, Any] | None:
    match send.kind:
        case "key-unknown":
            return {**head, "requestApiKey": 1000 + send.number}
        case "key-negative":
            return {**head, "requestApiKey": -1 - send.number}
        case "version-above":
            return {**head, "requestApiVersion": version + 50 + send.number}
        case "version-negative":
            return {**head, "requestApiVersion": -1 - send.number}
    return None


def _frame(send: Send, payload: bytes) -> bytes:
    match send.kind:
        case "size-negative":
            return (-1 - send.number).to_bytes(4, "big", signed=True) + payload
        case "size-zero":
            return bytes(4) + payload
        case "size-tiny":
            return (1 + send.number % 7).to_bytes(4, "big") + payload
        case "size-huge":
            return (0x7FFF_FFFF if send.number % 2 else LARGEST + 1).to_bytes(4, "big") + payload
        case "size-above":
            return (len(payload) + 1 + send.number).to_bytes(4, "big") + payload
        case "size-below":
            return (max(8, len(payload) - 1 - send.number)).to_bytes(4, "big") + payload
        case "size-cut":
            return frame(payload)[: send.number % 4]
        case "tls":
            return TLS
        case "http":
            return HTTP
    return Random(f"noise/{send.number}").randbytes(NOISE)
