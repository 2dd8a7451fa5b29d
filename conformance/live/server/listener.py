"""A TCP server that receives Kafka's requests and lets a script answer them.

It knows framing, headers, limits and the record of traffic; what a request is answered with is the script's matter: a
broker (``live.broker``), or anything else that implements ``Script``.
"""

import asyncio
import ipaddress
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.traffic import Frame, Traffic
from kipcheck.conformance.live.server.connection import Connection, Limits, Script
from kipcheck.conformance.live.server.turns import Turns


class Front:
    def __init__(
        self, script: Script, edition: Edition, limits: Limits | None = None, traffic: Traffic | None = None
    ) -> None:
        """``edition``: of the layouts. The clock starts here."""
        self.script = script
        self.edition = edition
        self.limits = limits or Limits()
        self.traffic = traffic or Traffic()
        self.input_bytes = 0
        """Received and not yet handled, of all connections; connections keep it up to date."""
        self.connections: set[Connection] = set()
        self.turns = Turns(time.thread_time)
        self._opened = 0
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._reserved: dict[tuple[str, int], socket.socket] = {}
        """The addresses that are not listened at for a while."""

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Starts to listen, also at several addresses; port 0 takes a free one. Returns host and port. Errors: OSError.

        A script knows from ``Received.reached`` which of them a client connected to.
        """
        server = await self._loop.create_server(self._connection, host, port)
        name = server.sockets[0].getsockname()
        address = str(name[0]), int(name[1])
        self._servers[address] = server
        return address

    def suspend(self, address: tuple[str, int], why: str) -> None:
        """Closes the listener at an address, and the connections to it. The port stays reserved, and refuses others.

        Errors: OSError if another process took it at that moment."""
        self._servers.pop(address).close()
        reserved = socket.socket()
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
        self._reserved[address] = reserved
        for connection in list(self.connections):
            if connection.reached == address:
                connection.abort(why)

    async def resume(self, address: tuple[str, int]) -> None:
        """Listens again."""
        self._servers[address] = await self._loop.create_server(self._connection, sock=self._reserved.pop(address))

    async def close(self) -> None:
        """Stops listening, and closes all connections."""
        for reserved in self._reserved.values():
            reserved.close()
        for server in self._servers.values():
            server.close()
        for connection in list(self.connections):
            connection.abort()
        while self.connections:
            await asyncio.sleep(0)
        for server in self._servers.values():
            with suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), 1)

    def now(self) -> float:
        """Seconds since the front was created."""
        return self._loop.time() - self._start_s

    # Called by connections

    def _connection(self) -> Connection:
        self._opened += 1
        return Connection(self, self._opened)

    def admit(self, connection: Connection) -> bool:
        """Whether there is room for another connection."""
        self.connections.add(connection)
        self.traffic.opened(self.now(), connection.number, connection.peer)
        return len(self.connections) <= self.limits.connections

    def bound_input(self) -> None:
        """Closes the connection with most input while too many bytes were received and not handled."""
        while self.input_bytes > self.limits.input_bytes:
            largest = max(self.connections, key=lambda each: each.input_bytes)
            largest.abort("too many bytes received and not handled")

    def bound_output(self) -> None:
        """Closes the connection with most output while too many bytes are not sent."""
        unsent = {each: each.output_bytes for each in self.connections if each.open}
        while sum(unsent.values()) > self.limits.all_output_bytes:
            largest = max(unsent, key=unsent.__getitem__)
            largest.abort("too many unsent bytes of all connections")
            del unsent[largest]

    def closed(self, connection: Connection, why: str) -> None:
        self.connections.discard(connection)
        self.traffic.closed(self.now(), connection.number, why)

    def pass_frame(self, connection: int, by_client: bool, data: bytes) -> None:
        if self.traffic.observers:
            self.traffic.passed(Frame(self.now(), connection, by_client, data))

    def guard(self, connection: Connection, act: Callable[[], None]) -> None:
        """Runs a part of the script. A defect of ours closes the connection, and is shown on stderr."""
        try:
            act()
        except Exception:  # noqa: BLE001 - the others are served on
            traceback.print_exc(file=sys.stderr)
            self.traffic.counts["our bugs"] += 1
            connection.abort("a bug in kipcheck")


def is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
