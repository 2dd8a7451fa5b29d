"""Prints traffic: one line for each request and response, and the bytes of requests that are not well formed."""

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Finding, Observer
from kipcheck.conformance.wire.codec import LOCATED_BYTES
from kipcheck.conformance.wire.explain import text
from kipcheck.conformance.wire.explain_frame import find
from kipcheck.conformance.wire.workbench import Unreadable

WIDEST: Final = 300
"""Characters of a body."""
LONGEST_BYTES: Final = 32
MOST_BYTES: Final = 2048
"""Of a damaged request, in hex, where it cannot be explained."""


class Log(Observer):
    """``print_line`` gets lines without line ends."""

    def __init__(self, edition: str, print_line: Callable[[str], None]) -> None:
        self.edition = edition
        self.print_line = print_line

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        self._line(at_s, connection, f"opened by {peer[0]}:{peer[1]}")

    def closed(self, at_s: float, connection: int, why: str) -> None:
        self._line(at_s, connection, f"closed by this broker: {why}" if why else "closed")

    def received(self, request: Received) -> None:
        self._line(request.at_s, request.connection, f"> {_title(request)} {shown(request.body)}")

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        waited = (at_s - request.at_s) * 1000
        self._line(at_s, request.connection, f"< {_title(request)} after {waited:.1f} ms {shown(body)}")

    def found(self, finding: Finding) -> None:
        outcome = "answered all the same" if finding.answered else "connection closed"
        self._line(finding.at_s, finding.connection, f"! {finding.refused} ({outcome})")
        for line in annotated(finding, self.edition).splitlines():
            self.print_line(one_line(f"    {line}"))

    def _line(self, at_s: float, connection: int, what: str) -> None:
        self.print_line(one_line(f"{at_s:9.3f} #{connection} {what}"))


def annotated(finding: Finding, edition: str) -> str:
    """The bytes of the request with their meanings, up to the damage; of a large one, its first bytes."""
    if len(finding.payload) > LOCATED_BYTES:
        return finding.payload[:MOST_BYTES].hex()
    try:
        return text(find(finding.payload, edition, None, None).explained)
    except Unreadable:
        return finding.payload[:MOST_BYTES].hex()


def shown(body: Mapping[str, Any]) -> str:
    """A body as JSON, cut off where it is long."""
    found = json.dumps(body, default=_plain, ensure_ascii=False)
    return found if len(found) <= WIDEST else f"{found[:WIDEST]}... ({len(found)} characters)"


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        more = len(value) > LONGEST_BYTES
        return f"{value[:LONGEST_BYTES].hex()}{f'... ({len(value)} bytes)' if more else ''}"
    return str(value) if isinstance(value, uuid.UUID) else repr(value)


def _title(request: Received) -> str:
    return f"{request.api} v{request.version} id {request.correlation_id} {request.client_id or '-'}:"
