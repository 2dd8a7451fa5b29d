"""The operations of a broker that stores records of its coordinators, and its answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, edges, named, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.stored_records.settings import edges_of_versions

UNREADABLE: Final = "UNREADABLE"
"""Error class for bytes that the broker does not load, and so neither the partition that contains them."""
UNSUPPORTED: Final = "UNSUPPORTED_VERSION"
"""Error class for a record that its broker does not write with these settings."""
CLASSIC: Final = ("GroupMetadataValue", "OffsetCommitValue")
TRANSACTION: Final = "TransactionLogValue"
GROUP: Final = "ConsumerGroupMetadataValue"
KEY: Final = "Key"

Written: TypeAlias = Literal[
    "GroupMetadataValue", "OffsetCommitValue", "TransactionLogValue", "ConsumerGroupMetadataValue"
]
Stored: TypeAlias = Literal["GroupMetadataValue", "OffsetCommitValue", "TransactionLogValue", "Key"]
SAMPLES: Final[Mapping[tuple[Stored, int], str]] = {
    ("GroupMetadataValue", 0): "00000000000000000000000000000000",
    ("GroupMetadataValue", 1): "00010000000000000000000000000000",
    ("GroupMetadataValue", 2): "000200000000000000000000ffffffffffffffff00000000",
    ("GroupMetadataValue", 3): "000300000000000000000000ffffffffffffffff00000000",
    ("OffsetCommitValue", 0): "0000000000000000002a000000000000000003e8",
    ("OffsetCommitValue", 1): "0001000000000000002a000000000000000003e8ffffffffffffffff",
    ("OffsetCommitValue", 2): "0002000000000000002a000000000000000003e8",
    ("OffsetCommitValue", 3): "0003000000000000002affffffff000000000000000003e8",
    ("OffsetCommitValue", 4): "0004000000000000002affffffff0100000000000003e800",
    ("TransactionLogValue", 0): "00000000000000000000000000000000000000000000000000000000000000000000000000",
    ("TransactionLogValue", 1): "0001000000000000000000000000000000010000000000000000000000000000000000",
    ("OffsetCommitValue", 99): "0063000000000000002a",
    ("GroupMetadataValue", 99): "00630000",
    ("Key", 1): "0001000167000174" + "00000000",
    ("Key", 2): "0002000167",
    ("Key", 3): "0003000167",
    ("Key", 99): "0063000167",
    ("GroupMetadataValue", 4): "000401000000000101ffffffffffffffff0100",
    ("GroupMetadataValue", 5): "00050000",
    ("OffsetCommitValue", 5): "0005000000000000002a",
    ("TransactionLogValue", 2): "0002" + "00" * 35,
    ("Key", 0): "0000000167000174" + "00000000",
}
"""Small records by message and version: a group without members, offset 42, a transaction without partitions; keys of
an offset, a classic group and a consumer group. No release has version 99, or that after the last one of a value.
"""
EDGES: Final = edges_of_versions(CLASSIC)
INTER_BROKERS: Final = (
    None,
    "4.0",
    "3.9",
    "3.3-IV3",
    "2.3-IV0",
    "2.1-IV1",
    "2.1-IV0",
    "2.0",
    "0.10.1",
    "0.10.0",
    "9.9",
    "2.2",
    "3.3-IV2",
    "0.10.1-IV0",
)


@answer()
@dataclass(frozen=True, slots=True)
class Record:
    hex: str
    """The value of the record: two bytes of version, and its fields."""


@answer()
@dataclass(frozen=True, slots=True)
class Loaded:
    loaded: bool
    """False: the broker skips the record, because it does not know the type of its key."""


@answer("rejected")
@dataclass(frozen=True, slots=True)
class Rejected:
    error: Annotated[str, named("class")]


Action: TypeAlias = Record | Loaded | Rejected


@operation(
    "write-record", "broker", r"write {message}[ ibp {inter_broker:\S+}][ level {level}]{expires: expiring}",
    examples="write OffsetCommitValue ibp 2.1-IV0; write TransactionLogValue level 1; write OffsetCommitValue expiring",
    sentence="writes {message}[, inter-broker version {inter_broker}][, feature level {level}]"
             "{expires:, with a retention time of its own}",
    accepted=Record,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Write:
    """A coordinator writes a small record."""

    message: Annotated[Written, about("the record's value")]
    inter_broker: Annotated[
        str | None,
        about("inter-broker version, or in KRaft metadata.version; null: the newest of the release"),
        typical(*INTER_BROKERS),
        edges(*EDGES),
    ] = None
    level: Annotated[
        int | None,
        about(
            "finalized level of transaction.version for TransactionLogValue, of group.version for others; null: the "
            "usual one"
        ),
        typical(None, 0, 1, 2),
    ] = None
    expires: Annotated[bool, about("whether an offset commit has a retention time of its own")] = False


@operation(
    "read-record", "broker", r"read {message} {hex:(?:[0-9a-f][0-9a-f])+}",
    examples="read OffsetCommitValue 0001000000000000002a000000000000000003e8ffffffffffffffff; read Key 0063000167",
    sentence="loads {message} {hex}",
    accepted=Loaded,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class Read:
    """A coordinator loads a value, or a record that is a key alone, as it does when its broker becomes the leader."""

    message: Annotated[Stored, about("the record's value; Key: its key")]
    hex: Annotated[str, about("its bytes, in hex"), typical(*SAMPLES.values())]


Event: TypeAlias = Write | Read
OPERATIONS: Operations[Event, Action] = Operations(
    "stored-records", Role.BROKER, (Write, Read), sample="write OffsetCommitValue; read Key 0002000167"
)
