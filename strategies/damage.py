"""Damages the bytes of a value at chosen places, with the outcomes that a reader may have.

For tests of readers::

    damages(layout, value, random, kinds=USUAL) -> Iterator[Damage]  # one of each kind that finds a place in the bytes
    prefixes(layout, value) -> Iterator[Damage]                      # cut at every byte; of many, around each place
    every_damage(layout, value, kinds=USUAL) -> Iterator[Damage]     # all there are, in a fixed order
    Damage(kind, outcome, path, offset, data, value)                 # plain data

``value`` must be complete, as ``layout.decode`` returns it. Bytes that must be refused are refused by every released
Kafka as well: where a release, or a reader that does not know a tag yet, accepts them, the outcome is ``EITHER``; and a
shorter legal encoding is not damage (``legal.prefix_is_legal``). ``KINDS`` has a sentence for each kind.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kipcheck.conformance.wire.byte_map import ByteMap
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.jsontext import Path, path_of
from kipcheck.conformance.wire.schema import Layout
from kipcheck.strategies.corruption import KINDS, Corruption, Kind, Outcome
from kipcheck.strategies.legal import FORGIVING, prefix_is_legal, reads_again
from kipcheck.strategies.messages import UNKNOWN_TAGS

__all__ = [
    "HEAVY",
    "KINDS",
    "USUAL",
    "Corruption",
    "Damage",
    "Kind",
    "Outcome",
    "apply_corruption",
    "corruptions",
    "damages",
    "every_damage",
    "prefixes",
]  # fmt: skip

USUAL = tuple(kind.name for kind in KINDS.values() if not kind.heavy)
HEAVY = tuple(kind.name for kind in KINDS.values() if kind.heavy)
"""Hundreds of kilobytes each: a few per message suffice."""


@dataclass(frozen=True, slots=True)
class Damage:
    kind: str
    """A key of ``KINDS``."""
    outcome: Outcome
    path: str
    """``protocols[1].metadata``; empty for the message itself."""
    offset: int
    """Offset of the first changed byte."""
    data: bytes
    value: Mapping[str, Any] | None = None
    """Where the bytes must be accepted: the value, with the unknown tag kept, which is a SHOULD."""


def damages(layout: Layout, value: Mapping[str, Any], random: Random, kinds: Iterable[str] = USUAL) -> Iterator[Damage]:
    """One damage of each kind that applies to the bytes of ``value``, at a place chosen by ``random``.

    Errors: KeyError for an unknown kind.
    """
    mapped = byte_map(layout, value)
    for kind in kinds:
        found = [*KINDS[kind].find(mapped)]
        if found:
            damage = apply_corruption(mapped, random.choice(found))
            if damage is not None:
                yield damage


def every_damage(layout: Layout, value: Mapping[str, Any], kinds: Iterable[str] = USUAL) -> Iterator[Damage]:
    """Every damage to the bytes of ``value``. Errors: KeyError for an unknown kind."""
    mapped = byte_map(layout, value)
    for corruption in corruptions(mapped, kinds):
        damage = apply_corruption(mapped, corruption)
        if damage is not None:
            yield damage


def prefixes(layout: Layout, value: Mapping[str, Any]) -> Iterator[Damage]:
    """The first bytes of ``value``, cut at every byte; past 256 bytes only around every place."""
    return every_damage(layout, value, ("prefix",))


def corruptions(mapped: ByteMap, kinds: Iterable[str] = USUAL) -> Iterator[Corruption]:
    """Damage that can be applied. Errors: KeyError for an unknown kind."""
    for kind in kinds:
        yield from KINDS[kind].find(mapped)


def apply_corruption(mapped: ByteMap, corruption: Corruption) -> Damage | None:
    """The damaged bytes; None where they encode a legal value."""
    layout, at = mapped.layout, 0
    parts: list[bytes] = []
    for edit in corruption.edits:
        parts += (mapped.data[at : edit.offset], edit.patch)
        at = edit.offset + edit.removed
    data = b"".join((*parts, mapped.data[at:]))
    if data == mapped.data or (corruption.kind == "prefix" and prefix_is_legal(layout, data)):
        return None
    outcome = corruption.outcome
    if outcome is Outcome.REFUSE and (layout.message in FORGIVING or reads_again(layout, data)):
        outcome = Outcome.EITHER
    value = None if outcome is not Outcome.ACCEPT else _with_tags(mapped.value, corruption.path, corruption.tags)
    return Damage(corruption.kind, outcome, path_of(corruption.path), corruption.edits[0].offset, data, value)


def _with_tags(value: Any, path: Path, tags: tuple[tuple[int, bytes], ...]) -> Any:
    if path:
        first, rest = path[0], path[1:]
        if isinstance(first, int):
            return [*value[:first], _with_tags(value[first], rest, tags), *value[first + 1 :]]
        return {**value, first: _with_tags(value[first], rest, tags)}
    more = [{"tag": tag, "data": data} for tag, data in tags]
    return {**value, UNKNOWN_TAGS: sorted((*value.get(UNKNOWN_TAGS, ()), *more), key=lambda each: each["tag"])}
