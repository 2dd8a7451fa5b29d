"""What passes between a client and a scripted broker, as plain events with their times in milliseconds."""

import asyncio
import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.contents import Contents
from kipcheck.conformance.live.recording.embedded import EmbeddedBytes
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Finding, Frame
from kipcheck.conformance.live.server.topics import Topics

IDLE_S: Final = 0.01
SIZE: Final = 4
"""Bytes of the size in front of a frame."""
SHOWN_BYTES: Final = 2000


class Recorder:
    """An observer of traffic. Events are taken from it after each step."""

    def __init__(self, edition: Edition, topics: Topics) -> None:
        self.contents = Contents(edition, topics)
        self._embedded = EmbeddedBytes(edition)
        self._frame = b""
        self.events: list[dict[str, Any]] = []

    def add(self, what: str, at_s: float, **more: Any) -> None:
        self.events.append({"what": what, "ms": round(at_s * 1000), **more})

    def take(self) -> list[dict[str, Any]]:
        found, self.events = self.events, []
        return found

    def forget(self, what: str, first: int) -> None:
        """Drops events of that kind, from the number of the first on."""
        self.events[first:] = [each for each in self.events[first:] if each["what"] != what]

    # Called by the front

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        self.add("opened", at_s, connection=connection)

    def closed(self, at_s: float, connection: int, why: str) -> None:
        self.add("closed", at_s, connection=connection, why=why)

    def passed(self, frame: Frame) -> None:
        if frame.by_client:
            self._frame = frame.data

    def received(self, request: Received) -> None:
        more = self.contents.asked(request)
        self.add(
            "request", request.at_s, connection=request.connection, api=request.api, version=request.version, **more
        )
        payload = self._frame[SIZE:]  # a request is received when its frame has passed
        for each in self._embedded.asked(request.connection, request.api, request.version, request.body, payload):
            self.events.append({"ms": round(request.at_s * 1000), "connection": request.connection, **each})

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        more = self.contents.answered(request, body)
        self.add("answer", at_s, connection=request.connection, api=request.api, version=request.version, **more)
        self._embedded.named(request.connection, request.api, request.body, body)

    def found(self, finding: Finding) -> None:
        refused = finding.refused
        self.add(
            "refused", finding.at_s, connection=finding.connection, message=refused.message, version=refused.version,
            kind=refused.kind, why=str(refused), hex=finding.payload[:SHOWN_BYTES].hex(),
        )  # fmt: skip


class Idle:
    """An idle loop: by how many milliseconds it was late at most since it was asked last."""

    def __init__(self, notable_ms: float = inf, note: Callable[[], None] = lambda: None) -> None:
        """``note`` is called as soon as it was late by ``notable_ms``."""
        self._late_ms = 0.0
        self._notable_ms = notable_ms
        self._note = note
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            begun = time.monotonic()
            await asyncio.sleep(IDLE_S)
            self._late_ms = max(self._late_ms, (time.monotonic() - begun - IDLE_S) * 1000)
            if self._late_ms >= self._notable_ms:
                self._note()

    def late_ms(self) -> int:
        found, self._late_ms = self._late_ms, 0.0
        return round(found)

    def close(self) -> None:
        self._task.cancel()
