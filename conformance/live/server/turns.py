"""Decides which connection handles a request next, and gives the event loop back after a few.

Each connection pays for the time that its requests took. The next one is that which has paid least, as in fair queueing
by start times (Goyal, Vin and Cheng, 1996): a connection that was quiet begins where the others are, so it neither
saves up time nor waits for those with many requests. Among equals the smallest request is first. So a client waits for
one request of another one, however many there are.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final, Protocol

REQUESTS: Final = 16
"""The most that are handled in one turn of the event loop."""
TURN_S: Final = 0.01
"""After this time a turn begins no further request."""
ENTRANCE_S: Final = 0.05
"""What a new connection pays before its first request."""


class Served(Protocol):
    paid_s: float
    """The virtual time at which the next request begins."""

    def handle_next(self) -> bool:
        """Handles one request, if it still can be handled. Returns whether it was."""
        ...

    def advance(self) -> None:
        """Adds itself again, if it has another request."""
        ...


class Turns:
    def __init__(
        self, now: Callable[[], float], call_soon: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        """``now`` in seconds. ``call_soon``: default: that of the running loop."""
        self._now = now
        self._call_soon = call_soon or asyncio.get_running_loop().call_soon
        self._waiting: list[tuple[float, int, int, Served]] = []
        """A heap: begin in virtual time, bytes of the request, number, connection."""
        self._virtual_s = 0.0
        self._number = 0
        self._scheduled = False

    def enter(self, served: Served) -> None:
        """A connection is new: those that are quiet precede it, so that many new ones do not delay them."""
        served.paid_s = self._virtual_s + ENTRANCE_S

    def add(self, served: Served, size: int) -> None:
        """A connection has a request of so many bytes, and is not among those that wait."""
        self._number += 1
        heapq.heappush(self._waiting, (max(served.paid_s, self._virtual_s), size, self._number, served))
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        handled, begun = 0, self._now()
        before = begun
        try:
            while self._waiting and handled < REQUESTS and before - begun < TURN_S:
                self._virtual_s, _, _, served = heapq.heappop(self._waiting)
                served.paid_s = self._virtual_s
                if served.handle_next():
                    handled += 1
                    after = self._now()
                    served.paid_s += after - before
                    before = after
                served.advance()
        finally:
            self._schedule()
