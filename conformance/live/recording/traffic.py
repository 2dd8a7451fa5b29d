"""Counts a front's traffic, and passes it to observers: a log, a packet capture. Nothing else is kept of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.wire.errors import Refused

MOST_REASONS: Final = 100
"""Reasons of closing that are counted one by one: a client determines their text."""
OTHER_REASONS: Final = "closed: other reasons"


@final
@dataclass(frozen=True, slots=True)
class Frame:
    at_s: float
    """Seconds since the front started."""
    connection: int
    by_client: bool
    data: bytes
    """With the size in front; of a damaged frame, all that came."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """A request that strict decoding refuses."""

    at_s: float
    connection: int
    refused: Refused
    """Offsets count from the header, after the size."""
    payload: bytes
    """Header and body."""
    answered: bool
    """Whether Kafka's own reader accepts it; if not, the connection was closed."""


class Observer:
    """What passes a front. An observer overrides what it takes notice of."""

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None: ...
    def closed(self, at_s: float, connection: int, why: str) -> None: ...
    def passed(self, frame: Frame) -> None: ...
    def received(self, request: Received) -> None: ...
    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None: ...
    def found(self, finding: Finding) -> None: ...


@final
@dataclass(slots=True)
class Traffic:
    observers: tuple[Observer, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    """``connections``, ``requests``, ``findings``, ``closed: WHY``."""

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        self.counts["connections"] += 1
        for observer in self.observers:
            observer.opened(at_s, connection, peer)

    def closed(self, at_s: float, connection: int, why: str) -> None:
        """``why``: empty if the client closed the connection."""
        if why:
            reason = f"closed: {why}"
            self.counts[reason if reason in self.counts or len(self.counts) < MOST_REASONS else OTHER_REASONS] += 1
        for observer in self.observers:
            observer.closed(at_s, connection, why)

    def passed(self, frame: Frame) -> None:
        for observer in self.observers:
            observer.passed(frame)

    def received(self, request: Received) -> None:
        self.counts["requests"] += 1
        for observer in self.observers:
            observer.received(request)

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        for observer in self.observers:
            observer.answered(at_s, request, body)

    def found(self, finding: Finding) -> None:
        self.counts["findings"] += 1
        for observer in self.observers:
            observer.found(finding)
