"""What passes between a client and a scripted broker, as events with their times in milliseconds."""

import asyncio
import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.contents import Contents, ms_of
from kipcheck.conformance.live.recording.embedded import EmbeddedBytes
from kipcheck.conformance.live.recording.fetch_sessions import ObservedSessions
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Finding, Frame, Observer
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.client import events
from kipcheck.conformance.wire.errors import Refused

IDLE_S: Final = 0.01
SIZE: Final = 4
"""Bytes of the size in front of a frame."""
SHOWN_BYTES: Final = 2000


class Recorder(Observer):
    """Events are taken from it after each step."""

    def __init__(self, edition: Edition, topics: Topics) -> None:
        self.contents = Contents(edition, topics)
        self._embedded = EmbeddedBytes(edition)
        self._sessions = ObservedSessions()
        self._frame = b""
        self.events: list[events.Event] = []

    def add(self, event: events.Event) -> None:
        self.events.append(event)

    def take(self) -> list[events.Event]:
        found, self.events = self.events, []
        return found

    def forget_idle(self, first: int) -> None:
        """Drops ``Idle`` events, from the number of the first on."""
        self.events[first:] = [event for event in self.events[first:] if not isinstance(event, events.Idle)]

    # Called by the front

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        self.add(events.Opened(ms_of(at_s), connection))

    def closed(self, at_s: float, connection: int, why: str) -> None:
        self.add(events.Closed(ms_of(at_s), connection, why))

    def passed(self, frame: Frame) -> None:
        if frame.by_client:
            self._frame = frame.data

    def received(self, request: Received) -> None:
        request = self._sessions.whole(request)
        sent = self.contents.sent(request)
        self.add(self.contents.asked(request, sent))
        # A request is received when its frame has passed.
        self.events += self._embedded.asked(request, sent, self._frame[SIZE:])

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        self._sessions.answered(request, body)
        reply = self.contents.reply(request, body)
        self.add(self.contents.answered(at_s, request, body, self.contents.sent(request), reply))
        self._embedded.named(request, reply)

    def found(self, finding: Finding) -> None:
        self.add(refused_event(ms_of(finding.at_s), finding.connection, finding.refused, finding.payload))


def refused_event(ms: int, connection: int, why: Refused, payload: bytes) -> events.RequestRefused:
    shown = payload[:SHOWN_BYTES].hex()
    return events.RequestRefused(ms, connection, why.message, why.version, why.kind, str(why), shown)


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
