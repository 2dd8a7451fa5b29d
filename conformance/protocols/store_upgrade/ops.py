"""The operations of an application whose stores are upgraded as KIP-258's draft has it, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, named, typical
from kipcheck.conformance.core.values.case import Role

INVALID_CONFIG: Final = "INVALID_CONFIG"
"""Error class for a configuration that an instance cannot have: it does not start."""
NOT_RUNNING: Final = "NOT_RUNNING"
NOT_SERVING: Final = "NOT_SERVING"
"""No live instance processes the task: none has it, or its store is not ready."""
NOT_ASSIGNED: Final = "NOT_ASSIGNED"
NOT_READY: Final = "NOT_READY"
"""There is no prepared store that holds the whole changelog and may become the active one."""
UNKNOWN_VERSION: Final = "UNKNOWN_VERSION"
"""The header of a record names a version of the format that the instance does not know."""
DOWNGRADE: Final = "DOWNGRADE"
"""A jar from before KIP-258 misreads the records that have the new format: the draft has no way back."""

OLD: Final = 1
NEW: Final = 2
"""Versions of the format that the header of a record in the changelog has; a record without a header has 1."""
NO_TIMESTAMP: Final = -1
TASKS: Final = (0, 1, 2)
IN_MEMORY: Final = 2
"""The task whose store is in memory; the stores of the others are in RocksDB."""
INSTANCES: Final = ("a", "b", "r", "s")
KEYS: Final = ("61", "62")
VALUES: Final = ("31", "", "0000000000000005", "ffffffffffffffff32")
"""Two of them begin as if they had a timestamp."""
TIMESTAMPS: Final = (5, 0, 7, 2**62, -1, -2, 1, -(2**63), 2**63 - 1)
MODES: Final = (None, "in_place", "roll_over")
OTHER_MODES: Final = ("null", "roll_over_new", "IN_PLACE", "offline")
HEX: Final = r"(?:[0-9a-f][0-9a-f])*"

Code: TypeAlias = Literal["old", "plain", "builder", "timestamped"]
"""``old``: a jar from before KIP-258. With the new jar: ``plain``, the store without timestamps; ``builder``, a
StoreUpgradeBuilder; ``timestamped``, the store with timestamps."""
Place: TypeAlias = Literal["old", "new"]
Operator: TypeAlias = Literal["processor", "table", "aggregation", "join"]
OPERATORS: Final[tuple[Operator, ...]] = ("processor", "table", "aggregation", "join")
Name: TypeAlias = Annotated[str, about("the instance"), typical(*INSTANCES)]
Task: TypeAlias = Annotated[int, about("the task"), typical(*TASKS)]
Key: TypeAlias = Annotated[str, about("its key, in hex"), typical(*KEYS)]
Value: TypeAlias = Annotated[str | None, about("the value, in hex; null deletes"), typical(*VALUES)]
Timestamp: TypeAlias = Annotated[int, about("of the record, in ms"), typical(*TIMESTAMPS)]


@answer()
@dataclass(frozen=True, slots=True)
class Stopped:
    left: bool
    """Whether the instance sends a LeaveGroup request."""


@dataclass(frozen=True, slots=True)
class Share:
    """What an instance sends in a rebalance, and gets."""

    instance: str
    subscriptions: tuple[str, ...]
    """The user data of its subscriptions, in hex: one for each round."""
    active: tuple[int, ...]
    standby: tuple[int, ...]
    upgrade: tuple[int, ...]
    """The tasks whose new store it prepares."""


@answer()
@dataclass(frozen=True, slots=True)
class Rebalanced:
    shares: tuple[Share, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Processed:
    instance: str
    store: Place
    """The store that was written: the old one, or the new one."""


@answer()
@dataclass(frozen=True, slots=True)
class Found:
    """What the store has, or had, of a key."""

    instance: str
    store: Place
    value: str | None
    timestamp: int | None
    """-1: the store does not know it. Null with the value."""


@answer()
@dataclass(frozen=True, slots=True)
class Replayed:
    position: int
    """The first offset that the store does not have."""
    end: int
    """The first offset after the changelog."""
    finished: bool | None
    """Whether the preparation is finished; null: processing goes on, so that the operator decides."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A record of the changelog."""

    key: str
    value: str | None
    """Its bytes, in hex."""
    timestamp: int
    version: int
    """Of its header; 1: it has none."""


@answer()
@dataclass(frozen=True, slots=True)
class Changelog:
    records: tuple[Logged, ...]


@answer()
@dataclass(frozen=True, slots=True)
class Converted:
    value: str | None
    """The bytes in the new store, in hex."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]
    offset: int | None = None
    """Of the record in the changelog that is the reason."""


Action: TypeAlias = Stopped | Rebalanced | Processed | Found | Replayed | Changelog | Converted | Rejected


@operation(
    "start-instance", "operator", r"start {instance} {code}[ mode {mode:\S+}][ metadata {metadata}]",
    examples="start a old; start a builder mode in_place; start r builder mode roll_over metadata 4",
    sentence="start {instance} with the code {code}[, upgrade.mode {mode}][, metadata version {metadata}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Start:
    """The operator starts an instance, or stops and restarts it.

    It joins the group at the next rebalance. If a kill ended its swap, it ends the swap first.
    """

    instance: Name
    code: Annotated[Code, about("its jar and its topology")]
    mode: Annotated[str | None, about("upgrade.mode; null if it is not set"), typical(*MODES, *OTHER_MODES)] = None
    metadata: Annotated[int, about("the newest metadata version that it supports"), typical(3, 4)] = 3


@operation("stop-instance", "operator", "stop {instance}", examples="stop a", sentence="stop {instance}",
           accepted=Stopped)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Stop:
    """The operator stops an instance; its directory stays."""

    instance: Name


@operation(
    "kill-instance", "operator", "kill {instance}[ swapping {swapping}]", examples="kill a; kill a swapping 0",
    sentence="kill {instance}[ while it swaps the directories of task {swapping}]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Kill:
    """An instance is killed: what it processed since the last rebalance is in the changelog, and not in its store.

    While it swaps: the old directory is gone, and the prepared one is not yet in its place.
    """

    instance: Name
    swapping: Annotated[int | None, about("the task whose directories it swaps, or null"), typical(None, 0, 1)] = None


@operation("lose-directory", "operator", "lose {instance}", examples="lose a",
           sentence="delete the directory of {instance}")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Lose:
    """The directory of an instance that does not run is lost."""

    instance: Name


@operation("rebalance-tasks", "group", "rebalance[ led by {leader}]", examples="rebalance; rebalance led by r",
           sentence="the group rebalances[, led by {leader}]", accepted=Rebalanced)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Rebalance:
    """All live instances join the group, and those that do not run are removed from it."""

    leader: Annotated[str | None, about("the leader; null, or one that does not run: the first instance"),
                      typical(None, *INSTANCES)] = None  # fmt: skip


@operation(
    "append-record", "group",
    (rf"append {{task}} {{key:{HEX}}}={{value:{HEX}}} at {{timestamp}} version {{version}}",
     rf"append {{task}} {{key:{HEX}}} null at {{timestamp}} version {{version}}"),
    examples="append 0 61=31 at 5 version 1; append 0 61 null at 7 version 2",
    sentence=("the changelog of task {task} has {key}={value} at {timestamp}, version {version}",
              "the changelog of task {task} has a tombstone of {key} at {timestamp}, version {version}"),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Append:
    """An earlier instance wrote a record to the changelog of a task, in the format of this version."""

    task: Task
    key: Key
    value: Value
    timestamp: Timestamp
    version: Annotated[int, about("of the format, as its header has it; 1: no header"), typical(1, 2, 3)]


@operation(
    "process-record", "group",
    (rf"put {{task}} {{key:{HEX}}}={{value:{HEX}}} at {{timestamp}}[ by {{operator}}]",
     rf"put {{task}} {{key:{HEX}}} null at {{timestamp}}[ by {{operator}}]"),
    examples="put 0 61=31 at 5; put 0 61 null at 6; put 1 61=31 at 5 by aggregation",
    sentence=("task {task} puts {key}={value} at {timestamp}[, by {operator}]",
              "task {task} deletes {key} at {timestamp}[, by {operator}]"),
    accepted=Processed,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Put:
    """The instance that processes a task puts a record."""

    task: Task
    key: Key
    value: Value
    timestamp: Timestamp
    operator: Annotated[
        Operator, about("the operator that has the store")
    ] = "processor"  # fmt: skip


@operation(
    "process-if-absent", "group", rf"put-if-absent {{task}} {{key:{HEX}}}={{value:{HEX}}} at {{timestamp}}",
    examples="put-if-absent 0 61=31 at 5", sentence="task {task} puts {key}={value} at {timestamp} if it is absent",
    accepted=Found,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class PutIfAbsent:
    """The instance that processes a task puts a record whose key is absent, and gets what there was."""

    task: Task
    key: Key
    value: Annotated[str, about("the value, in hex"), typical(*VALUES)]
    timestamp: Timestamp


@operation("query-store", "group", rf"get {{task}} {{key:{HEX}}}", examples="get 0 61",
           sentence="read {key} of task {task}", accepted=Found)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Get:
    """The instance that processes a task reads a key."""

    task: Task
    key: Key


@operation(
    "replay-changelog", "group", "replay {instance} {task}[ {most} records]",
    examples="replay a 0; replay a 0 1 records",
    sentence="{instance} reads the changelog of task {task}[, {most} records]", accepted=Replayed,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Replay:
    """An instance reads the changelog of a task: for the new store if it prepares one, else for that of the task."""

    instance: Name
    task: Task
    most: Annotated[int | None, about("at most so many records; null: to the end"), typical(None, 1)] = None


@operation("swap-directories", "group", "swap {instance} {task}", examples="swap a 0",
           sentence="{instance} swaps the directories of task {task}")  # fmt: skip
@dataclass(frozen=True, slots=True)
class Swap:
    """An instance replaces the active directory of a task by the prepared one."""

    instance: Name
    task: Task


@operation("read-changelog", "group", "changelog {task}", examples="changelog 0",
           sentence="read the changelog of task {task}", accepted=Changelog)  # fmt: skip
@dataclass(frozen=True, slots=True)
class ReadChangelog:
    """The records of the changelog of a task are read."""

    task: Task


@operation(
    "convert-record", "group",
    (rf"convert ={{value:{HEX}}} at {{timestamp}} version {{version}}",
     "convert null at {timestamp} version {version}"),
    examples="convert =31 at 5 version 1; convert null at 5 version 1",
    sentence=("convert {value} at {timestamp}, version {version}", "convert a tombstone, version {version}"),
    accepted=Converted,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Convert:
    """The record converter gets a record of a changelog."""

    value: Annotated[str | None, about("its bytes, in hex; null: a tombstone"), typical(*VALUES)]
    timestamp: Timestamp
    version: Annotated[int, about("of the format, as its header has it; 1: no header"), typical(1, 2, 3)]


Event: TypeAlias = (
    Start | Stop | Kill | Lose | Rebalance | Append | Put | PutIfAbsent | Get | Replay | Swap | ReadChangelog | Convert
)
OPERATIONS: Operations[Event, Action] = Operations(
    "store-upgrade",
    Role.STORE,
    (Start, Stop, Kill, Lose, Rebalance, Append, Put, PutIfAbsent, Get, Replay, Swap, ReadChangelog, Convert),
    sample="start a old; rebalance; put 0 61=31 at 5; get 0 61",
)
