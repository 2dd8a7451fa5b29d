"""A transparent proxy before a cluster: each broker gets a listener of its own, and a watcher sees what passes."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.live.connections.secure_connection import Closed, open_secured
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.server.listener import is_loopback
from kipcheck.conformance.live.watch import rewrite
from kipcheck.conformance.live.watch.rewrite import Address
from kipcheck.conformance.live.watch.watcher import Asked, Connection, Watcher
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import LARGEST

SIZE: Final = 4
HEADER: Final = 8
"""The bytes of a request that are always read: key, version and correlation id."""
PIECE: Final = 64 << 10
"""What is not read passes in pieces of so many bytes."""
LARGEST_READ: Final = 8 << 20
"""The largest frame that is held to be read."""
LARGEST_CHANGED: Final = 64 << 20
"""The largest answer that is held to be changed; one at a time above ``LARGEST_READ``, and beyond ``MOST_HELD``."""
MOST_HELD: Final = 128 << 20
"""Bytes of frames that are held, of all connections. Beyond it frames pass without being read."""
MOST_CONNECTIONS: Final = 1000
MOST_BROKERS: Final = 1000
LOOPBACK_RACE_MS: Final = 5
REMOTE_RACE_MS: Final = 250
"""So long after an answer passed a request may have been written before the client read it."""
TLS: Final = b"\x16\x03"


class Ended(Exception):
    """A connection cannot go on; the text says why."""


@dataclass(slots=True)
class Held:
    """The bytes of frames that are held."""

    total: int = 0

    @contextlib.contextmanager
    def of(self, size: int) -> Iterator[None]:
        self.total += size
        try:
            yield
        finally:
            self.total -= size


@dataclass(slots=True)
class Pair:
    """The two connections of a client through the proxy, and what the watcher knows of them."""

    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    broker: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    watched: Connection
    reached: str
    """The address of this proxy that the client knows."""
    raw: bool = False
    """Whether frames have no headers any more: after a SaslHandshake of version 0."""


class Proxy:
    def __init__(self, upstream: Address, watcher: Watcher, security: Security = OPEN) -> None:
        self.upstream = upstream
        self._security = security
        self.watcher = watcher
        self.allowed = rewrite.ranges()
        self.changed = 0
        """Answers with other addresses or versions than the broker's."""
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._host = ""
        self._ports: dict[Address, int] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = Held()
        self._adding = asyncio.Lock()
        self._large = asyncio.Lock()

    def now(self) -> float:
        """Seconds since the proxy was created."""
        return self._loop.time() - self._start_s

    async def listen(self, host: str, port: int) -> Address:
        """Listens for clients of the broker that was named. Errors: OSError.

        A name is resolved once: all listeners have one address, which clients are sent with their ports.
        """
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._host = str(found[0][4][0])
        return await self._listen(self.upstream, self._host, port)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, target: Address, host: str, port: int) -> Address:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(target, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(accept, host, port, limit=PIECE)
        self._servers.append(server)
        found = server.sockets[0].getsockname()
        return str(found[0]), int(found[1])

    async def _serve(self, target: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = (writer.get_extra_info("peername") or ("", 0))[0]
        own = (writer.get_extra_info("sockname") or (self._host, 0))[0]
        if len(self._tasks) > MOST_CONNECTIONS:
            self.watcher.note(f"there are {MOST_CONNECTIONS} connections already: others are closed at once")
            return writer.transport.abort()
        try:
            opened = await open_secured(*target, self._security, limit=PIECE)
        except Closed as why:
            self.watcher.say(
                f"the connection from {peer} was closed: {why}; start the broker, or end this command and name another "
                "with --upstream"
            )
            return writer.transport.abort()
        race_ms = LOOPBACK_RACE_MS if is_loopback(peer) else REMOTE_RACE_MS
        watched = self.watcher.opened(self.now(), peer, race_ms, f"{target[0]}:{target[1]}")
        await self._pass(Pair((reader, writer), (opened.reader, opened.writer), watched, own))

    async def _pass(self, pair: Pair) -> None:
        """Passes frames both ways until one side closes."""
        ways = [self._loop.create_task(self._requests(pair)), self._loop.create_task(self._answers(pair))]
        why = ""
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                error = each.exception()
                if isinstance(error, Ended):
                    why = str(error)
                    self.watcher.say(f"connection {pair.watched.number} from {pair.watched.host} was closed: {why}")
                elif error is not None and not isinstance(error, OSError | EOFError):
                    raise error
        finally:
            for each in ways:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self.watcher.closed(pair.watched, self.now(), why)
            for _, writer in (pair.client, pair.broker):
                with contextlib.suppress(OSError, RuntimeError):
                    writer.close()

    async def _next(self, pair: Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, int]:
        """The size of the next frame with a header, as bytes and number. Frames without pass."""
        while True:
            start = await reader.readexactly(SIZE)
            size = int.from_bytes(start, "big", signed=True)
            if not pair.raw:
                return start, size
            await self._stream(reader, writer, start, max(size, 0))

    # Requests

    async def _requests(self, pair: Pair) -> None:
        reader, writer = pair.client[0], pair.broker[1]
        while True:
            start, size = await self._next(pair, reader, writer)
            if not HEADER <= size <= LARGEST:
                raise Ended(_bad_size(start, size))
            head = await reader.readexactly(HEADER)
            key, version = (int.from_bytes(head[at : at + 2], "big", signed=True) for at in (0, 2))
            is_read = self.watcher.is_read(key, version)
            if is_read and size <= LARGEST_READ and self._held.total + size <= MOST_HELD:
                with self._held.of(size):
                    payload = head + await reader.readexactly(size - HEADER)
                    self.watcher.asked(pair.watched, self.now(), payload)
                    writer.write(start + payload)
                    await writer.drain()
                continue
            if is_read:
                self.watcher.note(f"requests above {LARGEST_READ >> 20} MiB pass, and are not judged")
            if (key, version) == (rewrite.SASL_HANDSHAKE, 0):
                pair.raw = True
                self.watcher.note("a client uses SaslHandshake v0: what it sends passes, and is not read")
            self.watcher.asked(pair.watched, self.now(), head, whole=not is_read)
            await self._stream(reader, writer, start + head, size - HEADER)

    # Answers

    async def _answers(self, pair: Pair) -> None:
        reader, writer = pair.broker[0], pair.client[1]
        while True:
            start, size = await self._next(pair, reader, writer)
            if size < SIZE:
                raise Ended(f"the broker announced an answer of {size} bytes, which has no header")
            head = await reader.readexactly(SIZE)
            asked = self.watcher.answered(pair.watched, int.from_bytes(head, "big", signed=True))
            if asked is not None and rewrite.is_rewritten(asked.key, asked.version):
                await self._change(pair, asked, start, head, size)
            elif asked is not None and asked.received is not None:
                await self._read(pair, asked, start + head, size)
            else:
                await self._stream(reader, writer, start + head, size - SIZE)

    async def _read(self, pair: Pair, asked: Asked, start: bytes, size: int) -> None:
        """Passes an answer, then lets the watcher read it."""
        reader, writer = pair.broker[0], pair.client[1]
        if size > LARGEST_READ or self._held.total + size > MOST_HELD:
            await self._stream(reader, writer, start, size - SIZE)
            return self.watcher.answer(pair.watched, self.now(), asked, None)
        with self._held.of(size):
            rest = await reader.readexactly(size - SIZE)
            at_s = self.now()
            writer.write(start + rest)
            self.watcher.answer(pair.watched, at_s, asked, start[SIZE:] + rest)
            await writer.drain()

    async def _change(self, pair: Pair, asked: Asked, start: bytes, head: bytes, size: int) -> None:
        """Passes an answer with the addresses of this proxy, and the versions that it can change."""
        if size > LARGEST_CHANGED:
            raise Ended(f"an answer of {size} bytes names brokers: above {LARGEST_CHANGED >> 20} MiB none is changed")
        alone = size > LARGEST_READ or self._held.total + size > MOST_HELD
        async with self._large if alone else contextlib.nullcontext():
            with self._held.of(size):
                payload = head + await pair.broker[0].readexactly(size - SIZE)
                made = await self._changed(pair, asked, payload)
                at_s = self.now()
                pair.client[1].write(len(made).to_bytes(SIZE, "big") + made)
                self.watcher.answer(pair.watched, at_s, asked, made)
                await pair.client[1].drain()

    async def _changed(self, pair: Pair, asked: Asked, payload: bytes) -> bytes:
        key = asked.key
        try:
            version, header, body = rewrite.decoded(payload, key, asked.version)
            if key == rewrite.API_VERSIONS:
                if not (said := rewrite.narrow(body, self.allowed)):
                    return payload
                self.watcher.note(f"ApiVersions is narrowed to {', '.join(said)}")
            else:
                known = {each: await self._address(each, pair.reached) for each in rewrite.addresses(key, body)}
                if not rewrite.readdress(key, body, known.__getitem__):
                    return payload
            self.changed += 1
            return rewrite.encoded(key, version, header, body)
        except Refused as why:
            self.watcher.note(
                f"an answer to {rewrite.NAMES[key]} v{asked.version} cannot be read, and passes as it is, so that "
                f"clients may go past this proxy: {why}"
            )
            return payload

    async def _address(self, broker: Address, reached: str) -> Address:
        """Where clients reach a broker through this proxy, which begins to listen for it."""
        async with self._adding:
            if broker not in self._ports:
                if len(self._ports) >= MOST_BROKERS:
                    raise Ended(f"there are more than {MOST_BROKERS} brokers")
                try:
                    _, port = await self._listen(broker, self._host, 0)
                except OSError as why:
                    raise Ended(f"no listener can be opened for broker {broker[0]}:{broker[1]}: {why}") from None
                self._ports[broker] = port
                self.watcher.say(f"broker {broker[0]}:{broker[1]} is {reached}:{port}")
            return reached, self._ports[broker]

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, start: bytes, left: int
    ) -> None:
        """Passes a frame in pieces."""
        writer.write(start)
        while left:
            piece = await reader.read(min(left, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            writer.write(piece)
            left -= len(piece)
            await writer.drain()
        await writer.drain()


def _bad_size(start: bytes, size: int) -> str:
    if start.startswith(TLS):
        return "it begins as TLS does, which cannot be watched: use a listener of the broker without TLS"
    return f"it announced a request of {size} bytes, where a broker takes {HEADER} to {LARGEST}"
