"""The records in the topics of coordinators: which record a key belongs to, and both as values.

The version of the key says which record it is; that of the value, its format. Classes ``GroupMetadataManager`` and
``CoordinatorRecordSerde``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.wire import metadata_records
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import Record
from kipcheck.conformance.wire.schema import messages, spec

GROUPS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
TOPICS: Final = (GROUPS, TRANSACTIONS, SHARES)
SECTIONS: Final[Mapping[str, str]] = {GROUPS: "groups", SHARES: "shares"}
"""Topic -> the section of ``record_types.json`` with its records that have no schema."""
STABLE: Final = ("OffsetCommit", "GroupMetadata", "TransactionLog")
"""Records whose layouts never changed within a version; those of previews did."""
Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    name: str
    """Without ``Key`` and ``Value``; ``record N`` for a key that no release has."""
    type: int
    """The version of the key."""
    key: Value | None
    """None for a record without a schema."""
    version: int | None
    """Of the value; None for a tombstone."""
    value: Value | None
    """None for a tombstone, a record without a schema, and a version that no release has."""

    @property
    def format(self) -> str:
        """As messages are called: ``OffsetCommitValue``."""
        return self.name if self.name.startswith("record ") else f"{self.name}Value"

    @property
    def known(self) -> bool:
        return self.name != f"record {self.type}"


@cache
def names(topic: str) -> Mapping[int, str]:
    """Version of the key -> the record."""
    if topic == TRANSACTIONS:
        return {0: "TransactionLog"}
    found = dict(metadata_records.names(SECTIONS[topic]))
    if topic == GROUPS:
        keys = [each for each in messages(APACHE) if each.endswith("Key") and each != "TransactionLogKey"]
        found |= {layout.version: each.removesuffix("Key") for each in keys for layout in spec(APACHE, each)}
    return found


def decode(topic: str, record: Record) -> CoordinatorRecord:
    """As coordinators read it. Errors: ``Refused``, with the offset in the bytes of the batches."""
    if record.key is None or len(record.key) < 2:
        raise Refused("truncated", "a record without the version of its key", message="record", version=0,
                      offset=record.key_at)  # fmt: skip
    number = int.from_bytes(record.key[:2], "big", signed=True)
    name = names(topic).get(number, f"record {number}")
    key = _decoded(f"{name}Key", number, record.key, record.key_at)
    if record.value is None:
        return CoordinatorRecord(name, number, key, None, None)
    version, value = decode_value(name, record.value, record.value_at)
    return CoordinatorRecord(name, number, key, version, value)


def decode_value(name: str, data: bytes, at: int = 0) -> tuple[int, Value | None]:
    """Version and value of a record by its name; None without a layout. ``at``: the offset of the value.

    Errors: ``Refused``, with the offset.
    """
    version = int.from_bytes(data[:2], "big", signed=True)
    return version, _decoded(f"{name}Value", version, data, at) if len(data) > 1 else None


def _decoded(message: str, version: int, data: bytes, at: int) -> Value | None:
    """None for a message or version without a layout."""
    if message not in messages(APACHE) or version not in (declared := spec(APACHE, message)).versions:
        return None
    try:
        return declared.at(version).decode(data, lenient=True)
    except Refused as wrong:
        raise wrong.moved(at) from None
