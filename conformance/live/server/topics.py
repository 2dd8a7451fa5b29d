"""The topics of a broker on loopback: ids, partitions, and a few records in each."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, final

from kipcheck.conformance.wire.record_batches import batch, encode

RECORDS: Final = 10
"""Records of a partition, at offsets 0 to 9."""
RECORD_MS: Final = 0
"""The time of every record."""
LEADER_EPOCH: Final = 0
NAME_LENGTH: Final = 249
MOST_PARTITIONS: Final = 10_000
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@final
@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    id: uuid.UUID
    records: tuple[bytes, ...] = ()
    """Record batches, the same for each partition: one record each."""

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return len(self.records)


@final
@dataclass(slots=True)
class Topics:
    by_name: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[uuid.UUID, Topic] = field(default_factory=dict)

    @classmethod
    def of(cls, wanted: Iterable[tuple[str, int]], records: int = RECORDS) -> "Topics":
        """Topics by name and number of partitions. Their ids depend on their names only."""
        found = cls()
        for name, partitions in wanted:
            id = uuid.uuid5(uuid.NAMESPACE_OID, f"kipcheck/{name}")
            batches = tuple(one_record(name, offset) for offset in range(records))
            found.by_name[name] = found.by_id[id] = Topic(name, partitions, id, batches)
        return found

    def find(self, name: str | None, id: uuid.UUID | None) -> Topic | None:
        """By name, if there is one, else by id."""
        return self.by_name.get(name) if name else self.by_id.get(id) if id else None

    def grow(self, name: str) -> None:
        """Gives each partition of a topic one more record."""
        old = self.by_name[name]
        new = replace(old, records=(*old.records, one_record(name, old.end)))
        self.by_name[name] = self.by_id[old.id] = new

    @property
    def sizes(self) -> dict[str, int]:
        return {each.name: each.partitions for each in self.by_name.values()}


def parse_topic(text: str) -> tuple[str, int]:
    """``t:3``: name and partitions; without a number one partition. Errors: ValueError with the valid form."""
    name, _, number = text.rpartition(":") if ":" in text else (text, "", "1")
    if not name or len(name) > NAME_LENGTH or not _LEGAL.issuperset(name) or name in (".", ".."):
        raise ValueError(f"invalid topic {text!r}: use NAME:PARTITIONS, the name of letters, digits, '.', '_' and '-'")
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_PARTITIONS:
        raise ValueError(f"invalid number of partitions in {text!r}: use 1 to {MOST_PARTITIONS}, as in {name}:3")
    return name, int(number)


def one_record(topic: str, offset: int) -> bytes:
    """A record batch with one record, whose value names topic and offset."""
    return encode(batch(offset, [f"{topic} {offset}".encode()], RECORD_MS, leader_epoch=LEADER_EPOCH))
