"""A client for the few requests to ZooKeeper that kipcheck sends: nodes are read, written and deleted.

Each request has a session of its own, which is closed after it: no watch, and no ephemeral node, is kept.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

ANSWERED_S: Final = 30.0
SESSION_MS: Final = 20_000
CREATE, DELETE, GET, SET, CLOSE = 1, 2, 4, 5, -11
NO_NODE, NODE_EXISTS = -101, -110
ANY_VERSION: Final = -1
EVERYBODY: Final = (31, "world", "anyone")
"""All permissions, for all."""
LARGEST: Final = 4 << 20


class Failed(OSError):
    """ZooKeeper refuses a request."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ZooKeeper answers with error {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Stored:
    """A node."""

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """Errors of all methods: OSError, of which ``Failed`` is one."""

    host: str
    port: int

    def get(self, path: str) -> Stored | None:
        """None: the node does not exist."""
        try:
            found = self._ask(GET, _text(path) + b"\0")
        except Failed as why:
            if why.code != NO_NODE:
                raise
            return None
        (size,) = struct.unpack_from(">i", found)
        data = found[4 : 4 + max(size, 0)]
        (version,) = struct.unpack_from(">4qi", found, 4 + max(size, 0))[4:]
        return Stored(data, version)

    def put(self, path: str, data: bytes) -> int:
        """Writes the node whatever its version, and creates it if it does not exist. Returns its version."""
        try:
            found = self._ask(SET, _text(path) + _bytes(data) + struct.pack(">i", ANY_VERSION))
        except Failed as why:
            if why.code != NO_NODE:
                raise
            self.create(path, data)
            return 0
        version: int = struct.unpack_from(">4qi", found)[4]
        return version

    def create(self, path: str, data: bytes = b"") -> None:
        """A persistent node; nothing happens if it exists."""
        permissions, scheme, who = EVERYBODY
        rights = struct.pack(">ii", 1, permissions) + _text(scheme) + _text(who)
        with _ignoring(NODE_EXISTS):
            self._ask(CREATE, _text(path) + _bytes(data) + rights + struct.pack(">i", 0))

    def delete(self, path: str) -> None:
        """Nothing happens if it does not exist."""
        with _ignoring(NO_NODE):
            self._ask(DELETE, _text(path) + struct.pack(">i", ANY_VERSION))

    def _ask(self, kind: int, body: bytes) -> bytes:
        """The body of the response."""
        with socket.create_connection((self.host, self.port), 5) as connection:
            connection.settimeout(ANSWERED_S)
            _send(connection, struct.pack(">iqiq", 0, 0, SESSION_MS, 0) + _bytes(bytes(16)) + b"\0")
            _received(connection)
            _send(connection, struct.pack(">ii", 1, kind) + body)
            found = _received(connection)
            with suppress(OSError):
                _send(connection, struct.pack(">ii", 2, CLOSE))
                _received(connection)
        _, _, error = struct.unpack_from(">iqi", found)
        if error:
            raise Failed(error)
        return found[16:]


@contextmanager
def _ignoring(code: int) -> Iterator[None]:
    try:
        yield
    except Failed as why:
        if why.code != code:
            raise


def _text(text: str) -> bytes:
    return _bytes(text.encode())


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_bytes(data))


def _received(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 0 <= size <= LARGEST:
        raise OSError(f"ZooKeeper announces a response of {size} bytes")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise OSError("ZooKeeper closed the connection")
        found += more
    return found
