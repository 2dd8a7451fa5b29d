"""Reads requests as a broker does: header, key and version, then the body, strictly first."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.edition import APACHE, Edition
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import decode_request, header_version, requests
from kipcheck.conformance.wire.schema import Layout, is_changed_by, spec

API_VERSIONS: Final = 18
"""The only API that is answered in a version that is not served (KIP-511)."""
HEADER: Final = 8
"""Bytes of key, version and correlation id."""


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """A request, and how it came."""

    message: str
    """``JoinGroupRequest``."""
    version: int
    correlation_id: int
    client_id: str | None
    body: Mapping[str, Any]
    """Empty for ApiVersions in a version that is not served."""
    connection: int
    """Number of the connection, from 1."""
    host: str
    """The address of the client."""
    at_s: float
    """Seconds since the front started."""
    reached: tuple[str, int] = ("127.0.0.1", 0)
    """The address and port of this broker that the client connected to."""
    served: bool = True
    """False only for ApiVersions in another version."""
    pipelined: bool = False
    """It was sent before the answer to the request before it, on the same connection, could be read."""

    @property
    def api(self) -> str:
        return self.message.removesuffix("Request")

    @property
    def response(self) -> str:
        return f"{self.api}Response"


class Unserved(Exception):
    """A request that a broker answers by closing the connection: an unknown key, a version that is not served, or bytes
    that Kafka's own reader refuses."""


@dataclass(frozen=True, slots=True)
class Content:
    """What the bytes of a request contain."""

    message: str
    version: int
    correlation_id: int
    client_id: str | None
    body: Mapping[str, Any]
    served: bool = True
    refused: Refused | None = None
    """The violation that strict decoding found, where Kafka's own reader accepts the bytes."""


def read(payload: bytes, edition: Edition, versions: Mapping[int, range]) -> Content:
    """The content of a frame. ``versions``: the served versions by API key. Errors: ``Unserved``; ``Refused``."""
    if len(payload) < HEADER:
        raise Refused("truncated", "too short for a header", message="RequestHeader", version=1, offset=len(payload))
    key, version = _int16(payload, 0), _int16(payload, 2)
    correlation_id = int.from_bytes(payload[4:8], "big", signed=True)
    if version not in versions.get(key, ()):
        if key != API_VERSIONS or key not in versions:
            raise Unserved(f"key {key} version {version} is not served")
        return Content("ApiVersionsRequest", version, correlation_id, None, {}, served=False)
    message = requests(edition)[key].name
    layout = spec(form(edition, message), message).at(version)
    try:
        client_id, body = _body(payload, layout)
    except Refused as refused:
        lenient = decode_request(payload, layout.edition, lenient=True)
        return Content(lenient.message, version, correlation_id, lenient.client_id, lenient.body, refused=refused)
    return Content(message, version, correlation_id, client_id, body)


@cache
def form(edition: Edition, message: str) -> Edition:
    """The edition whose names of fields a message has here: the newest, as names differ between releases where bytes do
    not; but that of a draft that changes the message."""
    return edition if is_changed_by(edition, message) else APACHE


def _body(payload: bytes, layout: Layout) -> tuple[str | None, dict[str, Any]]:
    """Client id and body. A header with tags is left to the slower decoder. Errors: ``Refused``."""
    size = _int16(payload, HEADER) if len(payload) >= HEADER + 2 else -2
    end = HEADER + 2 + max(size, 0)
    flexible = header_version(layout) == 2
    if size < -1 or len(payload) < end + flexible or (flexible and payload[end]):
        found = decode_request(payload, layout.edition)
        return found.client_id, found.body
    try:
        client_id = None if size < 0 else payload[HEADER + 2 : end].decode()
        return client_id, layout.decode(payload[end + flexible :])
    except (Refused, UnicodeDecodeError):
        found = decode_request(payload, layout.edition)  # refuses, with offsets from the start of the header
        return found.client_id, found.body


def _int16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big", signed=True)
