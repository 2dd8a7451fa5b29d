"""The topics of a broker on loopback: ids, partitions, and a few records in each."""

import uuid
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
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
@dataclass(slots=True, eq=False)
class Log:
    """The record batches of a partition, in order."""

    batches: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """By batch, the offset after its last record."""

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.ends[-1] if self.ends else 0

    def add(self, data: bytes, end: int) -> None:
        self.batches.append(data)
        self.ends.append(end)

    def place(self, offset: int) -> int:
        """The place of the batch with that offset; after the last one if it is the end."""
        return bisect_right(self.ends, offset)


@final
@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    id: uuid.UUID
    log: Log = field(default_factory=Log, compare=False)
    """Of each partition to which no client wrote. One record in a batch."""
    written: dict[int, Log] = field(default_factory=dict, compare=False)
    """By partition to which a client wrote."""

    @property
    def end(self) -> int:
        """The offset after the last record of a partition to which no client wrote."""
        return self.log.end

    def log_of(self, partition: int) -> Log:
        return self.written.get(partition, self.log)

    def writable(self, partition: int) -> Log:
        """The log of that partition alone."""
        if partition not in self.written:
            self.written[partition] = Log([*self.log.batches], [*self.log.ends])
        return self.written[partition]


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
            found.by_name[name] = found.by_id[id] = Topic(name, partitions, id)
            for _ in range(records):
                found.grow(name)
        return found

    def find(self, name: str | None, id: uuid.UUID | None) -> Topic | None:
        """By name, if there is one, else by id."""
        return self.by_name.get(name) if name else self.by_id.get(id) if id else None

    def grow(self, name: str) -> None:
        """Gives each partition of a topic one more record."""
        topic = self.by_name[name]
        for each in (topic.log, *topic.written.values()):
            each.add(one_record(name, each.end), each.end + 1)

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
