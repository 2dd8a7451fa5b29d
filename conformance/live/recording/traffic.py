"""The record of a front's traffic: every frame with its time and connection, and every request that is not well formed.

The newest frames are kept, up to a limit of bytes. Observers get every frame when it passes: a log, a packet capture.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, final

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.wire.errors import Refused

KEPT_BYTES: Final = 64 << 20
KEPT_FINDINGS: Final = 1000


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


class Observer(Protocol):
    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None: ...
    def closed(self, at_s: float, connection: int, why: str) -> None: ...
    def passed(self, frame: Frame) -> None:
        """Bytes came or went."""
        ...

    def received(self, request: Received) -> None: ...
    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None: ...
    def found(self, finding: Finding) -> None: ...


@final
@dataclass(slots=True)
class Traffic:
    observers: tuple[Observer, ...] = ()
    limit: int = KEPT_BYTES
    frames: deque[Frame] = field(default_factory=deque)
    findings: deque[Finding] = field(default_factory=lambda: deque(maxlen=KEPT_FINDINGS))
    counts: Counter[str] = field(default_factory=Counter)
    """``connections``, ``requests``, ``findings``, ``forgotten`` (frames that are no longer kept), ``closed: WHY``."""
    kept: int = 0
    """Bytes in ``frames``."""

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        self.counts["connections"] += 1
        for each in self.observers:
            each.opened(at_s, connection, peer)

    def closed(self, at_s: float, connection: int, why: str) -> None:
        """``why``: empty if the client closed the connection."""
        if why:
            self.counts[f"closed: {why}"] += 1
        for each in self.observers:
            each.closed(at_s, connection, why)

    def passed(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.kept += len(frame.data)
        while self.kept > self.limit:
            self.kept -= len(self.frames.popleft().data)
            self.counts["forgotten"] += 1
        for each in self.observers:
            each.passed(frame)

    def received(self, request: Received) -> None:
        self.counts["requests"] += 1
        for each in self.observers:
            each.received(request)

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        for each in self.observers:
            each.answered(at_s, request, body)

    def found(self, finding: Finding) -> None:
        self.counts["findings"] += 1
        self.findings.append(finding)
        for each in self.observers:
            each.found(finding)
