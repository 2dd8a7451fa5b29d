"""What a script does to the answer to one request: it comes late, in pieces, or the connection is reset."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, cast, final

from kipcheck.conformance.live.connection import Connection
from kipcheck.conformance.live.received import Received, form
from kipcheck.conformance.wire.framing import encode_response, frame

PIECE_S: Final = 0.001
"""Between two bytes."""
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
class ResetConnection:
    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        connection.reset("by the script")


@final
@dataclass(frozen=True, slots=True)
class InPieces:
    def apply(self, request: Received, connection: Connection, handle: Handle) -> None:
        handle(request, cast(Connection, _Slowly(connection)))


@final
@dataclass(frozen=True, slots=True)
class _Slowly:
    """A connection for one answer."""

    connection: Connection

    def answer(self, request: Received, body: Mapping[str, Any], version: int | None = None) -> None:
        front, layout = self.connection.front, request.version if version is None else version
        edition = form(front.edition, request.response)
        data = frame(encode_response(edition, request.response, layout, request.correlation_id, body))
        front.traffic.answered(front.now(), request, body)
        self._write(request, data)

    def _write(self, request: Received, data: bytes) -> None:
        if len(data) == 1:
            return self.connection.answer_bytes(request, data)
        self.connection.write(data[:1])
        asyncio.get_running_loop().call_later(PIECE_S, self._write, request, data[1:])

    def abort(self, why: str) -> None:
        self.connection.abort(why)
