"""Reads bytes with the codec and with the construct declarations; both must agree before a target is judged by them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.verdict import Disagreement
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Slot, spec

TAGS = "_unknownTaggedFields"


@dataclass(frozen=True)
class DecodedBytes:
    """Bytes and their value in one layout."""

    layout: Layout
    data: bytes
    value: Any
    """The value as JSON; None if the strict reader refuses the bytes."""
    refused: Refused | None
    """Why the strict reader refuses the bytes."""
    lenient: Any
    """The value that Kafka's own readers return, as JSON; None if they refuse the bytes too."""
    lenient_refused: Refused | None

    @property
    def legal(self) -> bool:
        return self.refused is None

    @property
    def unknown_tags(self) -> bool:
        return self.legal and any(True for _ in tags_in(self.value))


@lru_cache(maxsize=256)
def layout_of(edition_name: str, message: str, version: int) -> Layout:
    """Errors: LookupError."""
    return spec(edition(edition_name), message).at(version)


LARGE = 1 << 14
"""Bytes: only a few messages above this size are kept."""


def read(layout: Layout, data: bytes) -> DecodedBytes:
    """Errors: ``Disagreement``."""
    return _read_small(layout, data) if len(data) <= LARGE else _read_large(layout, data)


def _both(layout: Layout, data: bytes) -> DecodedBytes:
    value, refused = _read(layout, data, lenient=False)
    if refused is None:
        return DecodedBytes(layout, data, value, None, value, None)
    return DecodedBytes(layout, data, None, refused, *_read(layout, data, lenient=True))


_read_small = lru_cache(maxsize=512)(_both)
_read_large = lru_cache(maxsize=4)(_both)


def _read(layout: Layout, data: bytes, lenient: bool) -> tuple[Any, Refused | None]:
    from kipcheck.conformance.wire import (
        constructs,  # imports construct, which a lookup of an invariant does not need
    )

    fast, fast_refused = _attempt(lambda: layout.decode(data, lenient=lenient))
    if fast_refused is not None and fast_refused.offset is not None:
        return None, fast_refused  # the codec has no offsets: this one comes from the construct reader
    slow, slow_refused = _attempt(lambda: constructs.read(layout, data, lenient=lenient))
    if (fast_refused is None) != (slow_refused is None):
        raise Disagreement(
            f"{layout} {'leniently ' if lenient else ''}from {data[:200].hex()}: "
            f"codec: {fast_refused or 'accepted'}; construct reader: {slow_refused or 'accepted'}"
        )
    if fast_refused is not None:
        return None, fast_refused
    shown, other = layout.codec.to_json(fast), layout.codec.to_json(slow)
    if (found := difference(shown, other)) is not None:
        raise Disagreement(f"{layout} from {data[:200].hex()}: codec and construct reader differ at {found}")
    return shown, None


def _attempt(decode: Any) -> tuple[Any, Refused | None]:
    try:
        return decode(), None
    except Refused as refusal:
        return None, refusal


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    wanted: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {brief(self.wanted)}, not {brief(self.got)}"


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def difference(wanted: Any, got: Any, path: str = "") -> Difference | None:
    """The first difference, or None. -0.0 differs from 0.0, a NaN equals a NaN, true differs from 1."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in (*wanted, *(key for key in got if key not in wanted)):
            inner = f"{path}.{key}" if path else key
            found = difference(wanted.get(key, ABSENT), got.get(key, ABSENT), inner)
            if found is not None:
                return found
        return None
    if isinstance(wanted, list) and isinstance(got, list):
        for index, (one, other) in enumerate(zip(wanted, got, strict=False)):
            if (found := difference(one, other, f"{path}[{index}]")) is not None:
                return found
        return None if len(wanted) == len(got) else Difference(path, wanted, got)
    # Compared as text: -0.0 differs from 0.0, and a NaN equals another NaN.
    same = type(wanted) is type(got) and str(wanted) == str(got)
    return None if same else Difference(path, wanted, got)


def brief(value: Any) -> str:
    """A value in a message: as in JSON, cut to 60 characters."""
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case list():
            text = f"{len(value)} elements" if len(value) != 1 else "1 element"
        case dict():
            text = f"{{{', '.join(value)}}}"
        case str():
            text = f'"{value}"'
        case _:
            text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def without_tags(value: Any) -> Any:
    """The value without its unknown tagged fields."""
    if isinstance(value, dict):
        return {key: without_tags(each) for key, each in value.items() if key != TAGS}
    return [without_tags(each) for each in value] if isinstance(value, list) else value


def without_foreign_fields(layout: Layout, value: Any) -> Any:
    """The value as JSON without the fields that this version lacks."""
    absent = {each.name for each in layout.absent}
    kept = {name: each for name, each in value.items() if name not in absent}
    for slot in layout.slots:
        inner = kept.get(slot.name)
        if slot.item is not None and inner is not None:
            item = slot.item
            kept[slot.name] = (
                [without_foreign_fields(item, each) for each in inner]
                if slot.array
                else without_foreign_fields(item, inner)
            )
    return kept


def tags_in(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the structs with unknown tagged fields."""
    if isinstance(value, dict):
        if TAGS in value:
            yield path
        for key, each in value.items():
            yield from tags_in(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from tags_in(each, f"{path}[{index}]")


STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def slot_at(layout: Layout, path: str) -> tuple[Slot, bool] | None:
    """The slot at a path, and whether the path ends in an element of it. None for the message itself."""
    found: tuple[Slot, bool] | None = None
    current: Layout | None = layout
    for name, index in STEP.findall(path):
        if index:
            found = found and (found[0], True)
        else:
            slot = next((slot for slot in current.slots if slot.name == name), None) if current else None
            if slot is None:
                return None
            found, current = (slot, False), slot.item
    return found


def in_tagged(layout: Layout, path: str) -> bool:
    """Is the path inside a known tagged field, which a reader of the same version may not know?"""
    ends = (end for end in range(1, len(path) + 1) if end == len(path) or path[end] in ".[")
    return any((found := slot_at(layout, path[:end])) is not None and found[0].tag is not None for end in ends)


def field_at(layout: Layout, data: bytes, offset: int) -> tuple[str, str]:
    """The path and the kind of the field to which a byte of legal bytes belongs; past their end, of the last one.

    Of large messages, which are slow to map, it is the message.
    """
    from kipcheck.conformance.wire.explain import explain  # imports construct, as above

    if len(data) > LARGE:
        return "", kind_at(layout, "")
    row = next((row for row in explain(layout, data).rows[::-1] if row.offset <= offset), None)
    if row is None:
        return "", kind_at(layout, "")
    return row.path, "tags" if row.type.startswith("uvarint tag") else kind_at(layout, row.path)


HEADERS = frozenset({"RequestHeader", "ResponseHeader"})


def where(layout: Layout) -> tuple[str, ...]:
    """The part of a frame that is read or written, for a shape: headers have decoders of their own in most clients."""
    return ("header",) if layout.message in HEADERS else ()


@lru_cache(maxsize=64)
def without_known_tags(layout: Layout) -> Layout:
    """The layout of a reader that knows no tagged field, and skips them all."""
    slots = (
        slot if slot.item is None else replace(slot, item=without_known_tags(slot.item)) for slot in layout.untagged
    )
    return replace(layout, slots=tuple(slots))


def kind_at(layout: Layout, path: str) -> str:
    """The kind of the field at a path, without its name: ``nullable string``, ``array``, ``tagged struct``.

    A field in a struct of a known tagged field is tagged too: it is read from the tag section.
    """
    found = slot_at(layout, path)
    if found is None:
        return "tags" if path.endswith(TAGS) or TAGS in path else "message"
    slot, element = found
    base = "struct" if slot.item is not None else slot.type
    words = [
        "tagged" if in_tagged(layout, path) else "",
        "nullable" if slot.nullable and not element else "",
        "array" if slot.array and not element else base,
    ]
    return " ".join(filter(None, words))
