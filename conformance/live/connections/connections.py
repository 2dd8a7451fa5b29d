"""Connections to the brokers of a running cluster: each carries one request at a time.

A coordinator parks requests, and a broker reads nothing more from a connection with a parked request. So a request
takes a connection that has none, and gives it back when it is answered: as many are open as requests are parked.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.secure_connection import Closed, NotOpened, Opened, open_secured, wrong_size
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.wire.errors import Entries, Refused, TooManyEntries
from kipcheck.conformance.wire.framing import LARGEST, decode_response, encode_request, frame

EDITION: Final = "apache"
"""Its layouts have the versions of all releases."""
NAME: Final = "kipcheck"
ANSWERED_S: Final = 30.0
"""The default time for a whole answer. Brokers take up to 15 s to create topics or to update features."""
PARKED: Final = frozenset({"JoinGroup", "SyncGroup"})
"""Requests that brokers answer when other members have acted: who sends them watches the time."""
MOST_ENTRIES: Final = 1_000_000
"""Elements of arrays in an answer."""
MOST_PLAIN: Final = 4 << 20
"""Bytes of an answer that is read by hand."""


class Garbled(Exception):
    """The broker sent something that is no answer to the request."""


@dataclass(slots=True, eq=False)
class _Connection:
    opened: Opened
    correlation: int = 0

    def next_number(self) -> int:
        """The correlation id of the next request: from 1 on."""
        self.correlation += 1
        return self.correlation

    @property
    def is_usable(self) -> bool:
        return not self.opened.reader.at_eof() and now() < self.opened.ends_s


@dataclass(slots=True)
class Connections:
    """Those to one broker. Used in one event loop."""

    host: str
    port: int
    security: Security = OPEN
    answered_s: float = ANSWERED_S
    """The time for a whole answer, unless its request is parked."""
    opened: int = 0
    repeated: int = 0
    """Responses to requests that had one before."""
    refused: int = 0
    """Connections that were not accepted."""
    _free: list[_Connection] = field(default_factory=list)
    _all: set[_Connection] = field(default_factory=set)

    async def reach(self) -> None:
        """Opens the first connection, if there was none. Errors: ``Closed``; ``Rejected``."""
        if not self.opened:
            self._free.append(await self._take())

    async def ask(self, api: str, version: int, client: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the response. Errors: ``Closed``, ``Garbled``; ``Refused`` for a body that has no bytes."""
        connection = await self._take()
        number = connection.next_number()
        try:
            sent = encode_request(EDITION, f"{api}Request", version, number, client, body)
            async with self._in_time(f"{api} v{version}", api in PARKED):
                data = await self._exchange(connection, number, sent)
            found = decode_response(data, edition(EDITION), f"{api}Response", version, True, Entries(MOST_ENTRIES))
        except TooManyEntries:
            self._drop(connection)
            raise Garbled(f"the response to {api} v{version} has more than {MOST_ENTRIES} entries") from None
        except Refused as wrong:
            self._drop(connection)
            raise Garbled(f"the response to {api} v{version} cannot be read: {wrong}") from None
        except BaseException:
            self._drop(connection)
            raise
        if found.correlation_id != number:
            self._drop(connection)
            raise Garbled(f"the response to {api} has correlation id {found.correlation_id} in place of {number}")
        self._free.append(connection)
        return found.body

    async def ask_plain(self, key: int, version: int, body: bytes) -> bytes:
        """As ``ask``, for a message without a declaration, in a version without tags."""
        return (await self._ask_bytes(key, version, body))[4:]

    async def ask_flexible(self, key: int, version: int, body: bytes) -> bytes:
        """The same in a version with tags, of which the headers have none."""
        return (await self._ask_bytes(key, version, b"\0" + body))[5:]

    async def _ask_bytes(self, key: int, version: int, after: bytes) -> bytes:
        """The response with its header. ``after``: what follows the id of the client in the request."""
        connection = await self._take()
        name, number = NAME.encode(), connection.next_number()
        try:
            sent = struct.pack(">hhih", key, version, number, len(name)) + name + after
            async with self._in_time(f"API {key} v{version}"):
                data = await self._exchange(connection, number, sent, MOST_PLAIN)
            if _number(data) != number:
                raise Garbled(f"the response to API {key} has correlation id {_number(data)} in place of {number}")
        except BaseException:
            self._drop(connection)
            raise
        self._free.append(connection)
        return data

    async def _take(self) -> _Connection:
        while self._free:
            connection = self._free.pop()
            if connection.is_usable:
                return connection
            self._drop(connection)
        try:
            connection = _Connection(await open_secured(self.host, self.port, self.security))
        except NotOpened:
            self.refused += 1
            raise
        self.opened += 1
        self._all.add(connection)
        return connection

    @asynccontextmanager
    async def _in_time(self, request: str, is_parked: bool = False) -> AsyncIterator[None]:
        """Errors: ``Closed`` if there is no whole answer in time."""
        try:
            async with asyncio.timeout(None if is_parked else self.answered_s) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            within = f"no whole answer to {request} came within {self.answered_s:g} s"
            raise Closed(f"{within}: is it a Kafka broker? --timeout gives it more time") from None

    async def _exchange(self, connection: _Connection, number: int, payload: bytes, most: int = LARGEST) -> bytes:
        """The next response, of so many bytes at most. A second one to an earlier request is left out: this request is
        not to blame."""
        try:
            connection.opened.writer.write(frame(payload))
            await connection.opened.writer.drain()
            while True:
                start = await connection.opened.reader.readexactly(4)
                if why := wrong_size(start):
                    raise Garbled(why)
                size = int.from_bytes(start, "big")
                if size > most:
                    raise Garbled(f"a response announces a size of {size} bytes")
                data = await connection.opened.reader.readexactly(size)
                if not 0 < _number(data) < number:
                    return data
                self.repeated += 1
        except (OSError, asyncio.IncompleteReadError):
            raise Closed("the broker closed the connection instead of answering") from None

    def _drop(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.opened.writer.transport.abort()

    async def close(self) -> None:
        for each in [*self._all]:
            each.opened.writer.transport.abort()
        self._all.clear()
        self._free.clear()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)


def _number(response: bytes) -> int:
    """The correlation id."""
    return int.from_bytes(response[:4], "big", signed=True)
