"""The reference machine of a released store with timestamps: one directory that holds values in two formats.

The old format, the plain value, was written by a store without timestamps; the new one has a timestamp in front. A
store that finds old values keeps both formats side by side, and moves a value when it is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.core.release import Release, releases
from kipcheck.conformance.core.releases_table import span
from kipcheck.conformance.protocols.stores.ops import (
    CLOSED,
    KEYS,
    LOCKED,
    NO_TIMESTAMP,
    UNREADABLE,
    VALUES,
    Action,
    Close,
    Count,
    Counted,
    Crash,
    Delete,
    Event,
    Flush,
    Format,
    Found,
    Get,
    Open,
    Opened,
    Put,
    PutIfAbsent,
    Range,
    Rejected,
    Restore,
    Row,
    Rows,
)

Stamped: TypeAlias = tuple[str, int]
"""A value in hex, and its timestamp."""
Old: TypeAlias = tuple[tuple[str, str], ...]
"""Keys with values in the old format, sorted."""
New: TypeAlias = tuple[tuple[str, Stamped], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    old: Old = ()
    new: New = ()

    def with_old(self, key: str, value: str | None) -> "Contents":
        rest = {each: had for each, had in self.old if each != key}
        return replace(self, old=tuple(sorted({**rest, **({} if value is None else {key: value})}.items())))

    def with_new(self, key: str, value: Stamped | None) -> "Contents":
        rest = {each: had for each, had in self.new if each != key}
        return replace(self, new=tuple(sorted({**rest, **({} if value is None else {key: value})}.items())))


@dataclass(frozen=True, slots=True)
class State:
    open: Format | None = None
    both: bool = False
    """Whether the open store looks for values in both formats."""
    family: bool = False
    """Whether the directory has a place for the new format."""
    disk: Contents = Contents()
    """What a crash leaves."""
    flushes: int | None = None
    """How often the store was flushed, if it manages offsets."""
    committed: int = 0
    """The last flush since which the store was not lost: it is the offset in the store."""
    kept: int = 0
    """That offset on disk."""
    seen: Contents = Contents()
    """What the open store has; of a closed one, the same as the disk."""


class TimestampedStore:
    """``always_both``: a store without a place for the new format makes one, and then looks for both formats even where
    there is no old value, as in 2.3.0 (KAFKA-8791). ``manages_offsets``: a flush stays in memory, together with the
    offset, as from 4.3 on."""

    always_both = manages_offsets = False

    def __init__(self, always_both: bool = False, manages_offsets: bool = False) -> None:
        self.always_both = always_both
        self.manages_offsets = manages_offsets

    def initial(self) -> State:
        return State(flushes=0 if self.manages_offsets else None)

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        if isinstance(event, Open):
            return self.opened(state, event.format)
        if state.open is None:
            return Transition(state, (Rejected(CLOSED),))
        match event:
            case Put(key, value, timestamp):
                return Transition(self.put(state, key, value, timestamp))
            case PutIfAbsent(key, value, timestamp):
                after, had = self.get(state, key)
                if self.absent(state, key, had):
                    after = self.put(after, key, value, timestamp)
                return Transition(after, (found(had),))
            case Delete(key):
                had = self.peek(state, key)
                return Transition(self.put(state, key, None, None), (found(had),))
            case Get(key):
                after, had = self.get(state, key)
                return Transition(after, (found(had),))
            case Range(first, last):
                return Transition(state, (Rows(tuple(self.rows(state, first, last))),))
            case Count():
                return Transition(state, (Counted(self.count(state)),))
            case Restore(key, value, timestamp):
                return Transition(self.restored(state, key, value, timestamp))
            case Flush():
                if state.flushes is not None:
                    return Transition(replace(state, flushes=state.flushes + 1, committed=state.flushes + 1))
                return Transition(replace(state, disk=state.seen))
            case Close():
                return Transition(replace(state, open=None, both=False, disk=state.seen, kept=state.committed))
            case Crash(flushing):
                left = self.left(state, flushing)
                return Transition(replace(state, open=None, both=False, disk=left, seen=left, committed=state.kept))
            case _:
                assert_never(event)

    def opened(self, state: State, format: Format) -> Transition[State, Action]:
        if state.open is not None:
            return Transition(state, (Rejected(LOCKED),))
        if format == "plain":
            if state.family:
                return Transition(state, (Rejected(UNREADABLE),))
            return Transition(replace(state, open=format), (Opened(False, self.flushes(state)),))
        if not self.takes(state):
            return Transition(state, (Rejected(UNREADABLE),))
        both = bool(state.seen.old) or (self.always_both and not state.family)
        return Transition(replace(state, open=format, both=both, family=True), (Opened(both, self.flushes(state)),))

    def flushes(self, state: State) -> int | None:
        """How many flushes the store says that it has kept."""
        return None if state.flushes is None else state.kept

    def takes(self, state: State) -> bool:
        """Whether the store with timestamps opens the directory."""
        return True

    def left(self, state: State, flushing: bool) -> Contents:
        """What a crash leaves: of a flush, nothing before it is complete."""
        return state.disk

    def put(self, state: State, key: str, value: str | None, timestamp: int | None) -> State:
        if state.open == "plain":
            return replace(state, seen=state.seen.with_old(key, value))
        seen = self.without_old(state, key, value).with_new(
            key, None if value is None else self.stamped(value, timestamp)
        )
        return replace(state, seen=seen)

    def stamped(self, value: str, timestamp: int | None) -> Stamped:
        return (value, NO_TIMESTAMP if timestamp is None else timestamp)

    def without_old(self, state: State, key: str, value: str | None) -> Contents:
        """The contents without what a key has in the old format, before ``value`` is put."""
        return state.seen.with_old(key, None)

    def get(self, state: State, key: str) -> tuple[State, Stamped | None]:
        """What a key has; a value in the old format is moved to the new one."""
        had = self.peek(state, key)
        if state.open == "plain" or key in dict(state.seen.new) or had is None:
            return state, had
        return self.moved(state, key, had), had

    def moved(self, state: State, key: str, value: Stamped) -> State:
        return replace(state, seen=state.seen.with_old(key, None).with_new(key, value))

    def peek(self, state: State, key: str) -> Stamped | None:
        old = dict(state.seen.old).get(key)
        if state.open == "timestamped" and key in dict(state.seen.new):
            return dict(state.seen.new)[key]
        return None if old is None else self.converted(state, old)

    def converted(self, state: State, value: str) -> Stamped:
        """A value in the old format."""
        return (value, NO_TIMESTAMP)

    def absent(self, state: State, key: str, had: Stamped | None) -> bool:
        """Whether a record is put if its key is absent."""
        return had is None

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[Row]:
        every: Mapping[str, Stamped] = {
            **{key: self.converted(state, value) for key, value in state.seen.old},
            **(dict(state.seen.new) if state.open == "timestamped" else {}),
        }
        for key in sorted(every, key=bytes.fromhex):
            if (first is None or bytes.fromhex(first) <= bytes.fromhex(key)) and (
                last is None or bytes.fromhex(key) <= bytes.fromhex(last)
            ):
                yield Row(key, *every[key])

    def count(self, state: State) -> int:
        return len(state.seen.old) + (len(state.seen.new) if state.open == "timestamped" else 0)

    def restored(self, state: State, key: str, value: str | None, timestamp: int) -> State:
        return self.put(state, key, value, timestamp)

    def enabled(self, state: State, /) -> Iterable[Event]:
        return (each for each in EVENTS if self.accepts(state, each))

    def accepts(self, state: State, event: Event) -> bool:
        """Whether ``step`` accepts the event."""
        return not any(isinstance(each, Rejected) for each in self.step(state, event).actions)


def found(had: Stamped | None) -> Found:
    return Found(None, None) if had is None else Found(*had)


def store_of(release: str) -> TimestampedStore:
    """The store of a release."""
    at = Release.parse(release)
    return TimestampedStore(
        always_both=at in releases(span("stores-always-both")),
        manages_offsets=at in releases(span("stores-manage-offsets")),
    )


EVENTS: tuple[Event, ...] = (
    Open("timestamped"),
    Open("plain"),
    *(Put(key, value, 5) for key in KEYS for value in (VALUES[0], None)),
    *(PutIfAbsent(key, VALUES[1], 7) for key in KEYS),
    *(Delete(key) for key in KEYS),
    *(Get(key) for key in KEYS),
    Range(),
    *(Range(KEYS[0], last) for last in KEYS[1:4]),
    Count(),
    *(Restore(key, value, 7) for key in KEYS for value in (VALUES[0], None)),
    Flush(),
    Close(),
    Crash(),
    Crash(flushing=True),
)
