"""A TCP connection of a capture, read as requests and answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.live.watch.proxy import HEADER, LARGEST_READ, REMOTE_RACE_MS, SIZE
from kipcheck.conformance.live.watch.tcp import Half
from kipcheck.conformance.live.watch.watcher import Asked, Connection, Watcher
from kipcheck.conformance.wire.framing import LARGEST

MOST_KEYS: Final = 200
MOST_VERSIONS: Final = 40
MOST_CLIENT_ID: Final = 1000
Begins = Callable[[bytes], bool]


@dataclass(slots=True)
class Frames:
    """The frames of one direction. After a gap they begin again with the next segment that looks like a frame."""

    head: int
    """The bytes after the size that are read in each frame."""
    is_frame: Begins
    """Whether size and head look like those of a frame."""
    wants: Callable[[bytes], bool]
    """Whether the frame with this head has to be whole."""
    got: Callable[[bytes, bool], None]
    """Head or payload, and whether it is the payload."""
    lost: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _skip: int = 0

    def lose(self) -> None:
        self.lost, self._skip = True, 0
        self._buffer.clear()

    def feed(self, data: bytes) -> bool:
        """Takes a segment. Returns False where the bytes are no frames."""
        if self.lost:
            if not self.is_frame(data):
                return True
            self.lost = False
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        self._buffer += data
        start = SIZE + self.head
        while len(self._buffer) >= start:
            if not self.is_frame(bytes(self._buffer[:start])):
                return False
            size = int.from_bytes(self._buffer[:SIZE], "big")
            head = bytes(self._buffer[SIZE:start])
            if size <= LARGEST_READ and self.wants(head):
                if len(self._buffer) < SIZE + size:
                    return True
                payload = bytes(self._buffer[SIZE : SIZE + size])
                del self._buffer[: SIZE + size]
                self.got(payload, True)
                continue
            self.got(head, False)
            there = min(len(self._buffer), SIZE + size)
            del self._buffer[:there]
            self._skip = SIZE + size - there
        return True


class Flow:
    """One connection. ``client``: the end that sends requests; ``broker``: the other one."""

    def __init__(self, watcher: Watcher, client: str, broker: str = "") -> None:
        self.watcher = watcher
        self._broker = broker
        self.at_s = 0.0
        self.foreign = False
        """Whether it is not Kafka's protocol."""
        self.gaps = 0
        self._client = client
        self._race_ms = REMOTE_RACE_MS
        self._connection: Connection | None = None
        self._asked: Asked | None = None
        self._requests = Frames(HEADER, is_request, self._reads, self._request)
        self._answers = Frames(SIZE, self._is_answer, self._awaits, self._answer)
        self.up = Half(lambda data: self._feed(self._requests, data), lambda: self._lose(self._requests))
        self.down = Half(lambda data: self._feed(self._answers, data), lambda: self._lose(self._answers))
        self._syn_s: float | None = None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.watcher.opened(self.at_s, self._client, self._race_ms, self._broker)
        return self._connection

    def accepted(self) -> None:
        """The broker's half of the handshake was captured."""
        self._syn_s = self.at_s

    def confirmed(self) -> None:
        """The client's last part of the handshake: the time shows how far away the client is."""
        if self._syn_s is not None:
            self._race_ms = min(REMOTE_RACE_MS, 5 + round(2000 * (self.at_s - self._syn_s)))
            self._syn_s = None

    def began_earlier(self) -> None:
        """The begin of the connection was not captured: frames are looked for."""
        self._requests.lost = self._answers.lost = True

    def end(self) -> None:
        self.up.end()
        self.down.end()
        if self._connection is not None:
            self.watcher.closed(self._connection, self.at_s)
            self._connection = None

    def _feed(self, frames: Frames, data: bytes) -> None:
        if self.foreign or frames.feed(data):
            return
        if self._connection is None:
            self.foreign = True
            return
        self._lose(frames)

    def _lose(self, frames: Frames) -> None:
        frames.lose()
        self.gaps += 1
        if self._connection is not None:
            self.watcher.missed(self._connection)

    def _reads(self, head: bytes) -> bool:
        return self.watcher.is_read(_int16(head, 0), _int16(head, 2))

    def _request(self, data: bytes, whole: bool) -> None:
        self.watcher.asked(self.connection, self.at_s, data, whole or not self._reads(data))

    def _is_answer(self, start: bytes) -> bool:
        if len(start) < 2 * SIZE:
            return False
        size, id = (int.from_bytes(start[at : at + SIZE], "big", signed=True) for at in (0, SIZE))
        if size < SIZE:
            return False
        return not self._answers.lost or any(each.correlation == id for each in self.connection.waiting)

    def _awaits(self, head: bytes) -> bool:
        """Whether the answer is read. It is asked again while the frame is not whole."""
        id = int.from_bytes(head, "big", signed=True)
        return any(each.correlation == id and each.received is not None for each in self.connection.waiting)

    def _answer(self, data: bytes, whole: bool) -> None:
        asked = self.watcher.answered(self.connection, int.from_bytes(data[:SIZE], "big", signed=True))
        if asked is not None:
            self.watcher.answer(self.connection, self.at_s, asked, data if whole else None)


def is_request(start: bytes) -> bool:
    """Whether bytes look like the begin of a request: size, key, version, and the client id where there is enough."""
    if len(start) < SIZE + HEADER:
        return False
    size = int.from_bytes(start[:SIZE], "big", signed=True)
    key, version = _int16(start, SIZE), _int16(start, SIZE + 2)
    if not (HEADER <= size <= LARGEST and 0 <= key < MOST_KEYS and 0 <= version < MOST_VERSIONS):
        return False
    if len(start) < SIZE + HEADER + 2:
        return True
    return -1 <= _int16(start, SIZE + HEADER) <= min(size, MOST_CLIENT_ID)


def _int16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big", signed=True)
