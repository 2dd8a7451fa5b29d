"""A consumer that floods its broker: ``python flood.py HOST:PORT reads|ignores ...``. It ends when it is killed."""

import socket
import struct
import sys
from threading import Thread

REQUESTS = 20_000
CONNECTIONS = 4


def frame(number: int) -> bytes:
    """An ApiVersions request of version 0."""
    body = struct.pack(">hhih", 18, 0, number, 1) + b"f"
    return struct.pack(">i", len(body)) + body


def flood(host: str, port: int, reads: bool) -> None:
    data = b"".join(map(frame, range(REQUESTS)))
    while True:
        try:
            with socket.create_connection((host, port)) as connection:
                if reads:
                    Thread(target=drained, args=(connection,), daemon=True).start()
                while True:
                    connection.sendall(data)
        except OSError:
            pass


def drained(connection: socket.socket) -> None:
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass


if __name__ == "__main__":
    host, port = sys.argv[1].rsplit(":", 1)
    for _ in range(CONNECTIONS):
        Thread(target=flood, args=(host, int(port), sys.argv[2] == "reads")).start()
