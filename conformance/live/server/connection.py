"""One connection of a client: frames, limits, and answers in the order of the requests.

Like a broker, a connection by default handles one request at a time: the next one is handled when the answer to the
last one is sent, and its turn comes. Whatever goes wrong on a connection closes that connection only.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.received import MOST_ENTRIES, Content, Received, Unserved, form, read
from kipcheck.conformance.live.recording.traffic import Finding, Traffic
from kipcheck.conformance.live.server.turns import Turns
from kipcheck.conformance.wire.errors import Refused, TooManyEntries
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
    entries: int = MOST_ENTRIES
    """Elements of arrays and unknown tags of one request."""
    input_bytes: int = 64 << 20
    """Received and not yet handled, of all connections together. The one that has most of them is closed."""
    output_bytes: int = 8 << 20
    """Not yet sent, of one connection."""
    all_output_bytes: int = 64 << 20
    """Not yet sent, of all connections together. The one that has most of them is closed."""
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
    turns: Turns
    input_bytes: int
    """Received and not yet handled, of all connections; connections keep it up to date."""

    def bound_input(self) -> None:
        """Closes connections while too many bytes were received and not handled."""
        ...

    def bound_output(self) -> None:
        """Closes connections while too many bytes are not sent."""
        ...

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
        self.paid_s = 0.0
        """See ``Turns``."""
        self._input = bytearray()
        self._counted = 0
        """The bytes of ``_input`` that the front has counted."""
        self._size: int | None = None
        """Of the first request in ``_input``, without the four bytes in front, once it is complete."""
        self._alone = False
        """Whether it came while no earlier request was without an answer."""
        self._progress: deque[Received] = deque()
        """Requests in progress, oldest first."""
        self._ready: dict[Received, bytes] = {}
        """Answers that wait for those to earlier requests."""
        self._waiting = self._handling = self._reading_paused = self._writing_paused = False
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
        self.front.turns.enter(self)
        self.front.script.opened(self)

    def data_received(self, data: bytes) -> None:
        self._active_s = self.front.now()
        if self._size is None and not self._progress:
            self._alone = True
        self._input += data
        self._count_input()
        self.front.bound_input()
        self.advance()

    def pause_writing(self) -> None:
        self._writing_paused = True
        stalled_s = self.front.limits.stalled_s
        self._stall = asyncio.get_running_loop().call_later(stalled_s, self.abort, "the client reads nothing")
        self.front.bound_output()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._cancel_stall()
        self.advance()

    def connection_lost(self, error: Exception | None) -> None:
        was_open, self.open = self.open, False
        self._cancel_stall()
        if self._watch is not None:
            self._watch.cancel()
        self._drop_input()
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
        self.advance()

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
        """Closes the connection without sending what is left, or handling more of what came."""
        self._end(why, self.transport.abort)
        self._drop_input()

    def reset(self, why: str = "") -> None:
        """Closes the connection so that the client gets an error (RST) and not an orderly end."""
        own = self.transport.get_extra_info("socket")
        if self.open and own is not None:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort(why)

    # Input

    @property
    def input_bytes(self) -> int:
        """Received and not yet handled."""
        return len(self._input)

    @property
    def output_bytes(self) -> int:
        """Not yet sent."""
        return self.transport.get_write_buffer_size()

    def advance(self) -> None:
        """Waits for a turn, if there is a request that can be handled."""
        if self._handling:
            return  # ``Turns`` calls it after the request
        if self._size is None and self.open:
            self._size = self._complete()
        if self._can_handle and not self._waiting:
            self._waiting = True
            self.front.turns.add(self, self._size or 0)
        self._pause_or_resume()

    @property
    def _can_handle(self) -> bool:
        """Whether there is a request, a peer, and room for another request in progress."""
        if self._size is None or not self.open or self.transport.is_closing():
            return False
        return len(self._progress) < self.window and not self._writing_paused

    def handle_next(self) -> bool:
        """Handles the first request, if it still can be handled. Returns whether it was."""
        self._waiting = False
        if not self._can_handle or self._size is None:
            return False
        end = SIZE + self._size
        data = bytes(self._input[:end])
        del self._input[:end]
        self._count_input()
        pipelined = not self._alone or bool(self._progress)
        self._size, self._alone, self._handling = None, False, True
        try:
            self._handle(data, pipelined)
        finally:
            self._handling = False
        return True

    def _complete(self) -> int | None:
        """The size of the first frame; None if it is incomplete, or if the connection was closed for it."""
        if len(self._input) < SIZE:
            return None
        size = int.from_bytes(self._input[:SIZE], "big", signed=True)
        if not 0 <= size <= self.front.limits.frame_bytes:
            self.abort("announced size below 0" if size < 0 else "announced size above the limit")
            return None
        return size if len(self._input) - SIZE >= size else None

    def _handle(self, data: bytes, pipelined: bool) -> None:
        front, now, payload = self.front, self.front.now(), data[SIZE:]
        front.pass_frame(self.number, True, data)
        try:
            content = read(payload, front.edition, front.script.versions, front.limits.entries)
        except Unserved as unserved:
            return self.abort(str(unserved))
        except TooManyEntries:
            return self.abort(f"a request with more than {front.limits.entries} entries")
        except Refused as refused:
            front.traffic.found(Finding(now, self.number, refused, payload, answered=False))
            return self.abort("a request that cannot be read")
        if content.refused is not None:
            front.traffic.found(Finding(now, self.number, content.refused, payload, answered=True))
        request = self._request(content, now, pipelined)
        self._progress.append(request)
        try:
            front.traffic.received(request)
        except TooManyEntries:
            return self.abort("a request with too many entries in its bytes")
        front.guard(self, lambda: front.script.received(request, self))

    def _request(self, found: Content, now: float, pipelined: bool) -> Received:
        return Received(
            found.message, found.version, found.correlation_id, found.client_id, found.body, self.number, self.peer[0],
            now, self.reached, found.served, pipelined,
        )  # fmt: skip

    def _count_input(self) -> None:
        self.front.input_bytes += len(self._input) - self._counted
        self._counted = len(self._input)

    def _drop_input(self) -> None:
        """Of a frame that was never completed, and of requests that were never handled, observers get the first."""
        if self._input:
            self.front.pass_frame(self.number, True, bytes(self._input[:UNREAD]))
        self._input.clear()
        self._size = None
        self._count_input()

    def _pause_or_resume(self) -> None:
        """Reads no further while a complete request waits, so that a flood stays in the client's own buffers."""
        if not self.open:
            return
        full = self._size is not None and len(self._input) > UNREAD
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
