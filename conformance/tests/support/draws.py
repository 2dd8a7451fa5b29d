"""Values and damaged bytes from a ``random.Random``, for tests that must not lean on what they test."""

import random
import uuid
from typing import Any

from kipcheck.conformance.wire.schema import INTEGERS, Layout, Slot

TEXTS = ("", "a", "grüße", "topic-0", "\0", "𝄞", "x" * 130, "\uffff", "߿ࠀ")


def value(layout: Layout, rng: random.Random, unknown_tags: bool = True) -> dict[str, Any]:
    """A value that ``layout`` can write."""
    drawn: dict[str, Any] = {layout.prefix.name: layout.version} if layout.prefix and layout.prefix.name else {}
    drawn |= {slot.name: _field(slot, rng) for slot in layout.slots}
    if layout.flexible and unknown_tags and rng.random() < 0.2:
        known = layout.declared_tags
        tags = sorted({rng.choice((0, 5, 127, 128, 300, 9999, 2**31 - 1)) for _ in range(3)} - known)
        drawn["_unknownTaggedFields"] = [{"tag": tag, "data": rng.randbytes(rng.randrange(4))} for tag in tags]
        if not tags:
            del drawn["_unknownTaggedFields"]
    return drawn


def _field(slot: Slot, rng: random.Random) -> Any:
    if slot.nullable and rng.random() < 0.25:
        return None
    if rng.random() < 0.2 and slot.default is not None:
        return slot.fresh()
    if slot.array:
        return [_one(slot, rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    return _one(slot, rng)


def _one(slot: Slot, rng: random.Random) -> Any:
    if slot.item is not None:
        return value(slot.item, rng)
    if slot.type in INTEGERS:
        low = 0 if slot.type == "uint16" else -(1 << INTEGERS[slot.type] - 1)
        high = low + (1 << INTEGERS[slot.type]) - 1
        return rng.choice((low, high, max(low, -1), 0, 1, rng.randint(low, high)))
    match slot.type:
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.choice((0.0, -1.5, float("inf"), rng.random()))
        case "uuid":
            return uuid.UUID(int=rng.choice((0, 1, rng.getrandbits(128))))
        case "string" | "utf" | "utf16":
            return rng.choice(TEXTS)
        case _:
            return rng.randbytes(rng.choice((0, 1, 3, 130)))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """``data`` with something wrong, or perhaps right all the same."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(raw) + 1)
        match rng.randrange(7):
            case 0:
                del raw[at:]
            case 1:
                raw[at:at] = rng.randbytes(rng.randrange(1, 4))
            case 2:
                del raw[at : at + rng.randrange(1, 4)]
            case 3:
                raw[at : at + 1] = bytes([rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))])
            case 4:
                raw[at : at + 4] = rng.choice(
                    (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\0\0\0\1")
                )
            case 5:
                raw[at : at + 1] = rng.choice(
                    (b"\xff\xff\xff\xff\x0f", b"\x80\0", b"\x81\x80\0", b"\xff\xff\xff\xff\x7f")
                )
            case _ if at < len(raw):
                raw[at] ^= 1 << rng.randrange(8)
    return bytes(raw)


STRANGERS: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 15, 1 << 31, 1 << 63, 1 << 70, 1.5, float("nan"), 10**400, "", "x" * 40000, "\ud800",
    b"", bytearray(b"y"), [], (), {}, {"a": 1}, [None], [[]], uuid.UUID(int=3), "00000000-0000-0000-0000-000000000000",
    [{"tag": 1, "data": b""}], [{"tag": True, "data": b""}], [{"tag": 70000, "data": "x"}], [{"tag": 3}],
)  # fmt: skip


def spoiled(drawn: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """``drawn`` with something in one place that may not belong there; changed in place."""
    places: list[tuple[Any, Any]] = []
    _places(drawn, places)
    around, at = rng.choice(places)
    around[at] = rng.choice(STRANGERS)
    return drawn


def _places(around: Any, found: list[tuple[Any, Any]]) -> None:
    if isinstance(around, dict):
        strange = ("nonsense", "_unknownTaggedFields", 5, "groupInstanceId", "memberId", "members", "topics")
        found += [(around, name) for name in strange]
    for name in around if isinstance(around, dict) else range(len(around)) if isinstance(around, list) else ():
        found.append((around, name))
        _places(around[name], found)
