"""Chooses between protocols with equal votes: the first in a hash table, which depends on the table implementation of
the coordinator's language.

The order is computed from the layout of the tables, and agrees with observations: of ``range`` and ``rr`` brokers up to
2.3 take the former, later ones the latter; the Java coordinator takes ``range`` before ``roundrobin``, ``sticky``
before ``range`` and ``p`` before ``q``. With more than a dozen names the result is one of them, maybe not Kafka's.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from kipcheck.conformance.core.values.java_hash import string_hash

_WORD: Final = 0xFFFFFFFF


class Table(Enum):
    SCALA_2_12 = "a mutable map that is walked from its end"
    SCALA_2_13 = "a trie, five bits of the hash a level"
    JAVA = "buckets by the low bits of the hash"

    def first(self, names: tuple[str, ...]) -> str:
        """The first of these names, of which there is at least one; of names in one bucket, the lower."""
        place = _PLACES[self]
        return min(names, key=lambda name: (place(name), name))


def _in_java(name: str) -> tuple[int, ...]:
    found = string_hash(name)
    return ((found ^ found >> 16) & 15,)


def _in_scala_2_13(name: str) -> tuple[int, ...]:
    """The path in the trie, level by level."""
    found = string_hash(name)
    found = (found + (~(found << 9) & _WORD)) & _WORD
    found ^= found >> 14
    found = (found + (found << 4)) & _WORD
    found ^= found >> 10
    return tuple(found >> shift & 31 for shift in range(0, 35, 5))


def _in_scala_2_12(name: str) -> tuple[int, ...]:
    """The bucket, of sixteen, counted from the last one down."""
    mixed = string_hash(name) * 0x9E3775CD & _WORD
    mixed = int.from_bytes(mixed.to_bytes(4, "big"), "little") * 0x9E3775CD & _WORD
    turned = (mixed >> 4 | mixed << 28) & _WORD
    return (15 - (turned >> 28),)


_PLACES: Final[dict[Table, Callable[[str], tuple[int, ...]]]] = {
    Table.JAVA: _in_java,
    Table.SCALA_2_12: _in_scala_2_12,
    Table.SCALA_2_13: _in_scala_2_13,
}
