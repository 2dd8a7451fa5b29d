"""The corpus of a campaign: values with new coverage, and the coverage keys of all values so far.

All shards of a round start with the same snapshot. Their rows lead to the next snapshot: ``RoundCorpus``.
"""

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Self

from kipcheck.conformance.campaign.corpus.minimise import cover
from kipcheck.conformance.campaign.corpus.value_text import plain_text, value_of
from kipcheck.conformance.campaign.rows import Kept, Row, digest_of
from kipcheck.conformance.core.operations.field_kinds import from_json, to_json

__all__ = ["Damaged", "RoundCorpus", "Snapshot", "grown", "merged", "plain_text", "value_of"]

FORMAT: Final = 1
LARGEST: Final = 256 << 20
"""The most bytes of an unpacked snapshot: a campaign of days keeps some millions."""


class Damaged(ValueError):
    """The bytes are not a valid snapshot."""


GROUP: Final = 64
"""Shards, or groups of shards, whose entries are reduced together."""


@dataclass(frozen=True)
class Snapshot:
    entries: tuple[Kept, ...] = ()
    """In the order in which they were added: the newest last."""
    keys: frozenset[int] = frozenset()
    """All keys ever observed, also of values that are not kept."""

    @classmethod
    def empty(cls) -> Self:
        return cls()

    @cached_property
    def digest(self) -> str:
        """Of the contents, not of the bytes; empty for an empty snapshot."""
        if not self.entries and not self.keys:
            return ""
        return digest_of([[[each.id, each.keys, each.steps] for each in self.entries], sorted(self.keys)])

    def dump(self) -> bytes:
        """JSON Lines in gzip: a header with all keys, then an entry a line."""
        header = {"format": FORMAT, "digest": self.digest, "entries": len(self.entries), "keys": sorted(self.keys)}
        lines = (json.dumps(each, separators=(",", ":")) for each in (header, *map(to_json, self.entries)))
        return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0, compresslevel=6)

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Reads the result of ``dump``. Errors: ``Damaged`` with the reason."""
        try:
            header, *entries = map(json.loads, _unpacked(data).splitlines())
            if header["format"] != FORMAT:
                raise Damaged(f"its format is {header['format']}, and this kipcheck reads format {FORMAT}")
            if not all(type(each) is int for each in header["keys"]):
                raise Damaged("a key in its header is no integer")
            found = cls(tuple(from_json(Kept, each) for each in entries), frozenset(header["keys"]))
            expected = header["digest"]
        except Damaged:
            raise
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as wrong:
            raise Damaged(f"invalid corpus: {wrong}") from None
        if found.digest != expected:
            raise Damaged(f"its digest is {found.digest or 'empty'}, but its header has {expected or 'none'}")
        return found


def _unpacked(data: bytes) -> bytes:
    """Errors: ``Damaged`` if it is too large; the exceptions of gzip."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise Damaged(f"unpacked it has more than {LARGEST >> 20} MiB")
    return found


def grown(snapshot: Snapshot, rows: Iterable[Row]) -> Snapshot:
    """The snapshot after the rows of a round: see ``RoundCorpus``."""
    found = RoundCorpus()
    for row in rows:
        found.add(row)
    return found.after(snapshot)


@dataclass(slots=True)
class _Brought:
    """What some shards with consecutive numbers kept: entries of targets without, and with threads of their own."""

    steady: Sequence[Kept]
    loose: Sequence[Kept]


@dataclass(slots=True)
class RoundCorpus:
    """What the rows of a round bring to the corpus, in any order. Its size does not grow with the number of rows.

    As soon as 64 shards with consecutive numbers have brought theirs, redundant entries of them are dropped, then of 64
    such groups, and so on: which shards are a group follows from their numbers, so the result is the same in any order.
    """

    parts: dict[tuple[int, int], _Brought] = field(default_factory=dict)
    """(Level, number): the part of one shard, of 64 shards, of 64 times 64."""
    keys: set[int] = field(default_factory=set)
    """Of deterministic targets."""
    loose_keys: set[int] = field(default_factory=set)
    is_steady: bool = False
    """Whether there is a row of a deterministic target."""

    def add(self, row: Row) -> None:
        if row.stage != "hold":
            return
        self.is_steady |= row.deterministic
        (self.keys if row.deterministic else self.loose_keys).update(row.coverage)
        self._put(0, row.shard, _Brought(*((row.kept, ()) if row.deterministic else ((), row.kept))))

    def unite(self, other: "RoundCorpus") -> None:
        """Adds what other shards of the same round brought."""
        self.is_steady |= other.is_steady
        self.keys |= other.keys
        self.loose_keys |= other.loose_keys
        for (level, number), part in sorted(other.parts.items()):
            self._put(level, number, part)

    def _put(self, level: int, number: int, part: _Brought) -> None:
        self.parts[level, number] = part
        first = number - number % GROUP
        group = [(level, each) for each in range(first, first + GROUP)]
        if all(each in self.parts for each in reversed(group)):
            found = [self.parts.pop(each) for each in group]
            steady = _without_redundant(each for part in found for each in part.steady)
            loose = _without_redundant(each for part in found for each in part.loose)
            self._put(level + 1, number // GROUP, _Brought(steady, loose))

    def after(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the entries of the round, without redundant ones.

        A target with threads of its own has different coverage in every run. So that other targets start their next
        round with a reproducible corpus, its rows are ignored as long as there are rows of deterministic targets.
        """
        order = sorted(self.parts, key=lambda place: place[1] * GROUP ** place[0])
        parts = [self.parts[each] for each in order]
        brought = [each for part in parts for each in (part.steady if self.is_steady else part.loose)]
        keys = self.keys if self.is_steady else self.loose_keys
        return _least([*snapshot.entries, *brought], snapshot.keys | keys)


def merged(snapshots: Iterable[Snapshot]) -> Snapshot:
    """The entries of all snapshots, without redundant ones."""
    found = list(snapshots)
    return _least([each for one in found for each in one.entries], frozenset().union(*(one.keys for one in found)))


def _least(entries: Iterable[Kept], keys: frozenset[int]) -> Snapshot:
    once = _once(entries)
    chosen = tuple(once[index] for index in cover(once))
    return Snapshot(chosen, keys.union(*(each.keys for each in once)))


def _without_redundant(entries: Iterable[Kept]) -> list[Kept]:
    once = _once(entries)
    return [once[index] for index in cover(once)]


def _once(entries: Iterable[Kept]) -> list[Kept]:
    """Each value once, at its first position, with its keys from all targets."""
    found: dict[str, Kept] = {}
    for each in entries:
        first = found.setdefault(each.id, each)
        if first.keys != each.keys:
            keys = tuple(sorted({*first.keys, *each.keys}))
            found[each.id] = replace(first, keys=keys, steps=max(first.steps, each.steps))
    return list(found.values())
