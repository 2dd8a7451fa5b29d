"""``tcp:HOST:PORT``: a testee that the user started, in a debugger for example, and that listens on this machine.

There are no deadlines, and cases are sent one by one, so that a breakpoint stops in the case it belongs to. There is
one connection at a time: a new role or session closes the previous connection.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets.protocol import Session, Target
from kipcheck.conformance.targets.session import Limits, TesteeSession
from kipcheck.conformance.targets.transport.channel import BaseLink, Descriptors, Ended

CONNECT_SECONDS: Final = 5.0
NO_DEADLINES: Final = Limits(start_s=None, batch_s=None, cpu_s=0, together=1)
LOCAL: Final = ("localhost", "::1")

_OPEN_CONNECTIONS: Final[dict[tuple[str, int], "Connection"]] = {}
"""The open connection to each address; a new one closes it."""


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError unless it is an address on this machine."""
    host, colon, port = rest.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise LookupError(f"invalid address {name!r}: use tcp:HOST:PORT, such as tcp:127.0.0.1:9000")
    if not _is_here(host):
        raise LookupError(f"{name!r}: the testee must listen on this machine, use 127.0.0.1 or localhost")
    return TcpTestee(name, (host, int(port)))


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any address is a target."""
    return iter(())


def _is_here(host: str) -> bool:
    try:
        return host in LOCAL or ip_address(host).is_loopback
    except ValueError:
        return False


class TcpTestee:
    """A testee at an address."""

    def __init__(self, name: str, address: tuple[str, int]) -> None:
        self.name = name
        self._address = address

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        session = TesteeSession(self.name, self.begin, NO_DEADLINES, edition, role)
        try:
            yield session
        finally:
            session.close()

    def begin(self) -> "Connection":
        """Opens a new connection. Errors: OSError."""
        before = _OPEN_CONNECTIONS.pop(self._address, None)
        if before is not None:
            before.close({"type": "bye"}, CONNECT_SECONDS)
        found = _OPEN_CONNECTIONS[self._address] = Connection(self._address)
        return found


class Connection(BaseLink):
    """A connection to such a testee. Errors: OSError where the port refuses it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._write_fd = os.dup(self._socket.fileno())  # one to read and one to write, for a selector
        super().__init__(self, Descriptors(self._write_fd, self._socket.fileno()))
        self._closed = False

    def gone(self) -> bool:
        return False  # its end shows when it closes the connection

    def end(self, cause: str, detail: str) -> tuple[str, str]:
        self.kill()
        return cause, f"closed the connection {detail}".rstrip() if cause == "crashed" else detail

    def close(self, last: Mapping[str, Any], seconds: float) -> str:
        """Sends ``last`` and closes the connection; the testee may continue to run."""
        found = ""
        if not self.over:
            with suppress(Ended):
                found = "" if self.exchange(last, seconds).get("type") == "bye" else "it did not answer bye with bye"
        self.kill()
        return found

    def kill(self) -> None:
        """Closes the connection only; the process belongs to the user."""
        if self._closed:
            return
        self._closed = self.channel.over = True
        os.close(self._write_fd)
        self._socket.close()
