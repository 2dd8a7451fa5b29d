"""What a script does to the answer to one request, and to its connection."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol, cast, final

from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.protocols.client import ops
from kipcheck.conformance.protocols.client.terms import BY_SCRIPT
from kipcheck.conformance.wire.framing import encode_response, frame
from kipcheck.conformance.wire.schema import Layout, spec

PIECE_S: Final = 0.001
"""Between two bytes."""
PIECES: Final = 256
"""The most bytes that come alone: the others follow at once, since each wait is longer on a busy machine."""
TOGETHER_S: Final = 0.3
"""How long an answer waits for the following ones."""
TAGS: Final = ({"tag": 77, "data": b"kipcheck"}, {"tag": 1001, "data": b""})
THROTTLE: Final = "throttleTimeMs"
UNKNOWN_TAGS: Final = "_unknownTaggedFields"
Handle = Callable[[Received, Connection], None]


class Disturbance(Protocol):
    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        """``handle`` answers the request as the broker does."""
        ...


@final
@dataclass(frozen=True, slots=True)
class LateAnswer:
    ms: int

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        handled = partial(connection.front.guard, connection, lambda: handle(request, connection))
        asyncio.get_running_loop().call_later(self.ms / 1000, handled)


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    ms: int
    """Until the connection is closed."""

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        asyncio.get_running_loop().call_later(self.ms / 1000, connection.abort, BY_SCRIPT)


@final
@dataclass(frozen=True, slots=True)
class ResetConnection:
    when: Literal["before", "amid", "after"] = "before"

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        if self.when == "before":
            return connection.reset(BY_SCRIPT)
        handle(request, _changed(connection, self._write))

    def _write(self, connection: Connection, request: Received, data: bytes) -> None:
        connection.write(data[: len(data) // 2] if self.when == "amid" else data)
        connection.reset(BY_SCRIPT)


@final
@dataclass(frozen=True, slots=True)
class InPieces:
    left: int = PIECES

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        handle(request, _changed(connection, self._write))

    def _write(self, connection: Connection, request: Received, data: bytes) -> None:
        if len(data) == 1 or not self.left:
            return connection.answer_bytes(request, data)
        connection.write(data[:1])
        rest = InPieces(self.left - 1)
        asyncio.get_running_loop().call_later(PIECE_S, rest._write, connection, request, data[1:])


@final
@dataclass(frozen=True, slots=True)
class InOneSegment:
    """The answer comes with those to the requests that the client sends within the next 300 ms."""

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        connection.window = 2
        handle(request, _changed(connection, self._hold))

    def _hold(self, connection: Connection, request: Received, data: bytes) -> None:
        asyncio.get_running_loop().call_later(TOGETHER_S, self._write, connection, request, data)

    def _write(self, connection: Connection, request: Received, data: bytes) -> None:
        connection.window = 1
        own = connection.transport.get_extra_info("socket")
        option = getattr(socket, "TCP_CORK", None)
        if own is None or option is None or not connection.open:
            return connection.answer_bytes(request, data)
        own.setsockopt(socket.IPPROTO_TCP, option, 1)
        connection.answer_bytes(request, data)
        if connection.open:
            own.setsockopt(socket.IPPROTO_TCP, option, 0)


@final
@dataclass(frozen=True, slots=True)
class WithTags:
    """The answer has tagged fields that no release has, in each structure; versions without tags stay as they are."""

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        handle(request, _changed(connection, Connection.answer_bytes, _with_tags))


@final
@dataclass(frozen=True, slots=True)
class ThrottledAnswer:
    """The answer says for how long the client is throttled; the connection is muted meanwhile (KIP-219)."""

    ms: int

    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        handle(request, _changed(connection, self._write, self._throttled))

    def _throttled(self, body: Any, layout: Layout) -> Any:
        has_time = any(slot.name == THROTTLE for slot in layout.slots)
        return {**body, THROTTLE: self.ms} if has_time else body

    def _write(self, connection: Connection, request: Received, data: bytes) -> None:
        connection.window = 0
        asyncio.get_running_loop().call_later(self.ms / 1000, self._unmute, connection)
        connection.answer_bytes(request, data)

    def _unmute(self, connection: Connection) -> None:
        connection.window = 1
        connection.advance()


def of(event: ops.Disturbed) -> Disturbance:
    """The disturbance that a step names."""
    match event:
        case ops.Late(ms=ms):
            return LateAnswer(ms)
        case ops.Silent(ms=ms):
            return NoAnswer(ms)
        case ops.Reset(when=when):
            return ResetConnection(when)
        case ops.Pieces():
            return InPieces()
        case ops.Together():
            return InOneSegment()
        case ops.Tags():
            return WithTags()
        case ops.Throttle(ms=ms):
            return ThrottledAnswer(ms)


def _with_tags(body: Any, layout: Layout) -> Any:
    return _tagged(body) if layout.flexible else body


def _tagged(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {**{name: _tagged(each) for name, each in value.items()}, UNKNOWN_TAGS: list(TAGS)}
    return [_tagged(each) for each in value] if isinstance(value, list | tuple) else value


Write = Callable[[Connection, Received, bytes], None]
Change = Callable[[Any, Layout], Any]


def _changed(connection: Connection, write: Write, change: Change | None = None) -> Connection:
    return cast(Connection, _Changed(connection, write, change))


@final
@dataclass(frozen=True, slots=True)
class _Changed:
    """A connection for one answer, which writes it otherwise."""

    connection: Connection
    write: Write
    change: Change | None

    def answer(self, request: Received, body: Mapping[str, Any], version: int | None = None) -> None:
        if self.connection.open:
            self.connection.front.guard(self.connection, lambda: self._answer(request, body, version))

    def _answer(self, request: Received, body: Mapping[str, Any], version: int | None) -> None:
        front, layout = self.connection.front, request.version if version is None else version
        edition = form(front.edition, request.response)
        if self.change is not None:
            body = self.change(body, spec(edition, request.response).at(layout))
        data = frame(encode_response(edition, request.response, layout, request.correlation_id, body))
        front.traffic.answered(front.now(), request, body)
        self.write(self.connection, request, data)

    def abort(self, why: str) -> None:
        self.connection.abort(why)
