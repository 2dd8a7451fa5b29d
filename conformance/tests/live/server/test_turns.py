"""Turns of connections: a few requests in each turn of the event loop, and a quiet connection before busy ones."""

from collections import deque
from collections.abc import Callable

from kipcheck.conformance.live.server import turns
from kipcheck.conformance.live.server.turns import Turns


class Loop:
    """A clock, and the callbacks of the next turn of an event loop."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.soon: deque[Callable[[], None]] = deque()
        self.handled: list[str] = []
        self.turns = Turns(lambda: self.now_s, self.soon.append)

    def turn(self) -> int:
        """Runs callbacks until requests were handled. Returns the number of those."""
        before = len(self.handled)
        while self.soon and len(self.handled) == before:
            assert len(self.soon) == 1
            self.soon.popleft()()
        return len(self.handled) - before


class Busy:
    """A connection with requests that take so long."""

    def __init__(
        self, loop: Loop, name: str, requests: int, takes_s: float = 0.0, is_new: bool = False, size: int = 20
    ) -> None:
        self.loop, self.name, self.left, self.takes_s, self.size = loop, name, requests, takes_s, size
        self.paid_s = 0.0
        self.is_closing = False
        if is_new:
            loop.turns.enter(self)
        self.advance()

    def handle_next(self) -> bool:
        if self.is_closing:
            return False
        self.left -= 1
        self.loop.handled.append(self.name)
        self.loop.now_s += self.takes_s
        return True

    def advance(self) -> None:
        if self.left and not self.is_closing:
            self.loop.turns.add(self, self.size)


def test_a_turn_handles_a_bounded_number_of_requests() -> None:
    loop = Loop()
    Busy(loop, "flood", 100)
    handled = [loop.turn() for _ in range(8)]
    assert handled == [turns.REQUESTS] * 6 + [4, 0]


def test_a_turn_begins_no_request_after_its_time() -> None:
    loop = Loop()
    Busy(loop, "slow", 10, takes_s=turns.TURN_S * 0.6)
    assert [loop.turn() for _ in range(5)] == [2] * 5


def test_a_quiet_connection_waits_for_one_request_of_busy_ones() -> None:
    loop = Loop()
    for number in range(20):
        Busy(loop, f"hostile {number}", 50, takes_s=0.05 + number / 1000)
    for _ in range(30):
        loop.turn()
    Busy(loop, "good", 1)
    before = len(loop.handled)
    loop.turn()
    assert loop.handled[before] == "good"


def test_what_came_during_a_turn_is_read_before_the_next_one() -> None:
    """An event loop runs callbacks that were scheduled before those of sockets."""
    loop = Loop()
    Busy(loop, "hostile", 10, takes_s=0.1)
    loop.turn()
    (reading,) = loop.soon
    loop.soon.clear()
    reading()
    Busy(loop, "good", 1)  # as the loop does once it has called what was scheduled
    loop.turn()
    assert loop.handled[:2] == ["hostile", "good"]


def test_a_small_request_precedes_large_ones_of_connections_that_paid_as_much() -> None:
    loop = Loop()
    for number in range(20):
        Busy(loop, f"large {number}", 1, takes_s=0.1, size=20_000)
    small = Busy(loop, "small", 1, takes_s=0.0002)
    loop.turn()
    assert loop.handled[0] == "small"
    small.left = 1
    small.advance()
    before = len(loop.handled)
    loop.turn()
    assert loop.handled[before] == "small"


def test_quiet_connections_precede_new_ones() -> None:
    loop = Loop()
    good = Busy(loop, "good", 1)
    loop.turn()
    for number in range(100):
        Busy(loop, f"new {number}", 1, takes_s=0.1, is_new=True)
    good.left = 1
    good.advance()
    loop.turn()
    assert loop.handled[:2] == ["good", "good"]


def test_busy_connections_share_the_time_and_not_the_number_of_requests() -> None:
    loop = Loop()
    Busy(loop, "dear", 1000, takes_s=0.1)
    Busy(loop, "cheap", 1000, takes_s=0.01)
    while loop.now_s < 10:
        loop.turn()
    assert 8 <= loop.handled.count("cheap") / loop.handled.count("dear") <= 12


def test_a_closing_connection_is_left_out_and_costs_no_turn() -> None:
    loop = Loop()
    left, stays = Busy(loop, "left", 100), Busy(loop, "stays", turns.REQUESTS)
    left.is_closing = True
    assert loop.turn() == turns.REQUESTS
    assert loop.handled == ["stays"] * turns.REQUESTS
    assert not stays.left
    assert loop.turn() == 0
