"""Reads requests as a broker does: header, key and version, then the body, strictly first."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.wire.codec import LOCATED_BYTES
from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.framing import decode_request, header_version, requests, shifted
from kipcheck.conformance.wire.primitives import Rough
from kipcheck.conformance.wire.schema import Layout, is_changed_by, spec
from kipcheck.conformance.wire.tags import unknown_tags

API_VERSIONS: Final = 18
"""The only API that is answered in a version that is not served (KIP-511)."""
HEADER: Final = 8
"""Bytes of key, version and correlation id."""
MOST_ENTRIES: Final = 20_000
"""Elements of arrays, at all depths, and unknown tags of a request. Kafka has no such limit up to 4.2.1, then one of
1,000,000 for each array (class ``Readable``). A topic here has at most 10,000 partitions."""


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

    @property
    def group(self) -> str:
        """The id of the group that it is about; empty: of none, or of several."""
        return str(self.body.get("groupId") or "")


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


def read(payload: bytes, edition: Edition, versions: Mapping[int, range], most: int = MOST_ENTRIES) -> Content:
    """The content of a frame. ``versions``: the served versions by API key.

    Errors: ``Unserved``; ``Refused``; ``TooManyEntries`` for more than ``most`` elements of arrays and unknown tags.
    """
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
        client_id, body = _body(payload, layout, Entries(most))
    except Refused as refused:
        lenient = decode_request(payload, layout.edition, lenient=True, entries=Entries(most))
        return Content(lenient.message, version, correlation_id, lenient.client_id, lenient.body, refused=refused)
    return Content(message, version, correlation_id, client_id, body)


@cache
def form(edition: Edition, message: str) -> Edition:
    """The edition whose names of fields a message has here: the newest, as names differ between releases where bytes do
    not; but that of a draft that changes the message."""
    return edition if is_changed_by(edition, message) else APACHE


def _body(payload: bytes, layout: Layout, entries: Entries) -> tuple[str | None, dict[str, Any]]:
    """Client id and body. Errors: ``Refused``, with offsets from the start of the header; ``TooManyEntries``."""
    size, flexible = _int16(payload, HEADER), header_version(layout) == 2
    end = HEADER + 2 + max(size, 0)
    try:
        if size < -1 or len(payload) < end + flexible:
            raise Rough("truncated")
        client_id = None if size < 0 else payload[HEADER + 2 : end].decode()
        if flexible:
            end = unknown_tags(payload, end, entries.take)[0] if payload[end] else end + 1
    except (Rough, IndexError, UnicodeDecodeError):
        if len(payload) <= LOCATED_BYTES:
            found = decode_request(payload, layout.edition)  # refuses
            return found.client_id, found.body
        raise Refused("truncated", "the header cannot be read", message="RequestHeader", version=1) from None
    try:
        return client_id, layout.codec.decode_bounded(payload[end:], entries)
    except Refused as refused:
        raise shifted(refused, end) from None


def _int16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big", signed=True)
