"""One connection of a client: frames, limits, and answers in the order of the requests.

Like a broker, a connection by default handles one request at a time: the next one is read when the answer to the last
one is sent. Whatever goes wrong on a connection closes that connection only.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final

from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.live.recording.received import Content, Received, Unserved, form, read
from kipcheck.conformance.live.recording.traffic import Finding, Traffic
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import encode_response, frame

SIZE: Final = 4
UNREAD: Final = 64 << 10
"""Bytes that are buffered while a request is in progress."""


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What a front bears. A connection that exceeds a limit is closed, and only that one."""

    frame_bytes: int = 8 << 20
    """The largest announced size of a request."""
    connections: int = 1000
    """Open at once; a further one is closed at once."""
    input_bytes: int = 256 << 20
    """Received and not yet handled, of all connections together."""
    output_bytes: int = 8 << 20
    """Not yet sent, of one connection."""
    idle_s: float = 600.0
    """Without a byte from the client, and without a request in progress (``connections.max.idle.ms``)."""
    stalled_s: float = 30.0
    """While the client reads nothing of what is sent."""


class Script(Protocol):
    """Decides what requests are answered with, and when."""

    @property
    def versions(self) -> Mapping[int, range]:
        """The served versions by API key; a request in another one closes its connection."""
        ...

    def opened(self, connection: "Connection") -> None: ...
    def received(self, request: Received, connection: "Connection") -> None:
        """Answers with ``connection.answer``, now or later, or does something else to the connection."""
        ...

    def closed(self, connection: "Connection") -> None: ...


class Server(Protocol):
    """What a connection needs of the front that accepted it."""

    script: Script
    edition: Edition
    limits: Limits
    traffic: Traffic
    input_bytes: int
    """Received and not yet handled, of all connections; connections keep it up to date."""

    def now(self) -> float:
        """Seconds since the front was created."""
        ...

    def admit(self, connection: "Connection") -> bool:
        """Whether there is room for another connection."""
        ...

    def closed(self, connection: "Connection", why: str) -> None: ...
    def pass_frame(self, connection: int, by_client: bool, data: bytes) -> None: ...
    def guard(self, connection: "Connection", act: Callable[[], None]) -> None:
        """Runs a part of the script. A defect of ours closes the connection, and is shown on stderr."""
        ...


class Connection(asyncio.Protocol):
    window = 1
    """The most requests in progress; a script may raise it, to receive requests before it answers earlier ones."""

    def __init__(self, front: Server, number: int) -> None:
        self.front = front
        self.number = number
        self.peer = self.reached = ("", 0)
        self.open = False
        self._input = bytearray()
        self._counted = 0
        """The bytes of ``_input`` that the front has counted."""
        self._progress: deque[Received] = deque()
        """Requests in progress, oldest first."""
        self._ready: dict[Received, bytes] = {}
        """Answers that wait for those to earlier requests."""
        self._advancing = self._reading_paused = self._writing_paused = False
        self._active_s = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._why = ""

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self.peer = (str(peer[0]), int(peer[1]))
        own = transport.get_extra_info("sockname") or ("", 0)
        self.reached = (str(own[0]), int(own[1]))
        if not self.front.admit(self):
            self._why = "too many connections"
            return self.transport.abort()
        self.open = True
        self._active_s = self.front.now()
        self._watch_idle()
        self.front.script.opened(self)

    def data_received(self, data: bytes) -> None:
        self._active_s = self.front.now()
        self._input += data
        self._advance(just_read=True)

    def pause_writing(self) -> None:
        self._writing_paused = True
        stalled_s = self.front.limits.stalled_s
        self._stall = asyncio.get_running_loop().call_later(stalled_s, self.abort, "the client reads nothing")

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._cancel_stall()
        self._advance()

    def connection_lost(self, error: Exception | None) -> None:
        was_open, self.open = self.open, False
        self._cancel_stall()
        if self._watch is not None:
            self._watch.cancel()
        if self._input:  # a frame that was never completed, and requests that were never handled
            self.front.pass_frame(self.number, True, bytes(self._input))
        self._input.clear()
        self._count_input()
        self._progress.clear()
        self._ready.clear()
        self.front.closed(self, self._why)
        if was_open:
            self.front.script.closed(self)

    # Called by scripts

    def answer(self, request: Received, body: Mapping[str, Any], version: int | None = None) -> None:
        """Answers a request, after all earlier requests of the connection. ``version``: of the layout; default: the
        request's. A connection that is closed meanwhile gets nothing; a wrong body is a defect of ours."""
        if self.open:
            self.front.guard(self, lambda: self._answer(request, body, request.version if version is None else version))

    def _answer(self, request: Received, body: Mapping[str, Any], version: int) -> None:
        edition = form(self.front.edition, request.response)
        payload = encode_response(edition, request.response, version, request.correlation_id, body)
        self.front.traffic.answered(self.front.now(), request, body)
        self.answer_bytes(request, frame(payload))

    def answer_bytes(self, request: Received, data: bytes) -> None:
        """Answers with these bytes, which may be anything, in place of a frame."""
        if not self.open or request not in self._progress:
            return
        self._ready[request] = data
        while self._progress and self._progress[0] in self._ready:
            self.write(self._ready.pop(self._progress.popleft()))
        self._advance()

    def write(self, data: bytes) -> None:
        """Sends bytes at once, whatever is in progress."""
        if not self.open or not data or self.transport.is_closing():
            return
        self.front.pass_frame(self.number, False, data)
        self.transport.write(data)
        self._active_s = self.front.now()
        if self.transport.get_write_buffer_size() > self.front.limits.output_bytes:
            self.abort("too many unsent bytes")

    def close(self, why: str = "") -> None:
        """Closes the connection after what is already written; what the client does not read in time is dropped."""
        self._end(why, self.transport.close)
        self._stall = asyncio.get_running_loop().call_later(self.front.limits.stalled_s, self.transport.abort)

    def abort(self, why: str = "") -> None:
        """Closes the connection without sending what is left."""
        self._end(why, self.transport.abort)

    def reset(self, why: str = "") -> None:
        """Closes the connection so that the client gets an error (RST) and not an orderly end."""
        own = self.transport.get_extra_info("socket")
        if self.open and own is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort(why)

    # Input

    def _advance(self, just_read: bool = False) -> None:
        """Handles complete requests, as many as may be in progress. All but the first one in bytes that were just read
        came while an earlier one was not answered."""
        if self._advancing:
            return  # an answer was given within the loop below, which goes on
        self._advancing, at = True, 0
        pipelined = not just_read
        try:
            while self.open and len(self._progress) < self.window and not self._writing_paused:
                size = self._size(at)
                if size is None:
                    break
                payload = bytes(self._input[at + SIZE : at + SIZE + size])
                at += SIZE + size
                self._handle(payload, pipelined or bool(self._progress))
                pipelined = True
        finally:
            self._advancing = False
            del self._input[:at]
            self._count_input()
            self._pause_or_resume()

    def _size(self, at: int) -> int | None:
        """The size of the frame that begins there; None if it is incomplete, or if the connection was closed for it."""
        if len(self._input) - at < SIZE:
            return None
        size = int.from_bytes(self._input[at : at + SIZE], "big", signed=True)
        if not 0 <= size <= self.front.limits.frame_bytes:
            self.front.pass_frame(self.number, True, bytes(self._input[at : at + UNREAD]))
            self._input.clear()
            self.abort(f"announced size {size}" if size < 0 else "announced size above the limit")
            return None
        return size if len(self._input) - at - SIZE >= size else None

    def _handle(self, payload: bytes, pipelined: bool) -> None:
        front, now = self.front, self.front.now()
        front.pass_frame(self.number, True, frame(payload))
        try:
            content = read(payload, front.edition, front.script.versions)
        except Unserved as unserved:
            return self.abort(str(unserved))
        except Refused as refused:
            front.traffic.found(Finding(now, self.number, refused, payload, answered=False))
            return self.abort("a request that cannot be read")
        if content.refused is not None:
            front.traffic.found(Finding(now, self.number, content.refused, payload, answered=True))
        request = self._request(content, now, pipelined)
        self._progress.append(request)
        front.traffic.received(request)
        front.guard(self, lambda: front.script.received(request, self))

    def _request(self, found: Content, now: float, pipelined: bool) -> Received:
        return Received(
            found.message, found.version, found.correlation_id, found.client_id, found.body, self.number, self.peer[0],
            now, self.reached, found.served, pipelined,
        )  # fmt: skip

    def _count_input(self) -> None:
        self.front.input_bytes += len(self._input) - self._counted
        self._counted = len(self._input)
        if self.open and self.front.input_bytes > self.front.limits.input_bytes:
            self.abort("too many bytes received and not handled")

    def _pause_or_resume(self) -> None:
        """Reads no further while requests in progress are many, so that a flood stays in the client's own buffers."""
        if not self.open:
            return
        full = len(self._input) > UNREAD and (len(self._progress) >= self.window or self._writing_paused)
        if full and not self._reading_paused:
            self.transport.pause_reading()
        elif not full and self._reading_paused:
            self.transport.resume_reading()
        self._reading_paused = full

    # Time

    def _watch_idle(self) -> None:
        idle_s, now = self.front.limits.idle_s, self.front.now()
        if self._progress:
            self._active_s = now
        if now - self._active_s >= idle_s:
            return self.abort("idle")
        wait = self._active_s + idle_s - now
        self._watch = asyncio.get_running_loop().call_later(wait, self._watch_idle)

    def _cancel_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _end(self, why: str, act: Callable[[], None]) -> None:
        if not self.open:
            return
        self.open = False
        self._why = why
        act()
        self.front.script.closed(self)
