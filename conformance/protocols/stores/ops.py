"""The operations of a key-value store with timestamps, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, optional, typical
from kipcheck.conformance.core.operations.field_kinds import record
from kipcheck.conformance.core.values.case import Role

NO_TIMESTAMP: Final = -1
"""The timestamp of a value that was stored without one."""
CLOSED: Final = "CLOSED"
LOCKED: Final = "LOCKED"
UNREADABLE: Final = "UNREADABLE"
"""Error classes of the model: a released store throws exceptions instead, and no law compares them."""

Format: TypeAlias = Literal["timestamped", "plain", "headers"]
FORMATS: Final[tuple[Format, ...]] = ("plain", "timestamped", "headers")
"""The oldest first."""
HEX: Final = r"(?:[0-9a-f][0-9a-f])*"
KEYS: Final = ("61", "62", "6162", "ff", "00")
"""Neighbours in every order: as text, as bytes, and by length."""
VALUES: Final = ("31", "", "0000000000000005", "ffffffffffffffff32")
"""Two of them begin as if they had a timestamp."""
TIMESTAMPS: Final = (5, 0, 7, 2**62, -1, -2, 1, -(2**63), 2**63 - 1)
"""Those below zero too: no store of a release refuses one, and -1 is also that of a value without a timestamp."""
Key: TypeAlias = Annotated[str, about("its key, in hex"), typical(*KEYS)]
Value: TypeAlias = Annotated[str | None, about("the value, in hex; null deletes"), typical(*VALUES)]
Timestamp: TypeAlias = Annotated[int | None, about("in ms; a plain store has none"), typical(*TIMESTAMPS)]
NO_HEADERS: Final = ""
HEADERS: Final = (NO_HEADERS, "h=31", "h=32,i=,h=31", "i")
"""The second has a repeated key and an empty value, the last one a null value."""
HEADER: Final = rf"[A-Za-z]\w*(?:={HEX})?"
Headers: TypeAlias = Annotated[
    str, about("of the record, in order, as NAME=HEX or NAME (a null value), by commas"), optional, typical(*HEADERS)
]
WITH: Final = rf"[ with {{headers:{HEADER}(?:,{HEADER})*}}]"


@answer()
@dataclass(frozen=True, slots=True)
class Opened:
    both: bool | None
    """Whether the store looks for values in both formats; null: unknown."""
    flushes: int | None = None
    """Of how many flushes since the case began the store says that it has kept them; null: of all."""


@answer()
@dataclass(frozen=True, slots=True)
class Found:
    """What the store has, or had, of a key."""

    value: str | None
    timestamp: int | None
    """-1: it was stored without one. Null with the value."""
    headers: Annotated[str | None, optional] = None
    """Of the record, as they were put. Null with the value, and for a store without headers."""


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    value: str
    timestamp: int
    headers: str | None = None


@answer()
@dataclass(frozen=True, slots=True)
class Rows:
    rows: tuple[Annotated[Row, record(Row, omitted=("headers",))], ...]


@answer()
@dataclass(frozen=True, slots=True)
class Counted:
    count: int


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]


Action: TypeAlias = Opened | Found | Rows | Counted | Rejected


@operation(
    "store-open", "task", "open {format}", examples="open plain; open timestamped", sentence="open the {format} store",
    accepted=Opened,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Open:
    """A task opens the store in its directory, which it creates if there is none.

    ``plain`` is the store without timestamps, as every release before 2.3 has it; ``headers`` is the store that keeps
    the headers of a record, too, as 4.3 and later have it.
    """

    format: Annotated[Format, about("which store")]


@operation(
    "store-put", "task", (rf"put {{key:{HEX}}}={{value:{HEX}}}[ at {{timestamp}}]{WITH}", rf"put {{key:{HEX}}} null"),
    examples="put 61=31 at 5; put 61=31 at 5 with h=31; put 61 null",
    sentence=("put {key}={value}[ at {timestamp}][ with headers {headers}]", "put {key} with a null value"),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Put:
    """A task puts a record."""

    key: Key
    value: Value
    timestamp: Timestamp = None
    headers: Headers = NO_HEADERS


@operation(
    "store-put-if-absent", "task", rf"put-if-absent {{key:{HEX}}}={{value:{HEX}}}[ at {{timestamp}}]{WITH}",
    examples="put-if-absent 61=31 at 5",
    sentence="put {key}={value}[ at {timestamp}][ with headers {headers}] if the key is absent",
    accepted=Found,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class PutIfAbsent:
    """A task puts a record whose key is absent, and gets what there was."""

    key: Key
    value: Annotated[str, about("the value, in hex"), typical(*VALUES)]
    timestamp: Timestamp = None
    headers: Headers = NO_HEADERS


@operation(
    "store-delete", "task", rf"delete {{key:{HEX}}}", examples="delete 61", sentence="delete {key}", accepted=Found
)
@dataclass(frozen=True, slots=True)
class Delete:
    """A task deletes a key, and gets what there was."""

    key: Key


@operation("store-get", "task", rf"get {{key:{HEX}}}", examples="get 61", sentence="get {key}", accepted=Found)
@dataclass(frozen=True, slots=True)
class Get:
    """A task reads a key."""

    key: Key


@operation(
    "store-range", "task", (rf"range {{first:{HEX}}}-{{last:{HEX}}}", "all"), examples="range 61-62; all",
    sentence=("read the keys from {first} to {last}", "read all keys"), accepted=Rows,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Range:
    """A task reads a range of keys, both ends included, or all of them."""

    first: Annotated[str | None, about("the first key, in hex; null with the last: all"), typical(*KEYS)] = None
    last: Annotated[str | None, about("the last key, in hex"), typical(*KEYS)] = None


@operation("store-count", "task", "count", sentence="count the records", accepted=Counted)
@dataclass(frozen=True, slots=True)
class Count:
    """A task asks for the approximate number of records."""


@operation(
    "store-restore", "task",
    (rf"restore {{key:{HEX}}}={{value:{HEX}}} at {{timestamp}}{WITH}", rf"restore {{key:{HEX}}} null at {{timestamp}}"),
    examples="restore 61=31 at 5; restore 61 null at 5",
    sentence=(
        "restore {key}={value} at {timestamp}[ with headers {headers}]", "restore a tombstone of {key} at {timestamp}",
    ),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Restore:
    """A record of the changelog is restored; its timestamp and headers are the record's own."""

    key: Key
    value: Value
    timestamp: Annotated[int, about("of the record, in ms"), typical(*TIMESTAMPS)]
    headers: Headers = NO_HEADERS


@operation("store-flush", "task", "flush", sentence="flush the store")
@dataclass(frozen=True, slots=True)
class Flush:
    """A task flushes the store, as at each commit of the task.

    A store that manages offsets commits that of its changelog with it: then it may keep both in memory, and a task
    restores from the offset that the store has after a crash.
    """


@operation("store-close", "task", "close", sentence="close the store")
@dataclass(frozen=True, slots=True)
class Close:
    """A task closes the store."""


@operation(
    "store-crash", "task", "crash{flushing: within a flush}", examples="crash; crash within a flush",
    sentence="the process is killed{flushing: within a flush}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Crash:
    """The process with the store is killed. What was flushed is there; the rest may be lost, key by key.

    Within a flush: it is killed once the store has written the first part of what it flushes, if it has several.
    """

    flushing: Annotated[bool, about("whether the store is being flushed")] = False


Event: TypeAlias = Open | Put | PutIfAbsent | Delete | Get | Range | Count | Restore | Flush | Close | Crash
OPERATIONS: Operations[Event, Action] = Operations(
    "timestamped-store",
    Role.STORE,
    (Open, Put, PutIfAbsent, Delete, Get, Range, Count, Restore, Flush, Close, Crash),
    sample="open timestamped; put 61=31 at 5; get 61",
)
