"""The iteration order of Java's hash tables, as far as results of Kafka's assignors depend on it.

The layout and growth of ``java.util.HashMap`` are the same in OpenJDK since 8. Keys in one bucket keep their order of
insertion (except that eight or more keys in one bucket of a large table may have another order, which is not modelled).
"""

from collections.abc import Collection, Iterable
from typing import final

from kipcheck.conformance.core.values.java_hash import string_hash
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, java_order

CELLS = 16
WORD = 0xFFFFFFFF


def cell(hash: int, cells: int) -> int:
    return (hash ^ hash >> 16) & (cells - 1)


def _room(keys: int, cells: int = CELLS) -> int:
    """Number of buckets of a table after so many insertions: at most three quarters of them are used."""
    while 4 * keys > 3 * cells:
        cells *= 2
    return cells


def in_table_order(texts: Iterable[str]) -> list[str]:
    """The iteration order of a HashMap into which these keys were inserted in sorted order."""
    ordered = sorted(texts, key=java_order)
    cells = _room(len(ordered))
    return sorted(ordered, key=lambda text: cell(string_hash(text), cells))


def share_a_cell(texts: Collection[str]) -> bool:
    """Whether two of these keys share a bucket of a HashMap."""
    cells = _room(len(texts))
    return len({cell(string_hash(each), cells) for each in texts}) < len(texts)


@final
class Partitions:
    """A HashSet of TopicPartitions. Its table grows with insertions, and never shrinks."""

    def __init__(self) -> None:
        self._hashes: dict[Partition, int] = {}
        self._cells = CELLS

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def add(self, partition: Partition) -> None:
        topic, number = partition
        self._hashes[partition] = (31 * (31 + number) + string_hash(topic)) & WORD
        self._cells = _room(len(self._hashes), self._cells)

    def remove(self, partition: Partition) -> None:
        del self._hashes[partition]

    def first(self) -> Partition:
        return min(self._hashes, key=self._cell)

    @property
    def order(self) -> tuple[Partition, ...]:
        return tuple(sorted(self._hashes, key=self._cell))

    def _cell(self, partition: Partition) -> int:
        return cell(self._hashes[partition], self._cells)
