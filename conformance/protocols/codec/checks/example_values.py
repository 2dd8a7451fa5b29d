"""Systematic values of a layout, which are tried before random ones: each fills the whole message in one way."""

import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.schema import INTEGERS, Slot

TAGS = "_unknownTaggedFields"
Value: TypeAlias = dict[str, Any]

LONG = "\u00e9" * 150
"""Its UTF-8 form has more bytes than characters, and more than one varint byte can count."""


def defaults(layout: Layout) -> Value:
    """Every field at its default."""
    return layout.defaults()


def absent(layout: Layout) -> Value:
    """Null in every nullable field, otherwise empty, zero or false."""
    return _made(layout, lambda slot: None if slot.nullable else _nothing(slot))


def emptied(layout: Layout) -> Value:
    """Empty, zero or false, but never null."""
    return _made(layout, _nothing)


def inhabited(layout: Layout) -> Value:
    """One element in every list and every struct present, so that every field has a value."""
    return _made(layout, present)


def extreme(layout: Layout) -> Value:
    """The highest numbers, two elements in every list, short texts beyond ASCII."""
    return _made(layout, utmost)


def lowest(layout: Layout) -> Value:
    """The lowest numbers, and one element in every list."""
    return _made(layout, lambda slot: [_lowest(slot)] if slot.array else _lowest(slot))


def long(layout: Layout) -> Value:
    """Texts and bytes whose length takes more than one byte."""
    return _made(layout, lambda slot: [_long(slot)] if slot.array else _long(slot))


def tagged(layout: Layout) -> Value:
    """A value in every field, and an unknown tagged field in every struct that may have one."""
    value = _made(layout, lambda slot: [_tagged(slot)] if slot.array else _tagged(slot))
    if layout.flexible:
        value[TAGS] = [{"tag": max(layout.declared_tags, default=0) + 100, "data": b"ab"}]
    return value


SYSTEMATIC: tuple[Callable[[Layout], Value], ...] = (extreme, absent, emptied, inhabited, lowest, long, defaults)
"""In the order of how much each is likely to find."""


def present(slot: Slot) -> Any:
    """A value for one field that is not empty."""
    return [_one(slot)] if slot.array else _one(slot)


def utmost(slot: Slot) -> Any:
    """The highest number for one field, or two elements."""
    return [_extreme(slot), _extreme(slot)] if slot.array else _extreme(slot)


def bare(value: Any) -> Any:
    """The value without unknown tagged fields."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if key != TAGS}
    return [bare(each) for each in value] if isinstance(value, list) else value


def _made(layout: Layout, field: Callable[[Slot], Any]) -> Value:
    led = {layout.prefix.name: layout.version} if layout.prefix and layout.prefix.name else {}
    return {**led, **{slot.name: field(slot) for slot in layout.slots}}


def _nothing(slot: Slot) -> Any:
    if slot.array:
        return []
    if slot.item is not None:
        return emptied(slot.item)
    return _scalar(slot, 0, "", b"", False)


def _one(slot: Slot) -> Any:
    if slot.item is not None:
        return inhabited(slot.item)
    return _scalar(slot, 0, "a", b"a", False)


def _tagged(slot: Slot) -> Any:
    return tagged(slot.item) if slot.item is not None else _one(slot)


def _extreme(slot: Slot) -> Any:
    if slot.item is not None:
        return extreme(slot.item)
    bits = INTEGERS.get(slot.type, 2)
    highest = (1 << (bits if slot.type.startswith("u") else bits - 1)) - 1
    return _scalar(slot, highest, "\u00e9", b"\xff", True)


def _lowest(slot: Slot) -> Any:
    if slot.item is not None:
        return lowest(slot.item)
    bits = INTEGERS.get(slot.type, 2)
    return _scalar(slot, 0 if slot.type.startswith("u") else -(1 << bits - 1), "\u20ac", b"\x80", False)


def _long(slot: Slot) -> Any:
    if slot.item is not None:
        return long(slot.item)
    return _scalar(slot, 1, LONG, bytes(range(200)), True)


def _scalar(slot: Slot, number: int, text: str, data: bytes, flag: bool) -> Any:
    if slot.type in INTEGERS:
        return number
    match slot.type:
        case "bool":
            return flag
        case "float64":
            return float(number)
        case "uuid":
            return uuid.UUID(int=(1 << 128) - 1 if flag else 0)
        case "bytes" | "records" | "rest":
            return data
    return text
