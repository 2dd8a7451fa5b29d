"""The groups in ``__consumer_offsets`` as a coordinator has them after it loaded the records.

Of each key the newest record counts; one without a value, a tombstone, deletes what the key names. Offsets that were
committed in a transaction count once its marker says that it was committed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from kipcheck.conformance.wire.coordinator_records import CoordinatorRecord
from kipcheck.conformance.wire.record_batches import Record, RecordBatch

COMMIT: Final = 1
"""The type of a control record that ends a transaction; 0 is abort."""
OFFSET, GROUP, MEMBER, EPOCH = "OffsetCommit", "GroupMetadata", "ConsumerGroupMemberMetadata", "ConsumerGroupMetadata"
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest record of a key."""

    record: CoordinatorRecord
    offset: int
    """In the log of the partition."""
    file: Path
    at: int
    """The offset of the record's key in the file, in bytes."""

    @property
    def deleted(self) -> bool:
        return self.record.version is None


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    newest: tuple[Newest, ...]
    """Of each key, tombstones included, in the order of the log."""

    def of(self, record: str) -> tuple[Newest, ...]:
        return tuple(each for each in self.newest if each.record.name == record)

    @property
    def classic(self) -> Newest | None:
        """The newest record of the group in the classic protocol."""
        return next(iter(self.of(GROUP)), None)

    @property
    def tombstones(self) -> int:
        return sum(each.deleted for each in self.newest)


@dataclass(slots=True)
class GroupState:
    _newest: dict[str, dict[Key, Newest]] = field(default_factory=dict)
    """Group -> name of the record and values of its key -> the newest record."""
    _open: dict[tuple[Path, int], list[Newest]] = field(default_factory=dict)
    """Partition and producer id -> records of the transaction that has not ended."""
    undecoded: dict[str, int] = field(default_factory=dict)
    """Records of groups without a schema -> how many there are."""

    def add(self, batch: RecordBatch, record: Record, found: CoordinatorRecord, file: Path) -> None:
        if found.key is None:
            self.undecoded[found.format] = self.undecoded.get(found.format, 0) + 1
            return
        newest = Newest(found, record.offset, file, record.key_at)
        if batch.transactional:
            self._open.setdefault((file.parent, batch.producer_id), []).append(newest)
        else:
            self._apply([newest])

    def end(self, batch: RecordBatch, file: Path) -> None:
        """A batch with the marker that ends a transaction."""
        ended = self._open.pop((file.parent, batch.producer_id), [])
        for record in batch.records:
            if int.from_bytes((record.key or b"")[2:4], "big", signed=True) == COMMIT:
                self._apply(ended)

    def _apply(self, records: Iterable[Newest]) -> None:
        for each in records:
            key = each.record.key
            assert key is not None
            of = self._newest.setdefault(str(key.get("group", key.get("groupId"))), {})
            place = (each.record.name, *key.values())
            of.pop(place, None)
            of[place] = each

    @property
    def pending(self) -> Mapping[str, int]:
        """Group -> offsets that were committed in a transaction without an end."""
        found: dict[str, int] = {}
        for each in (one for records in self._open.values() for one in records):
            name = str((each.record.key or {}).get("group"))
            found[name] = found.get(name, 0) + 1
        return found

    def groups(self) -> tuple[Group, ...]:
        return tuple(Group(name, tuple(found.values())) for name, found in sorted(self._newest.items()))
