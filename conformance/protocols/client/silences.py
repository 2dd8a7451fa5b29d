"""Finds the silences of a client: how long it sent nothing to its group, after which request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import events, terms
from kipcheck.conformance.protocols.client.trace import events_of

LEAST_MS: Final = 1000
"""A shorter pause is no silence."""
INTERVALS: Final = 3
"""Nor is one of fewer heartbeat intervals."""
TO_THE_GROUP: Final = terms.OF_GROUPS | terms.GROUP_REQUESTS


@final
@dataclass(frozen=True, slots=True)
class Silence:
    """A client sends its group nothing."""

    ms: int
    """How long, from its last request, or from the answer to it."""
    is_breach: bool
    """Whether it fills most of the time in which a bound was broken: then it is one however short it is."""


@dataclass(slots=True)
class _Reader:
    """Goes through the events of a script."""

    window_ms: tuple[int, int] | None
    interval_ms: int = 0
    last: int | None = None
    """The place of the last request to the group; None: the program that runs has sent none."""
    since_ms: int = 0
    """When it was sent, or answered."""
    waiting: Counter[int] = field(default_factory=Counter)
    """Connection -> requests to the group that are not answered."""
    found: dict[int, Silence] = field(default_factory=dict)

    def read(self, place: int, event: events.Event) -> None:
        match event:
            case events.RequestSeen() if event.api in TO_THE_GROUP:
                self.end(event.ms)
                self.last, self.since_ms = place, event.ms
                self.waiting[event.connection] += 1
            case events.AnswerSeen() if self.waiting[event.connection] and event.api in TO_THE_GROUP:
                self.since_ms = event.ms
                self.waiting[event.connection] -= 1
            case events.Closed() if self.waiting.pop(event.connection, 0):
                self.since_ms = event.ms
            case events.Thawed():
                self.since_ms = event.ms
            case events.Launched() | events.Restarted() | events.Ended() | events.Killed():
                self.end(event.ms)
                self.last = None
                self.waiting.clear()
        if isinstance(event, events.Launched):
            self.interval_ms = event.heartbeat_ms or 0

    def end(self, ms: int) -> None:
        """The silence after the last request ends, unless the client waits for an answer."""
        if self.last is None or self.waiting.total():
            return
        silent_ms = ms - self.since_ms
        since_ms, until_ms = self.window_ms or (terms.NEVER, -1)
        common_ms = min(ms, until_ms) - max(self.since_ms, since_ms)
        is_breach = 2 * common_ms > until_ms - since_ms
        if is_breach or silent_ms >= max(LEAST_MS, INTERVALS * self.interval_ms):
            self.found[self.last] = Silence(silent_ms, is_breach)


def silences_of(history: History, violation: Violation | None) -> Mapping[int, Silence]:
    """The silences, by the place of the request in front of each among all events.

    A client that waits for an answer is not silent. ``violation``: that of a bound in time, which may be the silence.
    """
    reader = _Reader(None if violation is None else violation.window_ms)
    ms = 0
    for place, (_, event) in enumerate(events_of(history)):
        reader.read(place, event)
        ms = event.ms
    reader.end(ms)
    return reader.found
