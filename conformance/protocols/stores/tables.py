"""The lives of a store that do not depend on a seed: each operation on a value of each older format, and each crash."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.stores import ops
from kipcheck.conformance.protocols.stores.model import store_of

KEY, OTHER = ops.KEYS[:2]
OPERATED: Final[tuple[ops.Event, ...]] = (
    ops.Get(KEY), ops.Range(), ops.Range(KEY, KEY), ops.Count(), ops.Put(KEY, "32", 8), ops.Put(KEY, None),
    ops.Delete(KEY),
    ops.PutIfAbsent(KEY, "32", 8), ops.Restore(KEY, "32", 8), ops.Restore(KEY, None, 8),
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


def _given(kind: str, lives: Iterable[Iterable[ops.Event]]) -> tuple[Conversation, ...]:
    return tuple(Conversation(tuple(map(ops.OPERATIONS.step_of, each)), kind) for each in lives)


def _pairs(has_headers: bool) -> Iterator[tuple[ops.Format, ops.Format]]:
    """The store that wrote a value, and the one that opens the directory then."""
    yield "plain", "timestamped"
    yield "timestamped", "timestamped"
    yield "plain", "plain"
    if has_headers:
        yield "plain", "headers"
        yield "timestamped", "headers"
        yield "headers", "headers"


def _operations(has_headers: bool) -> Iterator[tuple[ops.Event, ...]]:
    for older, newer in _pairs(has_headers):
        for value, operated in product(ops.VALUES if older != newer else ops.VALUES[:1], OPERATED):
            written = ops.Open(older), ops.Put(KEY, value, 5), ops.Close(), ops.Open(newer)
            yield *written, operated, ops.Get(KEY), ops.Range(), ops.Get(OTHER)
            if older != newer:
                yield *written, ops.Get(KEY), operated, ops.Get(KEY), ops.Put(OTHER, "33", 6), ops.Range()


def _timestamps(has_headers: bool) -> Iterator[tuple[ops.Event, ...]]:
    formats: tuple[ops.Format, ...] = ("timestamped", "headers") if has_headers else ("timestamped",)
    for format, timestamp in product(formats, ops.TIMESTAMPS):
        headers = ops.HEADERS[1] if format == "headers" else ops.NO_HEADERS
        for put in (ops.Put, ops.PutIfAbsent, ops.Restore):
            yield (
                ops.Open(format), put(KEY, "31", timestamp, headers), ops.Get(KEY), ops.Range(), ops.PutIfAbsent(KEY,
                "32", 8),
                ops.Close(), ops.Open(format), ops.Get(KEY), ops.Delete(KEY), ops.Get(KEY),
            )  # fmt: skip


def _mixed() -> Iterator[tuple[ops.Event, ...]]:
    """A directory with values of both older formats: a store with headers opens it, and then one of each format."""
    formats: tuple[ops.Format, ...] = ("plain", "timestamped", "headers")
    touches: tuple[ops.Event, ...] = ops.Get(KEY), ops.Put(KEY, "32", 6), ops.Put(KEY, "32", -1)
    for touched, then in product(touches, formats):
        written = (
            ops.Open("plain"),
            ops.Put(KEY, "31", 5),
            ops.Put(OTHER, "", 6),
            ops.Close(),
            ops.Open("timestamped"),
            touched,
            ops.Close(),
        )
        yield *written, ops.Open("headers"), ops.Open(then), ops.Get(OTHER), ops.Range()


def _crashes(has_headers: bool) -> Iterator[tuple[ops.Event, ...]]:
    for older, newer in _pairs(has_headers):
        written = ops.Open(older), ops.Put(KEY, "31", 5), ops.Put(OTHER, "", 6), ops.Close(), ops.Open(newer)
        for operated, flush, flushing in product(OPERATED, ((), (ops.Flush(),)), (False, True)):
            yield (
                *written,
                operated,
                *flush,
                ops.Crash(flushing),
                ops.Open(newer),
                ops.Get(OTHER),
                ops.Get(KEY),
                ops.Range(),
            )
    for format in ("plain", "timestamped"):
        yield ops.Open(format), ops.Put(KEY, "31", 5), ops.Crash(), ops.Open(format), ops.Get(KEY)
        yield (
            ops.Open(format),
            ops.Put(KEY, "31", 5),
            ops.Flush(),
            ops.Put(KEY, "32", 6),
            ops.Crash(),
            ops.Open(format),
            ops.Get(KEY),
            ops.Range(),
        )
