"""The operations of a cluster with KIP-384's setting, and its answers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, edges, named, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.persistent_metadata.settings import Binary, edge_names

INVALID_CONFIG: Final = "INVALID_CONFIG"
"""Error class for settings that a broker or a topic cannot have. It is not an error code of Kafka for brokers."""
UNREADABLE: Final = "UNREADABLE"
"""Error class for stored data that the binary cannot read: the broker does not start, or does not load the data."""
NOT_RUNNING: Final = "NOT_RUNNING"
Store: TypeAlias = Literal[
    "offsets", "transactions", "messages", "zookeeper", "index", "snapshot", "epochs", "replication", "cleaner"
]
REPLICATED: Final[frozenset[Store]] = frozenset({"offsets", "transactions", "messages"})
"""Topics: followers store what the leader wrote. ``zookeeper`` is shared; the others are a broker's files."""
SHARED: Final[Store] = "zookeeper"

Number: TypeAlias = Annotated[int, about("its number"), typical(range(2))]
EDGES: Final = edges(*edge_names())
NAMES: Final = (None, "2.1", "2.2", "2.2-IV0", "2.0", "2.1.0", "0.10.2", "2.3", "2.2-IV7", "latest")


@answer()
@dataclass(frozen=True, slots=True)
class Started:
    """The settings in force."""

    inter_broker: str
    persistent: str | None
    """None: the binary does not know the setting."""
    format: str


@answer()
@dataclass(frozen=True, slots=True)
class Written:
    format: int
    """1, or the new one, 2."""


@answer()
@dataclass(frozen=True, slots=True)
class Found:
    format: int
    """The newest incompatible format in the store."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]


Action: TypeAlias = Started | Written | Found | Rejected


@operation(
    "start-binary", "operator",
    r"start {broker} {binary}[ ibp {inter_broker:\S+}][ pmv {persistent:\S+}][ format {format:\S+}]",
    examples="start 0 2.2 ibp 2.1 pmv 2.1 format 2.1; start 1 2.0",
    sentence="start broker {broker} with the binary {binary}[, inter-broker version {inter_broker}]"
             "[, persistent metadata version {persistent}][, message format {format}]",
    accepted=Started,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Start:
    """The operator starts a broker, or restarts it.

    It reads its files, and fetches from the live brokers what it missed. A broker that is refused is stopped.
    """

    broker: Number
    binary: Annotated[Binary, about("the release of its binary")]
    inter_broker: Annotated[
        str | None, about("inter.broker.protocol.version; null if it is not set"), typical(*NAMES), EDGES
    ] = None
    persistent: Annotated[
        str | None, about("persistent.metadata.version; null if it is not set"), typical(*NAMES), EDGES
    ] = None
    format: Annotated[
        str | None, about("log.message.format.version; null if it is not set"), typical(*NAMES), EDGES
    ] = None


@operation("stop-binary", "operator", "stop {broker}", examples="stop 0", sentence="stop broker {broker}")
@dataclass(frozen=True, slots=True)
class Stop:
    """The operator stops a broker; its directory stays."""

    broker: Number


@operation(
    "topic-format", "operator", (r"topic-format {format:[^\s-]\S*}", "topic-format -"),
    examples="topic-format 2.1; topic-format -",
    sentence=("set message.format.version {format} for the topic", "remove message.format.version of the topic"),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class TopicFormat:
    """The operator overrides the message format of the topic of messages, or removes the override."""

    format: Annotated[str | None, about("message.format.version; null removes it"), typical(*NAMES[1:])]


@operation(
    "write-store", "broker", "write {broker} {store}{compatible:~}",
    examples="write 0 offsets; write 1 zookeeper~",
    sender="broker {broker}",
    sentence="writes {store}{compatible:, in which the change is compatible}",
    accepted=Written,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Write:
    """A broker writes a store of which 2.2 has a new format; of a topic it is the leader.

    The live brokers store its records as well.
    """

    broker: Number
    store: Annotated[Store, about("what it writes")]
    compatible: Annotated[bool, about("whether older binaries can read the new format")] = False


@operation(
    "read-store", "broker", "read {broker} {store}",
    examples="read 0 offsets",
    sender="broker {broker}",
    sentence="reads its {store}",
    accepted=Found,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Read:
    """A broker reads a store, as the new leader of a topic does."""

    broker: Number
    store: Annotated[Store, about("what it reads")]


Event: TypeAlias = Start | Stop | TopicFormat | Write | Read
OPERATIONS: Operations[Event, Action] = Operations(
    "persistent-metadata", Role.BROKER, (Start, Stop, TopicFormat, Write, Read), sample="start 0 2.1; write 0 offsets"
)
