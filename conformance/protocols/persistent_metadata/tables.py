"""KIP-384's decision tables, whole: the cases that do not depend on a seed.

The draft decides by three settings, and what is decided changes at one step, the first of 2.2. Each table has the last
step before it, that step, and the last of its line; names have those of every line, and the step after its last.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any, Final, get_args

from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.persistent_metadata import ops
from kipcheck.conformance.protocols.persistent_metadata.settings import STEPS, Binary, admits, resolved
from kipcheck.conformance.wire.stored_records import version_counts

LAST_OLD, FIRST_NEW, LAST_NEW = "2.1-IV2", "2.2-IV0", "2.2-IV1"
POINTS: Final = (LAST_OLD, FIRST_NEW, LAST_NEW)
OLDEST: Final = next(iter(version_counts()))
STORES: Final[tuple[ops.Store, ...]] = get_args(ops.Store)
TOPICS: Final = tuple(each for each in STORES if each in ops.REPLICATED)
OLDER: Final[tuple[Binary, ...]] = ("2.1", "2.0")
NO_NAMES: Final = (
    "2.3",
    "2.3-IV0",
    "latest",
    "2",
    "2.2-IV",
    "2.2-IV01",
    "2.2-IV-1",
    "2.2IV0",
    "2.2_IV0",
    "-IV0",
    "v2.2",
)
"""Names that no binary knows."""


def names() -> Iterator[str]:
    """Each line, its first and last step, and the one after it."""
    for line, steps in STEPS.items():
        yield line
        yield f"{line}.0"
        yield from dict.fromkeys(f"{line}-IV{step}" for step in (0, max(steps - 1, 0), steps))
    yield from NO_NAMES


def _given(kind: str, lives: Iterable[Iterable[ops.Event]]) -> tuple[Conversation, ...]:
    return tuple(Conversation(tuple(map(ops.OPERATIONS.step_of, each)), kind) for each in lives)


@cache
def _configurations() -> tuple[Conversation, ...]:
    return (
        *_given("name", map(_named, names())),
        *_given("defaults", _defaults()),
        *_given("bound", _bounds()),
    )


def configurations(subject: Any) -> Iterable[Conversation]:
    """Every name as each setting of each binary; every pair of settings without the third; a topic and two brokers."""
    return _configurations()


def _named(name: str) -> Iterator[ops.Event]:
    for binary in ("2.2", *OLDER):
        yield ops.Start(0, binary, name, None, None)
        yield ops.Start(0, binary, None, name, OLDEST)
        yield ops.Start(0, binary, None, None, name)
    yield ops.Start(0, "2.2")
    yield ops.TopicFormat(name)


def _defaults() -> Iterator[tuple[ops.Event, ...]]:
    binaries: tuple[tuple[Binary, tuple[str | None, ...]], ...] = (
        ("2.2", (None, *POINTS)),
        ("2.1", (None, "2.0-IV1", "2.1-IV0", LAST_OLD)),
        ("2.0", (None, "1.1-IV0", "2.0-IV1")),
    )
    for binary, points in binaries:
        for between, format in product(points, points):
            yield tuple(ops.Start(0, binary, between, persistent, format) for persistent in points)


def _bounds() -> Iterator[tuple[ops.Event, ...]]:
    for one, other, topic in product(POINTS, POINTS, POINTS):
        first, second = ops.Start(0, "2.2", None, one, OLDEST), ops.Start(1, "2.2", None, other, OLDEST)
        yield first, second, ops.TopicFormat(topic)
        yield ops.Start(0, "2.2"), ops.TopicFormat(topic), second, ops.Stop(0), first
    for topic in (*POINTS, "2.0"):
        for older in OLDER:
            yield ops.Start(0, "2.2"), ops.Start(1, older), ops.TopicFormat(topic)
            yield ops.Start(0, "2.2"), ops.TopicFormat(topic), ops.Start(1, older)


def _allowed(between: str, persistent: str, format: str) -> bool:
    settings = resolved("2.2", between, persistent, format)
    return settings is not None and admits(settings, settings.format)


@cache
def _formats() -> tuple[Conversation, ...]:
    return (
        *_given("gate", _gates()),
        *_given("override", _overrides()),
        *_given("roll", _mixed_settings()),
        *_given("replicas", _replicas()),
        *_given("lowered", _lowered()),
    )


def formats(subject: Any) -> Iterable[Conversation]:
    """Every store under every triple of settings, of topics with an override, of two brokers, and a lowered setting."""
    return _formats()


def _written(broker: int, stores: Iterable[ops.Store] = STORES) -> Iterator[ops.Event]:
    for store in stores:
        yield ops.Write(broker, store)
        yield ops.Write(broker, store, compatible=True)
        yield ops.Read(broker, store)


def _gates() -> Iterator[tuple[ops.Event, ...]]:
    for between, persistent, format in product(POINTS, POINTS, POINTS):
        if _allowed(between, persistent, format):
            yield ops.Start(0, "2.2", between, persistent, format), *_written(0)
    for binary in OLDER:
        yield ops.Start(0, binary), *_written(0)
        yield ops.Start(0, binary, "1.1", "1.1", "1.1"), *_written(0)


def _overrides() -> Iterator[tuple[ops.Event, ...]]:
    for persistent, format, topic in product(POINTS, POINTS, POINTS):
        if _allowed(LAST_NEW, persistent, format) and topic <= persistent:
            started = ops.Start(0, "2.2", LAST_OLD, persistent, format)
            yield (
                started,
                ops.TopicFormat(topic),
                ops.Write(0, "messages"),
                ops.Write(0, "offsets"),
                ops.Read(0, "messages"),
            )
            yield started, ops.TopicFormat(topic), ops.TopicFormat(None), ops.Write(0, "messages")


def _mixed_settings() -> Iterator[tuple[ops.Event, ...]]:
    """Each leader writes by its own settings."""
    for raised in (0, 1):
        both = (ops.Start(raised, "2.2"), ops.Start(1 - raised, "2.2", None, LAST_OLD, LAST_OLD))
        for order in (both, both[::-1]):
            for store in STORES:
                yield *order, ops.Write(1 - raised, store), ops.Write(raised, store), ops.Read(raised, store)


def _replicas() -> Iterator[tuple[ops.Event, ...]]:
    """What a leader writes, every replica has: one that was there, one that comes later, and a new leader."""
    follower = [ops.Start(1, "2.2", between, persistent, LAST_OLD) for between, persistent in product(POINTS, POINTS)]
    for start, store in product(follower, TOPICS):
        yield ops.Start(0, "2.2"), start, ops.Write(0, store), ops.Read(1, store), ops.Read(0, store)
        yield (
            ops.Start(0, "2.2"),
            ops.Write(0, store),
            start,
            ops.Read(1, store),
            ops.Write(1, store),
            ops.Read(0, store),
        )
        yield ops.Start(0, "2.2"), start, ops.Write(0, store), ops.Stop(0), ops.Write(1, store), ops.Read(1, store)
    for store in TOPICS:
        older = ops.Start(0, "2.2", None, LAST_OLD, LAST_OLD)
        yield older, ops.Start(1, "2.2"), ops.Write(0, store), ops.Read(1, store), ops.Read(0, store)


def _lowered() -> Iterator[tuple[ops.Event, ...]]:
    for store in STORES:
        lowered = ops.Start(0, "2.2", LAST_OLD, LAST_OLD, LAST_OLD)
        yield (
            ops.Start(0, "2.2"),
            ops.Write(0, store),
            lowered,
            ops.Read(0, store),
            ops.Write(0, store),
            ops.Read(0, store),
        )
        yield (
            lowered,
            ops.Write(0, store),
            ops.Start(0, "2.2"),
            ops.Read(0, store),
            ops.Write(0, store),
            ops.Read(0, store),
        )


@cache
def _rolls() -> tuple[Conversation, ...]:
    return (
        *_given("way back", _ways_back()),
        *_given("no way back", _no_ways_back()),
        *_given("beside", _beside()),
    )


def rolls(subject: Any) -> Iterable[Conversation]:
    """Every store, written before and after the setting is raised, and read by every older binary."""
    return _rolls()


def _ways_back() -> Iterator[tuple[ops.Event, ...]]:
    for store, between, older in product(STORES, (FIRST_NEW, LAST_NEW), OLDER):
        for format in (LAST_OLD, "2.0"):
            newer = ops.Start(0, "2.2", between, LAST_OLD, format)
            yield (
                newer,
                ops.Write(0, store),
                ops.Write(0, store, True),
                ops.Start(0, older),
                ops.Read(0, store),
                ops.Write(0, store),
            )


def _no_ways_back() -> Iterator[tuple[ops.Event, ...]]:
    for store, persistent, older in product(STORES, (FIRST_NEW, LAST_NEW), OLDER):
        raised = ops.Start(0, "2.2", LAST_OLD, persistent, persistent)
        yield raised, ops.Write(0, store), ops.Start(0, older), raised, ops.Read(0, store), ops.Write(0, store)
        yield raised, ops.Write(0, store, True), ops.Start(0, "2.2", LAST_OLD, LAST_OLD, LAST_OLD), ops.Write(0, store)


def _beside() -> Iterator[tuple[ops.Event, ...]]:
    """A broker with an older binary beside one that writes the new format."""
    for store, older in product(STORES, OLDER):
        newer, other = ops.Start(0, "2.2", None, None, "2.0"), ops.Start(1, older, None, None, "2.0")
        raised = ops.Start(0, "2.2", LAST_OLD, LAST_NEW, LAST_NEW)
        yield newer, other, ops.Write(0, store), ops.Read(1, store), ops.Write(1, store)
        yield raised, other, ops.Write(0, store), ops.Read(1, store), ops.Write(1, store), ops.Read(0, store)
        yield raised, ops.Write(0, store), other, ops.Read(0, store)
