"""Exchanges one message and its answer over non-blocking file descriptors; each read has a deadline and ends at EOF."""

import os
import selectors
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.conformance.targets.transport.framing import Framing, MessageBuffer, Unreadable, pack_message

EVIDENCE: Final = 8 << 10
"""Bytes that are kept of the end of stderr."""
PULSE: Final = 0.5
"""Seconds of silence after which the peer is checked: a child it left behind may hold its stdout open."""
BEGINNING: Final = 4 << 10
"""Bytes that are kept of the beginning of stderr after a request."""
DRAIN: Final = 64
"""The most reads of stderr after the end."""


@final
class Ended(Exception):
    """The peer will not answer any more: why, and the end of its stderr."""

    def __init__(self, cause: str, detail: str, evidence: str, unasked: bool = False, first: str = "") -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        """``crashed``, ``timeout`` or ``garbled``."""
        self.detail = detail
        self.evidence = evidence
        self.first = first
        """The beginning of what it wrote to stderr after the last request was sent."""
        self.unasked = unasked
        """The peer wrote or ended before a request was sent: that request did not cause it."""


class Peer(Protocol):
    """The process at the other end."""

    def gone(self) -> bool:
        """Whether it is known to have ended."""
        ...

    def end(self, cause: str, detail: str) -> tuple[str, str]:
        """Ends the process, and returns cause and detail, better than those observed from outside."""
        ...


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors of the peer: one to write to, one to read from, and one for its stderr."""

    write_fd: int
    read_fd: int
    stderr_fd: int | None = None


class Channel:
    """Exchanges messages with a peer. The descriptors must be non-blocking."""

    def __init__(self, peer: Peer, ends: Descriptors) -> None:
        self._peer, self._ends = peer, ends
        self._buffer = MessageBuffer()
        self._unsent = memoryview(b"")
        self._stderr = self._first_stderr = b""
        self.kept = EVIDENCE
        """Bytes of the end of stderr that are kept."""
        self.stderr_bytes = 0
        """Bytes written to stderr so far."""
        self.over = False

    @property
    def framing(self) -> Framing:
        return self._buffer.framing

    @framing.setter
    def framing(self, wanted: Framing) -> None:
        self._buffer.framing = wanted

    @property
    def stderr(self) -> str:
        """The end of its stderr, as lines without control characters."""
        return _as_lines(self._stderr)

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        """Sends a message and returns the answer; None waits for ever. Errors: ``Ended``; the peer has ended then."""
        self.quiet()
        return self.exchange_raw(pack_message(message, self.framing), seconds)

    def exchange_raw(self, text: bytes, seconds: float | None) -> dict[str, Any]:
        """The same with any bytes."""
        if self.over:
            raise Ended("crashed", "it has ended already", self.stderr)
        self._unsent, self._first_stderr = memoryview(text), b""
        try:
            return self._exchanged(seconds)
        except KeyboardInterrupt:  # it is busy with this request and would not answer another
            self.over = True
            self._peer.end("interrupted", "")
            raise

    def _exchanged(self, seconds: float | None) -> dict[str, Any]:
        deadline = None if seconds is None else time.monotonic() + seconds
        with selectors.DefaultSelector() as wait:
            wait.register(self._ends.read_fd, selectors.EVENT_READ, self._read)
            wait.register(self._ends.write_fd, selectors.EVENT_WRITE, self._send)
            if self._ends.stderr_fd is not None:
                wait.register(self._ends.stderr_fd, selectors.EVENT_READ, self._read_stderr)
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
            found = self._buffer.take()
        except Unreadable as what:
            raise self.ended("garbled", str(what)) from None
        if found is not None and self._unsent:
            raise self.ended("garbled", f"it answered before the request was complete: {str(found)[:60]}")
        return found

    def quiet(self) -> None:
        """Errors: ``Ended`` where the peer wrote without a request, or has ended."""
        if self.over:
            raise Ended("crashed", "it has ended already", self.stderr)
        self._read(unasked=True)
        if self._buffer.waiting:
            raise self.ended("garbled", f"unsolicited bytes: {self._buffer.waiting!r}", unasked=True)

    def _send(self) -> bool:
        """Whether more remains to be sent."""
        try:
            self._unsent = self._unsent[os.write(self._ends.write_fd, self._unsent[:65536]) :]
        except BlockingIOError:
            return True
        except (BrokenPipeError, ConnectionResetError):
            self._unsent = self._unsent[:0]  # what it still writes, or the end of its stdout, explains more
        return bool(self._unsent)

    def _read(self, unasked: bool = False) -> bool:
        try:
            data = os.read(self._ends.read_fd, 1 << 20)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            data = b""
        if not data:
            raise self.ended("crashed", "in the middle of a message" if self._buffer.waiting else "", unasked)
        self._buffer.feed(data)
        return True

    def _read_stderr(self) -> bool:
        """Reads stderr. Whether more may come."""
        assert self._ends.stderr_fd is not None
        try:
            data = os.read(self._ends.stderr_fd, 1 << 20)
        except BlockingIOError:
            return True
        self.record_stderr(data)
        return bool(data)

    def drain_stderr(self) -> None:
        """Keeps what stderr contains by now."""
        for _ in range(DRAIN):  # another process may keep writing, which is not this peer's output
            before = self.stderr_bytes
            if not self._read_stderr() or self.stderr_bytes == before:
                return

    def record_stderr(self, data: bytes) -> None:
        """Keeps data as evidence."""
        self.stderr_bytes += len(data)
        self._stderr = (self._stderr + data)[-self.kept :]
        self._first_stderr += data[: BEGINNING - len(self._first_stderr)]

    def ended(self, cause: str, detail: str, unasked: bool = False) -> Ended:
        """Ends the peer; the result is to be raised."""
        self.over = True
        cause, detail = self._peer.end(cause, detail)
        return Ended(cause, detail, self.stderr, unasked, _as_lines(self._first_stderr))


def _as_lines(data: bytes) -> str:
    return clean(data.decode("utf-8", "replace").replace("\r\n", "\n"))


class BaseLink:
    """What all connections to a running testee have in common."""

    def __init__(self, peer: Peer, ends: Descriptors) -> None:
        self.channel = Channel(peer, ends)
        """The channel, for callers that need its details."""
        self.dump_signal: str | None = None
        """The signal on which it writes to stderr where it hangs, if it is a child of this process."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.channel.over

    def set_framing(self, framing: Framing) -> None:
        """Sets the framing of both directions, from now on."""
        self.channel.framing = framing

    def exchange(self, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        """Sends a message and returns the answer. Errors: ``Ended``; the testee has ended then."""
        return self.channel.exchange(message, seconds)

    def garbled(self, detail: str, unasked: bool = False) -> Ended:
        """Stops the testee, whose answer is invalid; the result is to be raised."""
        return self.channel.ended("garbled", detail, unasked)
