"""Sizes of fields in bytes: the exact size of fixed-size types, and the least of all others."""

import struct

from kipcheck.conformance.wire.primitives import FORMATS
from kipcheck.conformance.wire.schema import Layout, Slot

SIZES = {"bool": 1, "uuid": 16, **{name: struct.calcsize(">" + code) for name, code in FORMATS.items()}}


def least(layout: Layout) -> int:
    """The least number of bytes the struct can take."""
    return sum(map(_least, layout.untagged)) + layout.flexible


def _least(slot: Slot) -> int:
    if slot.array:
        return 1 if slot.compact else 4
    if slot.nullable and slot.item is not None:
        return 1
    return least_element(slot)


def least_element(slot: Slot) -> int:
    if slot.item is not None:
        return least(slot.item)
    if slot.type in SIZES:
        return SIZES[slot.type]
    match slot.type:
        case "string":
            return 1 if slot.compact else 2
        case "utf":
            return 2
        case "utf16":
            return 4
        case "rest":
            return 0
        case _:
            return 1 if slot.compact else 4


def fixed(layout: Layout) -> bool:
    """Whether all elements of an array of it have the same size (without tags)."""
    return bool(layout.slots) and all(
        slot.type in SIZES and not slot.array and not slot.nullable and slot.tag is None for slot in layout.slots
    )
