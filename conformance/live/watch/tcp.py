"""Puts the segments of TCP connections together again, as far as they were captured."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MOST_PENDING: Final = 1 << 20
"""Bytes of one direction that wait for a segment that is missing."""
MOST_SEGMENTS: Final = 1000
_HALF: Final = 1 << 31
_ALL: Final = 1 << 32


@dataclass(slots=True)
class Half:
    """One direction of a connection."""

    take: Callable[[bytes], None]
    """Gets the bytes in their order, as segments."""
    lose: Callable[[], None]
    """Is called where bytes are missing."""
    next: int | None = None
    """The sequence number of the next byte; None: nothing is known yet."""
    finished: bool = False
    _pending: dict[int, bytes] = field(default_factory=dict)
    _size: int = 0

    def opened(self, number: int) -> None:
        """A SYN with this sequence number."""
        self.next = (number + 1) % _ALL

    def segment(self, number: int, data: bytes) -> None:
        """Data that was captured, maybe twice, maybe too early."""
        if not data:
            return
        if self.next is None:
            self.next = number
        ahead = _distance(self.next, number)
        if ahead > 0:
            self._keep(number, data)
            return
        fresh = data[-ahead:]
        if fresh:
            self._advance(fresh)
            self._drain()

    def acknowledged(self, number: int) -> None:
        """The other side has all bytes before this number: those that were not captured never will be."""
        if self.next is not None and _distance(self.next, number) > 0:
            self._skip(number)

    def end(self) -> None:
        """Nothing comes any more."""
        if self._pending and self.next is not None:
            self._skip(max(self._pending, key=lambda each: _distance(self.next or 0, each)))

    def _advance(self, data: bytes) -> None:
        assert self.next is not None
        self.next = (self.next + len(data)) % _ALL
        self.take(data)

    def _keep(self, number: int, data: bytes) -> None:
        old = self._pending.get(number, b"")
        if len(old) < len(data):
            self._pending[number] = data
            self._size += len(data) - len(old)
        if self._size > MOST_PENDING or len(self._pending) > MOST_SEGMENTS:
            self._skip(self._first())

    def _first(self) -> int:
        assert self.next is not None
        now = self.next
        return min(self._pending, key=lambda each: _distance(now, each))

    def _drain(self) -> None:
        while self._pending and self.next is not None:
            first = self._first()
            behind = _distance(first, self.next)
            if behind < 0:
                return
            data = self._pending.pop(first)
            self._size -= len(data)
            if fresh := data[behind:]:
                self._advance(fresh)

    def _skip(self, until: int) -> None:
        """Goes on at the first byte that was captured, at or before ``until``; what is missing is lost."""
        while self.next is not None and _distance(self.next, until) > 0:
            start = self._first() if self._pending else until
            if _distance(start, until) < 0:
                start = until
            if start != self.next:
                self.lose()
            self.next = start
            self._drain()
        self._drain()


def _distance(start: int, end: int) -> int:
    """From one sequence number to another, negative if it comes before it: they wrap."""
    return (end - start + _HALF) % _ALL - _HALF
