"""The lives of a store that do not depend on a seed: each operation on a value of each older format, and each crash."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.ops import (
    HEADERS,
    KEYS,
    NO_HEADERS,
    OPERATIONS,
    TIMESTAMPS,
    VALUES,
    Close,
    Count,
    Crash,
    Delete,
    Event,
    Flush,
    Format,
    Get,
    Open,
    Put,
    PutIfAbsent,
    Range,
    Restore,
)

KEY, OTHER = KEYS[:2]
OPERATED: Final[tuple[Event, ...]] = (
    Get(KEY), Range(), Range(KEY, KEY), Count(), Put(KEY, "32", 8), Put(KEY, None), Delete(KEY),
    PutIfAbsent(KEY, "32", 8), Restore(KEY, "32", 8), Restore(KEY, None, 8),
)  # fmt: skip
"""Each operation on a key."""


def contents(subject: Subject) -> Iterable[Conversation]:
    """A value of each older format, or of the store's own, then each operation, and readings; each timestamp."""
    return _contents(_has_headers(subject))


def upgrades(subject: Subject) -> Iterable[Conversation]:
    """The same, with a crash before, within or after a flush."""
    return _upgrades(_has_headers(subject))


def _has_headers(subject: Subject) -> bool:
    return store_of(edition(subject.edition).release).has_headers


@cache
def _contents(has_headers: bool) -> tuple[Conversation, ...]:
    return (*_given("operation", _operations(has_headers)), *_given("timestamp", _timestamps(has_headers)))


@cache
def _upgrades(has_headers: bool) -> tuple[Conversation, ...]:
    return (*_given("crash", _crashes(has_headers)), *_given("mixed", _mixed() if has_headers else ()))


def _given(kind: str, lives: Iterable[Iterable[Event]]) -> tuple[Conversation, ...]:
    return tuple(Conversation(tuple(map(OPERATIONS.step_of, each)), kind) for each in lives)


def _pairs(has_headers: bool) -> Iterator[tuple[Format, Format]]:
    """The store that wrote a value, and the one that opens the directory then."""
    yield "plain", "timestamped"
    yield "timestamped", "timestamped"
    yield "plain", "plain"
    if has_headers:
        yield "plain", "headers"
        yield "timestamped", "headers"
        yield "headers", "headers"


def _operations(has_headers: bool) -> Iterator[tuple[Event, ...]]:
    for older, newer in _pairs(has_headers):
        for value, operated in product(VALUES if older != newer else VALUES[:1], OPERATED):
            written = Open(older), Put(KEY, value, 5), Close(), Open(newer)
            yield *written, operated, Get(KEY), Range(), Get(OTHER)
            if older != newer:
                yield *written, Get(KEY), operated, Get(KEY), Put(OTHER, "33", 6), Range()


def _timestamps(has_headers: bool) -> Iterator[tuple[Event, ...]]:
    formats: tuple[Format, ...] = ("timestamped", "headers") if has_headers else ("timestamped",)
    for format, timestamp in product(formats, TIMESTAMPS):
        headers = HEADERS[1] if format == "headers" else NO_HEADERS
        for put in (Put, PutIfAbsent, Restore):
            yield (
                Open(format), put(KEY, "31", timestamp, headers), Get(KEY), Range(), PutIfAbsent(KEY, "32", 8),
                Close(), Open(format), Get(KEY), Delete(KEY), Get(KEY),
            )  # fmt: skip


def _mixed() -> Iterator[tuple[Event, ...]]:
    """A directory with values of both older formats: a store with headers opens it, and then one of each format."""
    formats: tuple[Format, ...] = ("plain", "timestamped", "headers")
    touches: tuple[Event, ...] = Get(KEY), Put(KEY, "32", 6), Put(KEY, "32", -1)
    for touched, then in product(touches, formats):
        written = Open("plain"), Put(KEY, "31", 5), Put(OTHER, "", 6), Close(), Open("timestamped"), touched, Close()
        yield *written, Open("headers"), Open(then), Get(OTHER), Range()


def _crashes(has_headers: bool) -> Iterator[tuple[Event, ...]]:
    for older, newer in _pairs(has_headers):
        written = Open(older), Put(KEY, "31", 5), Put(OTHER, "", 6), Close(), Open(newer)
        for operated, flush, flushing in product(OPERATED, ((), (Flush(),)), (False, True)):
            yield *written, operated, *flush, Crash(flushing), Open(newer), Get(OTHER), Get(KEY), Range()
    for format in ("plain", "timestamped"):
        yield Open(format), Put(KEY, "31", 5), Crash(), Open(format), Get(KEY)
        yield Open(format), Put(KEY, "31", 5), Flush(), Put(KEY, "32", 6), Crash(), Open(format), Get(KEY), Range()
