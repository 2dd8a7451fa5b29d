"""Captures of made-up conversations, and what the command ``watch`` finds in them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.live.watch.capture_input import watch_capture
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.wire.framing import encode_request, encode_response, frame
from kipcheck.conformance.wire.pcap import Conversation, Sent, file_header, record


def exchange(
    api: str, version: int, id: int, asked: Mapping[str, Any], reported: Mapping[str, Any], client: str = "me"
) -> Iterator[Sent]:
    """A request and its answer."""
    yield Sent(frame(encode_request("apache", f"{api}Request", version, id, client, asked)), True)
    yield Sent(frame(encode_response("apache", f"{api}Response", version, id, reported)), False)


def packets(frames: Iterable[Sent]) -> list[bytes]:
    """Of one connection, with its handshake and its end."""
    made = Conversation()
    return [*made.opened(), *(each for one in frames for each in made.sent(one)), *made.closed()]


def watched(
    found: list[bytes], path: Path, spacing_us: int = 50_000, of: Edition = APACHE
) -> tuple[Watcher, list[str]]:
    """What is found in a capture, and the lines that are printed."""
    path.write_bytes(file_header() + b"".join(record(each, at * spacing_us) for at, each in enumerate(found)))
    stated: list[str] = []
    return watch_capture(str(path), of, stated.append), stated


def laws(watcher: Watcher) -> list[str]:
    """The ids of the broken ones."""
    return [each.law.id for each in watcher.reported]
