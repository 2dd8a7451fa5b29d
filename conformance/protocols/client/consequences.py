"""What follows from a fault of the client's own, for which the broker closed its connection, or that keeps it away.

A client whose request the broker cannot serve, or cannot read, loses its connection. If it does not come back then, or
ends, or ends without leaving, that is a consequence and no failure of its own. So it is if a leader does not come back
since it cannot read what another member wrote.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import terms
from kipcheck.conformance.protocols.client.events import Closed, Event, Launched, Restarted
from kipcheck.conformance.protocols.client.trace import TracedEvent, is_answer, trace
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Leading

LEADING: Final = ("client/asks-what-is-offered", "client/encodes-strictly")
"""The laws of which a breach makes a broker close the connection."""
CANNOT_LEAD: Final = "client/leads-other-clients"
"""The law of which a breach keeps the client away from its group."""


@dataclass(slots=True)
class _Lost:
    """The time from when a connection was closed until the client was in touch with its group again."""

    since_ms: int
    leading: Leading
    until_ms: int | None = None

    def includes(self, ms: int) -> bool:
        return self.since_ms <= ms and (self.until_ms is None or ms <= self.until_ms)


@dataclass(slots=True)
class _Reader:
    faults: list[tuple[int, Leading]]
    found: list[_Lost] = field(default_factory=list)
    survived: set[Leading] = field(default_factory=set)
    """The faults after which the client went on: what comes later has another reason."""

    def read(self, traced: TracedEvent[Event]) -> None:
        now = self.found[-1] if self.found and self.found[-1].until_ms is None else None
        event = traced.event
        if isinstance(event, Launched | Restarted):
            self.survived.clear()
            if now is not None:
                now.until_ms = event.ms
        elif isinstance(event, Closed) and event.why not in ("", terms.BY_SCRIPT):
            faults = [fault for ms, fault in self.faults if ms <= event.ms <= ms + terms.RACE_MS]
            if now is None and faults and faults[-1] not in self.survived:
                self.found.append(_Lost(event.ms, faults[-1]))
        elif now is not None and event.ms > now.since_ms + terms.GRACE_MS and _is_in_touch(traced):
            now.until_ms = event.ms
            self.survived.add(now.leading)


def _is_in_touch(traced: TracedEvent[Event]) -> bool:
    return is_answer(traced, *terms.GROUP_REQUESTS, *terms.HEARTBEATS) and not traced.error


@cached_on_history
def _lost(history: History) -> tuple[_Lost, ...]:
    faults = sorted(_faults(history), key=lambda each: each[0])
    if not faults:
        return ()
    reader = _Reader(faults)
    for traced in trace(history):
        reader.read(traced)
    return tuple(reader.found)


def _faults(history: History) -> Iterator[tuple[int, Leading]]:
    for id in LEADING:
        for each in INVARIANTS[id].search(history):
            if each.at_ms is not None:
                yield each.at_ms, Leading(id, each.shape)


def after_closing(history: History, violation: Violation) -> Leading | None:
    """The violation for which the broker closed a connection, if the client was not in touch with its group since."""
    ms = violation.at_ms
    return next((each.leading for each in _lost(history) if ms is not None and each.includes(ms)), None)


def after_a_fault(history: History, violation: Violation) -> Leading | None:
    """Of a client that is not back: the same, or that it led meanwhile, and could not read what others wrote."""
    closing = after_closing(history, violation)
    if closing is not None or violation.window_ms is None:
        return closing
    since_ms, until_ms = violation.window_ms
    found = (each for each in INVARIANTS[CANNOT_LEAD].search(history) if each.at_ms is not None)
    return next((Leading(CANNOT_LEAD, each.shape) for each in found if since_ms <= (each.at_ms or 0) <= until_ms), None)
