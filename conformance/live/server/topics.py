"""The topics of a broker on loopback: ids, partitions, and a few records in each."""

import uuid
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, final

from kipcheck.conformance.wire.record_batches import batch, encode

NODE: Final = 1
"""The id of the first node; those of the others follow."""
RECORDS: Final = 10
"""Records of a partition, at offsets 0 to 9."""
RECORD_MS: Final = 1_767_225_600_000
"""The time of every record, of these days: a client may depend on its upper half, as samsa 0.1.8 does."""
LEADER_EPOCH: Final = 0
NAME_LENGTH: Final = 249
MOST_PARTITIONS: Final = 10_000
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Leader(NamedTuple):
    """Of a partition."""

    node: int = 0
    """The place of its node in the cluster; -1: there is none."""
    epoch: int = LEADER_EPOCH


NO_LEADER: Final = -1


class Aborted(NamedTuple):
    """A transaction that was aborted."""

    producer: int
    first: int
    end: int
    """The offset after the marker of its end."""


@final
@dataclass(slots=True, eq=False)
class Log:
    """The record batches of a partition, in order."""

    batches: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """By batch, the offset after its last record."""
    start: int = 0
    """The first offset that can be read."""
    aborted: list[Aborted] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(LEADER_EPOCH, 0)])
    """The epochs of leaders that wrote, each with its first offset."""

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.ends[-1] if self.ends else self.start

    def add(self, data: bytes, end: int, epoch: int = LEADER_EPOCH) -> None:
        """``epoch``: of the leader that wrote them."""
        if epoch > self.epochs[-1][0]:
            self.epochs.append((epoch, self.end))
        self.batches.append(data)
        self.ends.append(end)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The last epoch up to this one, and the offset after its records; -1 for neither.

        Source: ``LeaderEpochFileCache.endOffsetFor``.
        """
        known = [found for found, _ in self.epochs]
        at = bisect_right(known, epoch)
        if not at or epoch > known[-1]:
            return -1, -1
        return known[at - 1], self.epochs[at][1] if at < len(known) else self.end

    def trim(self, start: int) -> None:
        """Deletes the records before that offset, and all batches that have no others."""
        self.start = max(self.start, min(start, self.end))
        gone = self.place(self.start)
        del self.batches[:gone], self.ends[:gone]

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
    """By partition to which a client wrote, or that had another leader."""
    leaders: dict[int, list[Leader]] = field(default_factory=dict, compare=False)
    """By partition that had others than the first node, the newest last."""

    @property
    def end(self) -> int:
        """The offset after the last record of a partition to which no client wrote."""
        return self.log.end

    @property
    def logs(self) -> list[tuple[Log, int]]:
        """Each with the epoch of its leader."""
        return [
            (self.log, LEADER_EPOCH),
            *((log, self.leader_of(number).epoch) for number, log in self.written.items()),
        ]

    def leader_of(self, partition: int) -> Leader:
        return self.leaders[partition][-1] if partition in self.leaders else Leader()

    def elect(self, partition: int, node: int) -> None:
        """The partition has another leader, in the next epoch."""
        leaders = self.leaders.setdefault(partition, [Leader()])
        leaders.append(Leader(node, leaders[-1].epoch + 1))
        self.writable(partition)

    def log_of(self, partition: int) -> Log:
        return self.written.get(partition, self.log)

    def writable(self, partition: int) -> Log:
        """The log of that partition alone."""
        if partition not in self.written:
            shared = self.log
            self.written[partition] = replace(
                shared, batches=[*shared.batches], ends=[*shared.ends], aborted=[*shared.aborted],
                epochs=[*shared.epochs],
            )  # fmt: skip
        return self.written[partition]


def nodes(addresses: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """The nodes of a cluster, as answers describe them."""
    return [{"nodeId": NODE + at, "host": host, "port": port, "rack": None}
            for at, (host, port) in enumerate(addresses)]  # fmt: skip


@final
@dataclass(slots=True)
class Topics:
    by_name: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[uuid.UUID, Topic] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    """How often each topic was created."""
    deleted: dict[uuid.UUID, str] = field(default_factory=dict)
    """The names of topics that do not exist any more."""

    @classmethod
    def of(cls, wanted: Iterable[tuple[str, int]], records: int = RECORDS) -> "Topics":
        """Topics by name and number of partitions. Their ids depend on their names only."""
        found = cls()
        for name, partitions in wanted:
            found.create(name, partitions, records)
        return found

    def create(self, name: str, partitions: int, records: int = RECORDS) -> None:
        """A topic that was deleted before has another id then."""
        again = self.created.get(name, 0)
        self.created[name] = again + 1
        id = uuid.uuid5(uuid.NAMESPACE_OID, f"kipcheck/{name}/{again}" if again else f"kipcheck/{name}")
        self.by_name[name] = self.by_id[id] = Topic(name, partitions, id)
        for _ in range(records):
            self.grow(name)

    def delete(self, name: str) -> None:
        id = self.by_name.pop(name).id
        self.deleted[id] = self.by_id.pop(id).name

    def find(self, name: str | None, id: uuid.UUID | None) -> Topic | None:
        """By name, if there is one, else by id."""
        return self.by_name.get(name) if name else self.by_id.get(id) if id else None

    def grow(self, name: str) -> None:
        """Gives each partition of a topic one more record."""
        for log, epoch in self.by_name[name].logs:
            log.add(one_record(name, log.end, epoch), log.end + 1, epoch)

    @property
    def sizes(self) -> dict[str, int]:
        return {each.name: each.partitions for each in self.by_name.values()}


def is_name(name: str) -> bool:
    """Whether a topic may have this name."""
    return 0 < len(name) <= NAME_LENGTH and _LEGAL.issuperset(name) and name not in (".", "..")


def parse_topic(text: str) -> tuple[str, int]:
    """``t:3``: name and partitions; without a number one partition. Errors: ValueError with the valid form."""
    name, _, number = text.rpartition(":") if ":" in text else (text, "", "1")
    if not is_name(name):
        raise ValueError(f"invalid topic {text!r}: use NAME:PARTITIONS, the name of letters, digits, '.', '_' and '-'")
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_PARTITIONS:
        raise ValueError(f"invalid number of partitions in {text!r}: use 1 to {MOST_PARTITIONS}, as in {name}:3")
    return name, int(number)


def one_record(topic: str, offset: int, leader_epoch: int = LEADER_EPOCH) -> bytes:
    """A record batch with one record, whose value names topic and offset."""
    return encode(batch(offset, [f"{topic} {offset}".encode()], RECORD_MS, leader_epoch=leader_epoch))
