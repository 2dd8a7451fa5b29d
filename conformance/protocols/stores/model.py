"""The reference machine of a released store: one directory that holds values in up to three formats.

The plain value was written by a store without timestamps; the next format has a timestamp in front, and that of 4.3 the
headers of the record as well. A store that finds values of an older format keeps both side by side, and moves a value
when it is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.stores import ops

Stored: TypeAlias = tuple[str, int, str]
"""A value in hex, its timestamp and its headers; of a format without them: -1, and none."""
Values: TypeAlias = tuple[tuple[str, Stored], ...]
"""Keys with what they have in one format, sorted."""


@dataclass(frozen=True, slots=True)
class Contents:
    plain: Values = ()
    timestamped: Values = ()
    headers: Values = ()

    def of(self, format: ops.Format) -> dict[str, Stored]:
        return dict(getattr(self, format))

    def having(self, format: ops.Format, key: str, value: Stored | None) -> "Contents":
        """The key has this in the format; None: nothing."""
        rest = {each: had for each, had in self.of(format).items() if each != key}
        return replace(self, **{format: tuple(sorted({**rest, **({} if value is None else {key: value})}.items()))})


@dataclass(frozen=True, slots=True)
class State:
    open: ops.Format | None = None
    both: bool = False
    """Whether the open store looks for values in two formats."""
    families: frozenset[ops.Format] = frozenset({"plain"})
    """The formats for which the directory has a place."""
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


def known_to(format: ops.Format) -> tuple[ops.Format, ...]:
    """The formats that a store of this one reads: its own first, then older ones."""
    return ops.FORMATS[ops.FORMATS.index(format) :: -1]


class TimestampedStore:
    """``always_both``: a store without a place for timestamps makes one, and then looks for both formats even where
    there is no old value, as in 2.3.0 (KAFKA-8791). ``manages_offsets``: a flush stays in memory, together with the
    offset, as from 4.3 on. ``has_headers``: there is a store with headers, as from 4.3 on."""

    always_both = manages_offsets = has_headers = False

    def __init__(self, always_both: bool = False, manages_offsets: bool = False, has_headers: bool = False) -> None:
        self.always_both = always_both
        self.manages_offsets = manages_offsets
        self.has_headers = has_headers

    def initial(self) -> State:
        return State(flushes=0 if self.manages_offsets else None)

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        if isinstance(event, ops.Open):
            return self.opened(state, event.format)
        if state.open is None:
            return Transition(state, (ops.Rejected(ops.CLOSED),))
        match event:
            case ops.Put(key, value, timestamp, headers):
                return Transition(self.put(state, key, value, timestamp, headers))
            case ops.PutIfAbsent(key, value, timestamp, headers):
                after, had = self.get(state, key)
                if self.absent(state, key, had):
                    after = self.put(after, key, value, timestamp, headers)
                return Transition(after, (self.found(state, had),))
            case ops.Delete(key):
                had = self.peek(state, key)
                return Transition(self.put(state, key, None, None, ops.NO_HEADERS), (self.found(state, had),))
            case ops.Get(key):
                after, had = self.get(state, key)
                return Transition(after, (self.found(state, had),))
            case ops.Range(first, last):
                return Transition(state, (ops.Rows(tuple(self.rows(state, first, last))),))
            case ops.Count():
                return Transition(state, (ops.Counted(self.count(state)),))
            case ops.Restore(key, value, timestamp, headers):
                return Transition(self.restored(state, key, value, timestamp, headers))
            case ops.Flush():
                if state.flushes is not None:
                    return Transition(replace(state, flushes=state.flushes + 1, committed=state.flushes + 1))
                return Transition(replace(state, disk=state.seen))
            case ops.Close():
                return Transition(replace(state, open=None, both=False, disk=state.seen, kept=state.committed))
            case ops.Crash(flushing):
                left = self.left(state, flushing)
                return Transition(replace(state, open=None, both=False, disk=left, seen=left, committed=state.kept))
            case _:
                assert_never(event)

    def opened(self, state: State, format: ops.Format) -> Transition[State, ops.Action]:
        if state.open is not None:
            return Transition(state, (ops.Rejected(ops.LOCKED),))
        if not self.knows(state, format):
            return Transition(state, (ops.Rejected(ops.UNREADABLE),))
        families = state.families | {format}
        if not self.takes(state, format):
            return Transition(replace(state, families=families), (ops.Rejected(ops.UNREADABLE),))
        older = any(state.seen.of(each) for each in known_to(format)[1:])
        both = older or (format == "timestamped" and self.always_both and format not in state.families)
        if format == "headers" and not state.seen.timestamped:
            families -= {"timestamped"}
        return Transition(
            replace(state, open=format, both=both, families=families), (ops.Opened(both, self.flushes(state)),)
        )

    def knows(self, state: State, format: ops.Format) -> bool:
        """Whether the store opens a directory with places for these formats: no older store knows a newer one."""
        return (format != "headers" or self.has_headers) and state.families <= {*known_to(format)}

    def takes(self, state: State, format: ops.Format) -> bool:
        """Whether the store opens a directory with these values, once its own place is made.

        One with headers looks for values in one older format, and refuses two (``RocksDBTimestampedStoreWithHeaders``
        of 4.3.1 and 4.4.0); it has made its place by then, so that a store with timestamps refuses the directory, too.
        """
        return format != "headers" or "timestamped" not in state.families or not state.seen.plain

    def flushes(self, state: State) -> int | None:
        """How many flushes the store says that it has kept."""
        return None if state.flushes is None else state.kept

    def left(self, state: State, flushing: bool) -> Contents:
        """What a crash leaves: of a flush, nothing before it is complete."""
        return state.disk

    def put(self, state: State, key: str, value: str | None, timestamp: int | None, headers: str) -> State:
        assert state.open is not None
        stored = None if value is None else self.stored(state, value, timestamp, headers)
        return replace(state, seen=self.without_old(state, key, value).having(state.open, key, stored))

    def stored(self, state: State, value: str, timestamp: int | None, headers: str) -> Stored:
        """What the open store has of a record."""
        stamp = ops.NO_TIMESTAMP if timestamp is None or state.open == "plain" else timestamp
        return value, stamp, headers if state.open == "headers" else ops.NO_HEADERS

    def without_old(self, state: State, key: str, value: str | None) -> Contents:
        """The contents without what a key has in older formats, before ``value`` is put."""
        assert state.open is not None
        seen = state.seen
        for each in known_to(state.open)[1:]:
            seen = seen.having(each, key, None)
        return seen

    def get(self, state: State, key: str) -> tuple[State, Stored | None]:
        """What a key has; a value in an older format is moved to the newest one."""
        assert state.open is not None
        had = self.peek(state, key)
        if key in state.seen.of(state.open) or had is None:
            return state, had
        return self.moved(state, key, had), had

    def moved(self, state: State, key: str, value: Stored) -> State:
        assert state.open is not None
        return replace(state, seen=self.without_old(state, key, value[0]).having(state.open, key, value))

    def peek(self, state: State, key: str) -> Stored | None:
        assert state.open is not None
        for each in known_to(state.open):
            if (stored := state.seen.of(each).get(key)) is not None:
                return self.converted(state, each, stored)
        return None

    def converted(self, state: State, format: ops.Format, stored: Stored) -> Stored:
        """What the open store makes of a value in this format."""
        return stored

    def absent(self, state: State, key: str, had: Stored | None) -> bool:
        """Whether a record is put if its key is absent."""
        return had is None

    def rows(self, state: State, first: str | None, last: str | None) -> Iterable[ops.Row]:
        assert state.open is not None
        every = {
            key: self.converted(state, each, stored)
            for each in reversed(known_to(state.open))
            for key, stored in state.seen.of(each).items()
        }
        for key in sorted(every, key=bytes.fromhex):
            if (first is None or bytes.fromhex(first) <= bytes.fromhex(key)) and (
                last is None or bytes.fromhex(key) <= bytes.fromhex(last)
            ):
                yield self.row(state, key, every[key])

    def row(self, state: State, key: str, stored: Stored) -> ops.Row:
        return ops.Row(key, *self.shown(state, stored))

    def shown(self, state: State, stored: Stored) -> tuple[str, int, str | None]:
        return (*stored[:2], stored[2] if state.open == "headers" else None)

    def found(self, state: State, had: Stored | None) -> ops.Found:
        return ops.Found(None, None) if had is None else ops.Found(*self.shown(state, had))

    def count(self, state: State) -> int:
        assert state.open is not None
        return sum(len(state.seen.of(each)) for each in known_to(state.open))

    def restored(self, state: State, key: str, value: str | None, timestamp: int, headers: str) -> State:
        return self.put(state, key, value, timestamp, headers)

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return (
            each
            for each in EVENTS
            if (state.open == "headers" or not getattr(each, "headers", "")) and self.accepts(state, each)
        )

    def accepts(self, state: State, event: ops.Event) -> bool:
        """Whether ``step`` accepts the event."""
        return not any(isinstance(each, ops.Rejected) for each in self.step(state, event).actions)


def store_of(release: str) -> TimestampedStore:
    """The store of a release."""
    at = Release.parse(release)
    return TimestampedStore(
        always_both=at in releases(span("stores-always-both")),
        manages_offsets=at in releases(span("stores-manage-offsets")),
        has_headers=at in releases(span("stores-with-headers")),
    )


EVENTS: tuple[ops.Event, ...] = (
    ops.Open("timestamped"),
    ops.Open("plain"),
    ops.Open("headers"),
    *(ops.Put(key, value, 5) for key in ops.KEYS for value in (ops.VALUES[0], None)),
    *(ops.Put(key, ops.VALUES[0], 5, ops.HEADERS[1]) for key in ops.KEYS),
    *(ops.PutIfAbsent(key, ops.VALUES[1], 7) for key in ops.KEYS),
    *(ops.Delete(key) for key in ops.KEYS),
    *(ops.Get(key) for key in ops.KEYS),
    ops.Range(),
    *(ops.Range(ops.KEYS[0], last) for last in ops.KEYS[1:4]),
    ops.Count(),
    *(ops.Restore(key, value, 7) for key in ops.KEYS for value in (ops.VALUES[0], None)),
    ops.Flush(),
    ops.Close(),
    ops.Crash(),
    ops.Crash(flushing=True),
)
