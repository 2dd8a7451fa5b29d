"""The traffic of a live client as events: one union, made by the scripted broker, by proxies and from captures.

The answers of cases, ledgers and failure files have the JSON of events, which is derived here. It is parsed once for
each history. A field that is None or false by default is left out of the JSON there; later releases may add fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, dataclass_transform, final

from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm, kind_of, record
from kipcheck.conformance.core.operations.observed_events import ObservedEvents, observed

C = TypeVar("C", bound=type)


def _absent(made: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(made) if each.default is None or each.default is False)


@dataclass_transform(frozen_default=True)
def event(what: str, sentence: str) -> Callable[[C], C]:
    """Declares a frozen dataclass as an event. ``what``: its name in JSON; ``sentence``: the predicate of a sentence
    about the client."""

    def declare(made: C) -> C:
        frozen: C = dataclass(frozen=True, slots=True)(made)  # type: ignore[assignment]
        return observed(what, sentence, omitted=_absent(frozen), lenient=True)(frozen)

    return declare


def _numbers(found: Any) -> dict[str, int]:
    if isinstance(found, Mapping):
        return dict(found)
    raise TypeError(f": must be an object, got {found!r}")


def _without_text(note: str) -> TextForm:
    raise ValueError("has no form in templates")


Numbers: TypeAlias = Annotated[
    Mapping[str, int],
    Kind("object", {"type": "object", "additionalProperties": {"type": "integer"}}, _numbers, dict, _without_text),
]
"""Such as the offset of each partition."""
Correlation: TypeAlias = Annotated[
    int | str, Kind("integer, or text", {"type": ["integer", "string"]}, lambda found: found, None, _without_text)
]
Milliseconds: TypeAlias = Annotated[int, kind_of(int).printed_by(lambda ms: f"{ms / 1000:.2f} s")]
Partitions: TypeAlias = tuple[str, ...]
"""Each as topic-number."""


@final
@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription that a member wrote, as far as this version of kipcheck knows it."""

    version: int
    topics: tuple[str, ...]
    data: str | None = None
    """The user data in hexadecimal; None: there is none."""
    owned: Partitions | None = None
    """None: the version has no owned partitions."""
    generation: int | None = None
    """None: the version has none."""
    rack: str | None = None


Subscription: TypeAlias = Annotated[Subscribed, record(Subscribed, omitted=_absent(Subscribed), lenient=True)]


@final
@dataclass(frozen=True, slots=True)
class ListedMember:
    """A member in the answer to the JoinGroup of a leader."""

    id: str
    instance: str | None
    subscription: Subscription | None
    """None: it cannot be read."""


# Requests and answers


@event("request", "sends {api} v{version}")
class RequestSeen:
    """A request that strict or lenient decoding can read. None: the request has no such field."""

    ms: int
    connection: int
    api: str
    """Such as ``JoinGroup``."""
    version: int
    member: str | None = None
    """The member id; empty: the request names none."""
    generation: int | None = None
    """The generation; in groups of KIP-848 the member epoch."""
    instance: str | None = None
    session_ms: int | None = None
    rebalance_ms: int | None = None
    type: str | None = None
    """The type of the protocol."""
    protocol: str | None = None
    """Of SyncGroup: the assignor of the generation."""
    correlation: Correlation = -1
    """Text, if the request may have been written before the answer that passed before it was read."""
    digest: Correlation = 0
    """A checksum of the body."""
    pipelined: bool = False
    """Whether it was sent before the answer to the request before it could be read."""
    protocols: tuple[tuple[str, str], ...] | None = None
    """Of JoinGroup: each assignor with its metadata in hexadecimal."""
    subscriptions: tuple[Subscription | None, ...] | None = None
    """Of JoinGroup: the metadata of each assignor; None for what cannot be read, or is not judged."""
    assignments: tuple[tuple[str, Partitions | None], ...] | None = None
    """Of SyncGroup: by member id; None for what cannot be read."""
    members: tuple[str, ...] | None = None
    """Of LeaveGroup: member ids."""
    owned: Partitions | None = None
    topics: tuple[str, ...] | None = None
    """Of a heartbeat of KIP-848: the subscribed topics; of KIP-1071: the source topics of the topology."""
    regex: str | None = None
    """Of ConsumerGroupHeartbeat: the regular expression of the subscribed topics."""
    partitions: Partitions | None = None
    offsets: tuple[int, ...] | None = None
    """One for each of the partitions; of ListOffsets the timestamps: -1 for the end, -2 for the beginning."""
    retention_ms: int | None = None
    """Of OffsetCommit 2 to 4: for how long the broker is to keep the offsets; -1: as long as it is set to."""

    session_epoch: int | None = None
    """Of ShareFetch and ShareAcknowledge: 0 begins a share session, and -1 ends it."""
    acknowledged: tuple[tuple[str, int, int, int], ...] | None = None
    """Of both: partition, first and last offset, and type of acknowledgement; 4 renews an acquisition."""
    forgotten: Partitions | None = None
    """Of ShareFetch: partitions that leave the session."""

    @property
    def carried(self) -> tuple[str | None, int | None]:
        """Member id and generation."""
        return self.member, self.generation

    @property
    def assignors(self) -> tuple[str, ...]:
        """Of JoinGroup: the names of the assignors, the preferred one first."""
        return tuple(name for name, _ in self.protocols or ())

    @property
    def placed(self) -> tuple[tuple[str, int], ...]:
        """Each partition with its offset."""
        return tuple(zip(self.partitions or (), self.offsets or (), strict=False))


@event("answer", "is sent the answer to {api}")
class AnswerSeen:
    """An answer. None: it has no such field."""

    ms: int
    connection: int
    api: str
    version: int = -1
    to: tuple[str, int] | None = None
    """Member id and generation of the request; -1: it has no generation."""
    error: int | None = None
    """Error code, 0 for none. None: the message has none for the whole of it."""
    highest: Numbers | None = None
    """Of ApiVersions: the highest version of each key."""
    missing: bool = False
    """Of Metadata: whether it says that a topic does not exist, or not yet."""
    generation: int | None = None
    """The generation; in groups of KIP-848 the member epoch."""
    member: str | None = None
    leads: bool | None = None
    """Of JoinGroup: whether the client leads its group."""
    protocol: str | None = None
    """Of JoinGroup: the assignor that the coordinator chose."""
    members: tuple[ListedMember, ...] | None = None
    """Of the JoinGroup of a leader that has to assign."""
    sizes: Numbers | None = None
    """The number of partitions of each topic: of Metadata; of JoinGroup, those that exist then."""
    interval_ms: int | None = None
    """Of heartbeats of KIP-848 and KIP-1071: the heartbeat interval."""
    partitions: Partitions | None = None
    """What the client is assigned. None: the answer says nothing of it."""
    empty: bool = False
    """Of SyncGroup: whether the assignment has no bytes."""
    unread: bool = False
    """Of SyncGroup: whether the assignment cannot be read."""
    records: int | None = None
    """Of Fetch: bytes."""
    ends: Numbers | None = None
    """Of Fetch: by partition, the offset after the last record."""
    committed: Numbers | None = None
    """Of OffsetFetch: by partition, -1 for none."""
    offsets: Numbers | None = None
    """Of ListOffsets: by partition."""
    acquired: tuple[tuple[str, int, int], ...] | None = None
    """Of ShareFetch: partition, first and last offset of the records that the client acquires."""
    throttle_ms: int | None = None
    """So long the broker reads nothing more from the connection (KIP-219). None: it does."""

    @property
    def given(self) -> tuple[str | None, int | None]:
        """Member id and generation, as the next requests carry them."""
        return self.member, self.generation


@event("refused", "{message} v{version}, which strict decoding refuses: {why}")
class RequestRefused:
    """A request that strict decoding refuses. If lenient decoding can read it, a ``RequestSeen`` follows."""

    ms: int
    connection: int
    message: str
    """Such as ``JoinGroupRequest``; empty: unknown."""
    version: int
    kind: str
    """A class of refusals: see ``wire.errors``."""
    why: str
    hex: str
    """The bytes, perhaps cut."""

    @property
    def api(self) -> str:
        return self.message.removesuffix("Request")


@event("damaged", "{api} v{version} has a damaged {record}: {path}")
class RecordDamaged:
    """A record that a member wrote into a request or answer is damaged."""

    ms: int
    connection: int
    api: str
    """The message, such as ``JoinGroupRequest``; empty for a record that came without one."""
    version: int | None
    """Of the message."""
    group: str
    member: str
    path: str
    """Of the record in the message."""
    record: str
    kind: str
    field: str
    at: int
    """Offset of the byte in the record."""
    start: int | None
    """Offset of the record in the message with its header; None: not known."""
    of: int
    """The version in front of the record."""
    cause: str
    hex: str
    """The bytes; empty if they are too many."""
    size: int
    """The number of bytes."""
    readers: str
    """Which releases of Kafka's own clients fail at it."""


# Connections and processes


@event("opened", "opened")
class Opened:
    ms: int
    connection: int


@event("closed", "loses connection {connection}, which the broker closes: {why}")
class Closed:
    ms: int
    connection: int
    why: str = ""
    """Why the broker closed it; empty: the client did."""


@event("launched", "launched")
class Launched:
    """The program is started, with these settings."""

    ms: int
    session_ms: int | None = None
    heartbeat_ms: int | None = None
    rebalance_ms: int | None = None
    assignors: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    patience_ms: int | None = None
    """The longest back-off of the client, as its user states it."""
    commit: str | None = None
    """How the program commits: ``auto``, ``sync``, ``async`` or ``late``, which holds records over a rebalance."""
    max_poll_ms: int | None = None
    """The longest time between two polls; a member that exceeds it leaves its group."""
    pause_ms: int | None = None
    """How long the program works between two polls."""
    pattern: str | None = None
    """The regular expression by which the program subscribes; None: it names its topics."""
    ends_on_errors: bool = False
    """Whether it is known that the program ends when its client raises an error that no client recovers from."""
    offset_reset: str | None = None
    """Where the program begins without a committed offset: ``earliest`` or ``latest``; None: it is not given."""


@event("joined", "is a member of the group for the first time")
class FirstJoined:
    ms: int


@event("restarted", "is started again")
class Restarted:
    ms: int


@event("frozen", "is stopped with SIGSTOP")
class Frozen:
    """The program does nothing from now on. Its connections stay open."""

    ms: int


@event("thawed", "goes on, after SIGCONT")
class Thawed:
    ms: int


@event("signalled", "is sent SIGTERM")
class Signalled:
    ms: int


@event("killed", "is killed with SIGKILL")
class Killed:
    ms: int
    stderr: str = ""


@event("ended", "ends with exit code {code}")
class Ended:
    ms: int
    code: int
    """Exit code; negative: the number of a signal."""
    stderr: str = ""


Callback: TypeAlias = Literal["assigned", "revoked", "lost", "given-up"]


@event("called", "calls its user back: {callback} {partitions}")
class CalledBack:
    """The client calls a callback of its user, as programs of kipcheck report it."""

    ms: int
    callback: Callback
    """``given-up``: of a client that has one callback for partitions that are revoked and that are lost."""
    partitions: Partitions = ()


# Topics


@event("deleted", "loses topic {topic}, which is deleted")
class TopicDeleted:
    """A topic is deleted, with its records and committed offsets. If it is created again, it is another one."""

    ms: int
    topic: str

    def has(self, partition: str) -> bool:
        return partition.rpartition("-")[0] == self.topic


@event("trimmed", "loses the first records of its partitions, as by retention")
class Trimmed:
    ms: int
    starts: Numbers
    """By partition, the first offset that is left."""


# Ends of steps


@event("settled", "is a stable member, {waited_ms} after the step began")
class Settled:
    ms: int
    waited_ms: Milliseconds
    unsent: tuple[str, ...] = ()
    """The kinds of requests that the script waited for, and that the client did not send."""


@event("unsettled", "is no stable member, {waited_ms} after the step began")
class Unsettled:
    ms: int
    waited_ms: Milliseconds
    unsent: tuple[str, ...] = ()


@event("idle", "idle")
class Idle:
    """An idle loop of kipcheck was late by so much at most since the last such event."""

    ms: int
    late_ms: int


@event("confirmed", "breaks {law} in this way also when a script is played alone, and kipcheck is in time")
class Confirmed:
    """The same invariant was violated in the same way when a script was played alone, and in time."""

    ms: int
    law: str
    shape: tuple[str, ...]


Event: TypeAlias = (
    RequestSeen | AnswerSeen | RequestRefused | RecordDamaged | Opened | Closed | Launched | FirstJoined | Restarted
    | Frozen | Thawed | Signalled | Killed | Ended | CalledBack | TopicDeleted | Trimmed | Settled | Unsettled | Idle
    | Confirmed
)  # fmt: skip
EVENTS: Final = ObservedEvents[Event](
    RequestSeen, AnswerSeen, RequestRefused, RecordDamaged, Opened, Closed, Launched, FirstJoined, Restarted,
    Frozen, Thawed, Signalled, Killed, Ended, CalledBack, TopicDeleted, Trimmed, Settled, Unsettled, Idle, Confirmed,
)  # fmt: skip
