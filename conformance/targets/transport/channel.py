"""One message there, one back, over file descriptors that never block: with a deadline and an end at every read."""

import os
import selectors
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from kipcheck.conformance.core.foreign import clean
from kipcheck.conformance.targets.transport.framing import Framing, Gathered, Unreadable, packed

EVIDENCE: Final = 8 << 10
"""What is kept of the end of stderr, in bytes."""
PULSE: Final = 0.5
"""Seconds of silence, after which the other end is looked at: what it left behind may hold its stdout open."""
DRAIN: Final = 64
"""Reads of what is left on stderr at the end."""


@final
class Ended(Exception):
    """The other end will answer no more: why, and what it last wrote to stderr."""

    def __init__(self, cause: str, detail: str, evidence: str, unasked: bool = False) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        """``crashed``, ``timeout`` or ``garbled``."""
        self.detail = detail
        self.evidence = evidence
        self.unasked = unasked
        """It spoke or ended before it was asked: what was to be asked is not guilty of it."""


class Peer(Protocol):
    """Who is at the other end."""

    def gone(self) -> bool:
        """Is it known to have ended?"""
        ...

    def end(self, cause: str, detail: str) -> tuple[str, str]:
        """Make sure that it has ended, and say how it did: better than what was seen from outside."""
        ...


@dataclass(frozen=True, slots=True)
class Ends:
    """File descriptors: where it hears, where it speaks, and where it makes noise."""

    hears: int
    speaks: int
    noise: int | None = None


class Talk:
    """A conversation with a peer; whoever makes it sees to it that the descriptors do not block."""

    def __init__(self, peer: Peer, ends: Ends) -> None:
        self._peer, self._ends = peer, ends
        self._gathered = Gathered()
        self._unsent = memoryview(b"")
        self._noise = b""
        self.kept = EVIDENCE
        """Bytes of the end of stderr."""
        self.noise_bytes = 0
        """Written to stderr so far."""
        self.over = False

    @property
    def framing(self) -> Framing:
        return self._gathered.framing

    @framing.setter
    def framing(self, wanted: Framing) -> None:
        self._gathered.framing = wanted

    @property
    def noise(self) -> str:
        """The end of what it wrote to stderr: lines, with nothing in them that steers a terminal."""
        return clean(self._noise.decode("utf-8", "replace").replace("\r\n", "\n"))

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        """Say one message, and hear one; None waits for ever. Errors: ``Ended``; the peer is gone then."""
        self.quiet()
        return self.exchange_raw(packed(message, self.framing), seconds)

    def exchange_raw(self, text: bytes, seconds: float | None) -> dict[str, Any]:
        """The same with bytes that need be no message."""
        if self.over:
            raise Ended("crashed", "it has ended already", self.noise)
        self._unsent = memoryview(text)
        try:
            return self._exchanged(seconds)
        except KeyboardInterrupt:  # it is in the middle of this, and would not answer anything else for a while
            self.over = True
            self._peer.end("interrupted", "")
            raise

    def _exchanged(self, seconds: float | None) -> dict[str, Any]:
        deadline = None if seconds is None else time.monotonic() + seconds
        with selectors.DefaultSelector() as wait:
            wait.register(self._ends.speaks, selectors.EVENT_READ, self._listen)
            wait.register(self._ends.hears, selectors.EVENT_WRITE, self._send)
            if self._ends.noise is not None:
                wait.register(self._ends.noise, selectors.EVENT_READ, self._endure)
            while (answer := self._take()) is None:
                left = PULSE if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise self.ended("timeout", f"no answer within {seconds:g} s")
                ready = wait.select(min(left, PULSE))
                for key, _ in ready:
                    if not key.data():
                        wait.unregister(key.fd)
                if not ready and self._peer.gone():
                    raise self.ended("crashed", "")
        return answer

    def _take(self) -> dict[str, Any] | None:
        try:
            found = self._gathered.take()
        except Unreadable as what:
            raise self.ended("garbled", str(what)) from None
        if found is not None and self._unsent:
            raise self.ended("garbled", f"it answered before all was asked: {str(found)[:60]}")
        return found

    def quiet(self) -> None:
        """Errors: ``Ended`` where it has spoken although nothing was asked, or is gone."""
        if self.over:
            raise Ended("crashed", "it has ended already", self.noise)
        self._listen(unasked=True)
        if self._gathered.waiting:
            raise self.ended("garbled", f"it spoke unasked: {self._gathered.waiting!r}", unasked=True)

    def _send(self) -> bool:
        """Is there more to be sent?"""
        try:
            self._unsent = self._unsent[os.write(self._ends.hears, self._unsent[:65536]) :]
        except BlockingIOError:
            return True
        except (BrokenPipeError, ConnectionResetError):
            self._unsent = self._unsent[:0]  # what it still says, or the end of its stdout, tells more
        return bool(self._unsent)

    def _listen(self, unasked: bool = False) -> bool:
        try:
            data = os.read(self._ends.speaks, 1 << 20)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            data = b""
        if not data:
            raise self.ended("crashed", "in the middle of a message" if self._gathered.waiting else "", unasked)
        self._gathered.feed(data)
        return True

    def _endure(self) -> bool:
        """Is there, or will there be, more noise?"""
        assert self._ends.noise is not None
        try:
            data = os.read(self._ends.noise, 1 << 20)
        except BlockingIOError:
            return True
        self.note(data)
        return bool(data)

    def hush(self) -> None:
        """Keep what noise there is by now."""
        for _ in range(DRAIN):  # what is left of a flood that somebody else keeps up is nobody's evidence
            before = self.noise_bytes
            if not self._endure() or self.noise_bytes == before:
                return

    def note(self, data: bytes) -> None:
        """Keep it as evidence."""
        self.noise_bytes += len(data)
        self._noise = (self._noise + data)[-self.kept :]

    def ended(self, cause: str, detail: str, unasked: bool = False) -> Ended:
        """The peer is brought to its end, which is told."""
        self.over = True
        cause, detail = self._peer.end(cause, detail)
        return Ended(cause, detail, self.noise, unasked)


class Life:
    """One life of a testee, as far as it is talk: what the ways to reach one have in common."""

    def __init__(self, peer: Peer, ends: Ends) -> None:
        self.talk = Talk(peer, ends)
        """What is said, for those who look closer."""
        self.dump_signal: str | None = None
        """What makes it tell on stderr where it is, where it is a process of ours."""

    @property
    def over(self) -> bool:
        """Has it ended?"""
        return self.talk.over

    def speak(self, framing: Framing) -> None:
        """From now on, both ways."""
        self.talk.framing = framing

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        """Say one message, and hear one. Errors: ``Ended``; the other end is gone then."""
        return self.talk.exchange(message, seconds)

    def garbled(self, detail: str, unasked: bool = False) -> Ended:
        """What it said makes no sense; it is stopped."""
        return self.talk.ended("garbled", detail, unasked)
