"""The steps of a script about topics: which exist, what is in their logs, and what nodes know of them."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from kipcheck.conformance.core.operations.declaration import operation
from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.protocols.client.answer_ops import BROKER

OTHERS: Final = "others"
USER: Final = "user"
Subscribable: TypeAlias = Literal["t", "u"]
Kept: TypeAlias = Literal["batch", "gap", "empty", "control", "aborted", "marker"]
"""What the records of a log are."""


@operation("client-create", USER, "create {topic}", examples="create u", sentence="creates topic {topic}")
@dataclass(frozen=True, slots=True)
class Create:
    """The topic is created, unless it exists.

    One that was deleted before has another id then, and a log of its own.
    """

    topic: Annotated[Subscribable, about("the topic"), typical("u", "t")]


@operation("client-delete", USER, "delete {topic}", examples="delete u", sentence="deletes topic {topic}")
@dataclass(frozen=True, slots=True)
class Delete:
    """The topic is deleted, with the offsets that groups committed. Before the first start: it does not exist yet."""

    topic: Annotated[Subscribable, about("the topic"), typical("u", "t")]


@operation(
    "client-records", OTHERS, "records {kind}",
    examples="records gap",
    sentence="writes records to each partition: {kind}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Records:
    """The log of each partition gets records of that kind, followed by one batch with one record.

    batch: five in one batch. gap: two of five in their batch, and no batch for the three offsets after it, as
    compaction leaves them. empty: a batch without records, as well. control: a transaction that is committed, with
    the marker of its end. aborted: one that is aborted. marker: the same, without a record that follows.
    """

    kind: Annotated[Kept, about("what they are"), typical(*get_args(Kept))]


@operation(
    "client-trim", USER, "trim {records}",
    examples="trim 2",
    sentence="deletes all records of each partition but the last {records}",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Trim:
    """The first records of each partition are deleted, as by retention: the log starts at a later offset."""

    records: Annotated[int, about("how many are left"), typical(2, 0)]


@operation(
    "client-elect", BROKER, "elect[ {partitions}][ after {ms}]",
    examples="elect; elect 0,2 after 400",
    sentence="leads partitions[ {partitions}] of each topic from the other node[, after {ms} ms without a leader]",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Elect:
    """The other node is elected leader of partitions of each topic.

    Where they have no leader before that, the disk of the old one has failed.
    """

    partitions: Annotated[tuple[int, ...], about("their numbers; none: all"), typical((), (0,), (1, 3)),
                          optional] = ()  # fmt: skip
    ms: Annotated[int, about("milliseconds without a leader before that"), typical(400), optional] = 0


@operation(
    "client-lags", BROKER, "lags {what} {ms}",
    examples="lags node 800",
    sentence="answers Metadata without the newest changes to each {what}, for {ms} ms",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Lags:
    """The answers to Metadata are those of a node that does not know yet what others know.

    node: without the nodes other than the one that answers. topic: it knows no topic of the client, by name or id.
    leader: the leaders are those before the last election. The time begins with the first such answer.
    """

    what: Annotated[Literal["node", "topic", "leader"], about("what it does not know yet")]
    ms: Annotated[int, about("milliseconds"), typical(400, 1500)]


Event: TypeAlias = Create | Delete | Records | Trim | Elect | Lags
EVENTS: Final = (Create, Delete, Records, Trim, Elect, Lags)
