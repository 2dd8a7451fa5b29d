"""The order in which Java goes through its hash tables, as far as outcomes of Kafka's assignors depend on it.

``String.hashCode`` is laid down by its documentation. How ``java.util.HashMap`` spreads hashes over a table, and when
the table grows, is the same in OpenJDK from 8 on. In one cell of the table keys stand in the order in which they came
(where eight and more meet there in a large table, which is left out here, it may be another).
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import final

from kipcheck.conformance.models.assignment import Partition, java_order

CELLS = 16
WORD = 0xFFFFFFFF


@lru_cache(maxsize=4096)
def hash_of(text: str) -> int:
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & WORD
    return found


def cell(hash: int, cells: int) -> int:
    return (hash ^ hash >> 16) & (cells - 1)


def _room(keys: int, cells: int = CELLS) -> int:
    """Cells of a table that grew as so many keys came one by one: it is never more than three quarters full."""
    while 4 * keys > 3 * cells:
        cells *= 2
    return cells


def in_table_order(texts: Iterable[str]) -> list[str]:
    """As a HashMap with these keys is gone through, had they come in their own order."""
    ordered = sorted(texts, key=java_order)
    cells = _room(len(ordered))
    return sorted(ordered, key=lambda text: cell(hash_of(text), cells))


def share_a_cell(texts: Collection[str]) -> bool:
    """Do two of these keys stand in one cell of a HashMap?"""
    cells = _room(len(texts))
    return len({cell(hash_of(each), cells) for each in texts}) < len(texts)


@final
class Partitions:
    """A HashSet of TopicPartitions. It grows with what is added, and does not shrink again."""

    def __init__(self) -> None:
        self._hashes: dict[Partition, int] = {}
        self._cells = CELLS

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def add(self, partition: Partition) -> None:
        topic, number = partition
        self._hashes[partition] = (31 * (31 + number) + hash_of(topic)) & WORD
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
