"""Values whose bytes straddle the sizes of buffers: fields are enlarged until the message ends after such a size."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.protocols.codec.invariants.sizes import STRADDLED
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.schema import Slot

Value: TypeAlias = dict[str, Any]

LONGEST_TEXT: Final = 32_000
"""Bytes of a text: most readers accept 32767."""
MOST_ELEMENTS: Final = 1_100
"""Of a list: as many int32 straddle the first size, and more take long to decode."""
GRAIN: Final = "kafka \u00e9\u20ac"
"""What texts are made of: characters of one, two and three bytes, so that one of them may straddle the size."""


class Place(NamedTuple):
    """A field of a value that can be enlarged."""

    path: Path
    slot: Slot


def large(layout: Layout, value: Value, size: int, random: Random) -> Value | None:
    """The value with fields enlarged in random order until its bytes straddle ``size``; None if they cannot.

    The message ends between one byte before and the length of the value after the size, so that the size is in any
    field.
    """
    found = [each for each in places(layout, value) if size == STRADDLED[0] or is_coarse(each.slot)]
    target = size + random.randint(-1, len(layout.encode(value)))
    return _filled(layout, value, random.sample(found, len(found)), target)


def each_large(layout: Layout, value: Value, size: int) -> Iterator[Value]:
    """The value with each of its fields enlarged until its bytes straddle ``size``."""
    for place in places(layout, value):
        made = _filled(layout, value, [place], size)
        if made is not None:
            yield made


def sizes(layout: Layout) -> tuple[int, ...]:
    """The sizes that a version is tried with: the large ones only for the newest one, since they take long."""
    return STRADDLED if layout.newest else STRADDLED[:1]


def places(layout: Layout, value: Any, path: Path = ()) -> Iterator[Place]:
    """The texts, bytes and lists in the value that are not null."""
    for slot in layout.slots:
        inner = value.get(slot.name)
        if inner is None:
            continue
        here = (*path, slot.name)
        if slot.array:
            if inner:
                yield Place(here, slot)
        elif slot.type in ("string", "bytes", "records"):
            yield Place(here, slot)
        if slot.item is not None:
            for at, each in enumerate(inner[:1]) if slot.array else [(None, inner)]:
                yield from places(slot.item, each, here if at is None else (*here, at))


def is_coarse(slot: Slot) -> bool:
    """Does the field become large by texts or bytes, and not by many elements?"""
    if slot.item is None:
        return slot.type in ("string", "bytes", "records")
    return any(each.item is None and not each.array and is_coarse(each) for each in slot.item.slots)


def _filled(layout: Layout, value: Value, order: list[Place], target: int) -> Value | None:
    for place in order:
        for _ in range(3):  # a longer length takes more bytes itself, and elements are not of any size
            missing = target - len(layout.encode(value))
            if missing <= 0:
                return value
            value = _changed(value, place.path, lambda inner, slot=place.slot, more=missing: _more(slot, inner, more))
    return value if len(layout.encode(value)) >= target else None


def _more(slot: Slot, inner: Any, more: int) -> Any:
    """The field with about ``more`` bytes added, as far as it may have them."""
    if not slot.array:
        return inner + (bytes(more) if isinstance(inner, bytes) else _text(min(more, _room(inner))))
    if slot.item is None:
        if isinstance(inner[0], str):
            longer = [_text(LONGEST_TEXT)] * (more // LONGEST_TEXT)
            return [*inner, *longer, _text(max(more % LONGEST_TEXT - 2, 0))]
        return [*inner, *inner[:1] * min(more // WIDTHS.get(slot.type, 16) + 1, MOST_ELEMENTS - len(inner))]
    inside = next((each for each in places(slot.item, inner[0]) if not each.slot.array), None)
    whole = len(slot.item.encode(inner[0]))
    if inside is None:
        return [*inner, *inner[:1] * max(0, min(more // max(whole, 1) + 1, MOST_ELEMENTS - len(inner)))]
    full, rest = divmod(more, LONGEST_TEXT + whole)
    added = [LONGEST_TEXT] * full + ([rest - whole] if rest >= whole else [])
    return [*inner, *(_changed(inner[0], inside.path, lambda old, n=n: _more(inside.slot, old, n)) for n in added)]


WIDTHS: Final = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}


def _room(text: str) -> int:
    return max(0, LONGEST_TEXT - len(text.encode()))


def _text(size: int) -> str:
    """A text of this number of bytes."""
    cut = (GRAIN * (size // len(GRAIN.encode()) + 1)).encode()[:size].decode(errors="ignore")
    return cut + "." * (size - len(cut.encode()))


def _changed(value: Any, path: Path, change: Any) -> Any:
    if not path:
        return change(value)
    first, *rest = path
    inner = _changed(value[first], tuple(rest), change)
    if isinstance(value, list):
        return [inner if at == first else each for at, each in enumerate(value)]
    return {**value, first: inner}
