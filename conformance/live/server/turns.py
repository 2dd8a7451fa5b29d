"""Decides which connection handles a request next, and gives the event loop back after a few.

Each connection pays for the processor time that its requests took, as in fair queueing by start times (Goyal, Vin and
Cheng, 1996). The next one is that which would have paid least with its request, by its size: a connection
that was quiet begins where the others are, so it neither saves up time nor waits for those with many or large requests.
So a client waits for one request of another one, however many there are.
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
BYTE_S: Final = 1e-6
"""What a byte of a request is expected to cost: the smallest elements are a byte, and take a few times as long."""
MOST_S: Final = 0.1
"""What a request costs at most: that of a kind which is the first of it has its codec compiled."""


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
        """``now``: processor time in seconds, so that no client pays for what else a machine does. ``call_soon``:
        default: that of the running loop."""
        self._now = now
        self._call_soon = call_soon or asyncio.get_running_loop().call_soon
        self._waiting: list[tuple[float, int, float, Served]] = []
        """A heap: end in virtual time as expected, number, begin, connection."""
        self._virtual_s = 0.0
        self._number = 0
        self._scheduled = False

    def enter(self, served: Served) -> None:
        """A connection is new: those that are quiet precede it, so that many new ones do not delay them."""
        served.paid_s = self._virtual_s + ENTRANCE_S

    def add(self, served: Served, size: int) -> None:
        """A connection has a request of so many bytes, and is not among those that wait."""
        self._number += 1
        begin = max(served.paid_s, self._virtual_s)
        heapq.heappush(self._waiting, (begin + size * BYTE_S, self._number, begin, served))
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._turn)

    def _after_reading(self) -> None:
        """A turn of the loop runs what is scheduled before what it reads: so the next one has all that came meanwhile,
        and a client does not wait for a second request of others."""
        self._call_soon(self._turn)

    def _turn(self) -> None:
        handled, begun = 0, self._now()
        before = begun
        try:
            while self._waiting and handled < REQUESTS and before - begun < TURN_S:
                _, _, begin, served = heapq.heappop(self._waiting)
                self._virtual_s = max(self._virtual_s, begin)
                served.paid_s = begin
                if served.handle_next():
                    handled += 1
                    after = self._now()
                    served.paid_s += min(after - before, MOST_S)
                    before = after
                served.advance()
        finally:
            self._scheduled = bool(self._waiting)
            if self._scheduled:
                self._call_soon(self._after_reading)
