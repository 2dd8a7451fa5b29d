"""Frames around a body: the header, whose version depends on the API, and the size in front."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition, edition as _edition
from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.lenient import read_first
from kipcheck.conformance.wire.schema import Layout, MessageSpec, messages, served, spec

LARGEST: Final = 100 * 1024 * 1024
"""Largest size of a frame: the default of ``socket.request.max.bytes``."""
CONTROLLED_SHUTDOWN: Final = 7
"""The only API whose version 0 has request header v0."""


@dataclass(frozen=True, slots=True)
class Request:
    message: str
    version: int
    correlation_id: int
    client_id: str | None
    body: dict[str, Any]
    header: dict[str, Any]
    """The whole header, with its unknown tags."""


@dataclass(frozen=True, slots=True)
class Response:
    message: str
    version: int
    correlation_id: int
    body: dict[str, Any]
    header: dict[str, Any]


def header_version(layout: Layout) -> int:
    """The version of the header before a request or response.

    Flexible versions have a header with tags; but every ApiVersions response has header v0, so that a client can read
    it whatever versions the broker supports (KIP-511).
    """
    if layout.message == "ApiVersionsResponse":
        return 0
    return layout.flexible + (1 if layout.message.endswith("Request") else 0)


def frame(payload: bytes) -> bytes:
    """The payload after its size, an int32. Errors: ``Refused`` past 2^31-1 bytes."""
    if len(payload) > 0x7FFF_FFFF:
        raise _refused("length", f"{len(payload)} bytes have no size in 31 bits")
    return len(payload).to_bytes(4, "big") + payload


def unframe(data: bytes, largest: int = LARGEST) -> tuple[bytes, bytes]:
    """The payload of the first frame, and the bytes after it.

    Errors: ``Refused``: ``length`` for a size below 0 or above ``largest``, ``truncated`` for an incomplete frame.
    """
    if len(data) < 4:
        raise _refused("truncated", f"the size takes 4 bytes, {len(data) or 'none'} there", 0)
    size = int.from_bytes(data[:4], "big", signed=True)
    if not 0 <= size <= largest:
        raise _refused("length", f"size {size} where 0 to {largest} may be", 0)
    if len(data) - 4 < size:
        raise _refused("truncated", f"size {size}, {len(data) - 4} bytes there", 4)
    return data[4 : 4 + size], data[4 + size :]


def encode_request(
    edition: str | Edition,
    message: str,
    version: int,
    correlation_id: int,
    client_id: str | None,
    body: Mapping[str, Any],
) -> bytes:
    """Header and body, without the size. Errors: ``Refused``; LookupError for an unknown request or version."""
    declared = spec(resolved(edition), message)
    layout = declared.at(version)
    if declared.api_key is None or declared.kind != "request":
        raise LookupError(f"{message} is not a request")
    header = {"requestApiKey": declared.api_key, "requestApiVersion": version, "correlationId": correlation_id}
    if (declared.api_key, version) == (CONTROLLED_SHUTDOWN, 0):
        return header_layout("Request", 0).encode(header) + layout.encode(body)
    return header_layout("Request", header_version(layout)).encode({**header, "clientId": client_id}) + layout.encode(
        body
    )


def decode_request(
    data: bytes, edition: str | Edition = "apache", lenient: bool = False, entries: Entries | None = None
) -> Request:
    """Decodes header and body, without the size; key and version in the header determine the layout of the body.

    ``entries``: those that are accepted; more are ``TooManyEntries``. Errors: ``Refused``, with offsets from the start
    of ``data``; ``version`` where the edition has no such request.
    """
    if len(data) < 4:
        raise Refused("truncated", "too short for a header", message="RequestHeader", version=1, offset=len(data))
    key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    declared = requests(resolved(edition)).get(key)
    if declared is None:
        raise _unknown(f"no request has key {key}", "requestApiKey", 0)
    try:
        layout = declared.at(version)
    except LookupError as error:
        raise _unknown(str(error.args[0]), "requestApiVersion", 2) from None
    wanted = 0 if (key, version) == (CONTROLLED_SHUTDOWN, 0) else header_version(layout)
    header, body = _split(header_layout("Request", wanted), layout, data, lenient, entries)
    return Request(declared.name, version, header["correlationId"], header.get("clientId"), body, header)


def encode_response(
    edition: str | Edition, message: str, version: int, correlation_id: int, body: Mapping[str, Any]
) -> bytes:
    """Header and body, without the size. Errors: ``Refused``; LookupError for an unknown response or version."""
    layout = _response(edition, message, version)
    return header_layout("Response", header_version(layout)).encode({"correlationId": correlation_id}) + layout.encode(
        body
    )


def decode_response(
    data: bytes,
    edition: str | Edition,
    message: str,
    version: int,
    lenient: bool = False,
    entries: Entries | None = None,
) -> Response:
    """Decodes header and body, without the size, of a response to a request of this version.

    ``entries``: those that are accepted; more are ``TooManyEntries``. Errors: ``Refused``, with offsets from the start
    of ``data``; LookupError for an unknown response or version.
    """
    layout = _response(edition, message, version)
    header, body = _split(header_layout("Response", header_version(layout)), layout, data, lenient, entries)
    return Response(message, version, header["correlationId"], body, header)


def _split(
    head: Layout, layout: Layout, data: bytes, lenient: bool, entries: Entries | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    if entries is None:
        from kipcheck.conformance.wire import constructs  # a heavy library

        header, size = constructs.read_first(head, data, lenient)
    else:
        header, size = read_first(head, data, entries)
    try:
        if entries is None:
            return header, layout.decode(data[size:], lenient=lenient)
        return header, layout.codec.decode_bounded(data[size:], entries, lenient=lenient)
    except Refused as error:
        raise shifted(error, size) from None


def shifted(refused: Refused, size: int) -> Refused:
    """The same refusal, where so many bytes are in front."""
    offset = None if refused.offset is None else refused.offset + size
    return Refused(
        refused.kind, refused.why, message=refused.message, version=refused.version, path=refused.path, offset=offset
    )


def _response(edition: str | Edition, message: str, version: int) -> Layout:
    declared = spec(resolved(edition), message)
    if declared.kind != "response":
        raise LookupError(f"{message} is not a response")
    return declared.at(version)


def resolved(edition: str | Edition) -> Edition:
    """Errors: LookupError for an unknown edition."""
    return _edition(edition) if isinstance(edition, str) else edition


@cache
def requests(edition: Edition) -> dict[int, MessageSpec]:
    """By API key."""
    names = (*messages(edition), *served(edition))
    declared = (spec(edition, message) for message in names if message.endswith("Request"))
    return {each.api_key: each for each in declared if each.api_key is not None and each.kind == "request"}


@cache
def header_layout(side: str, version: int) -> Layout:
    """Headers are the same in every edition."""
    return spec(_edition("apache"), f"{side}Header").at(version)


def _unknown(why: str, path: str, offset: int) -> Refused:
    return Refused("version", why, message="RequestHeader", version=1, path=path, offset=offset)


def _refused(kind: str, why: str, offset: int | None = None) -> Refused:
    return Refused(kind, why, message="Frame", version=0, offset=offset)
