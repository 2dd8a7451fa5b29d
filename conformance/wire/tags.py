"""Tag sections: called by compiled code where a struct has tags, which is rare."""

from collections.abc import Callable, Mapping
from typing import Any

from kipcheck.conformance.wire.primitives import LARGEST_SIZE, UNKNOWN, Rough, read_uvarint, uvarint


def unknown_tags(data: bytes, at: int, take: Callable[[int], None] | None = None) -> tuple[int, list[dict[str, Any]]]:
    """The end of the tag section at ``at``, and its tags, in a struct that declares no tags.

    ``take`` gets their number before they are decoded. Errors: Rough, IndexError.
    """
    found: list[dict[str, Any]] = []
    number, at = read_uvarint(data, at)
    if number * 2 > len(data) - at:
        raise Rough("length")
    if take is not None:
        take(number)
    last = -1
    for _ in range(number):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if tag <= last or tag > LARGEST_SIZE:
            raise Rough("tag")
        if size > len(data) - at:
            raise Rough("length")
        last = tag
        found.append({"tag": tag, "data": data[at : at + size]})
        at += size
    return at, found


def merge(known: list[tuple[int, bytes]], unknown: Any, tags: frozenset[int]) -> list[tuple[int, bytes]]:
    """Merges known and unknown tagged fields by tag. Errors: Rough."""
    if type(unknown) is not list:
        raise Rough("type")
    last = -1
    for each in unknown:
        tag, data = each["tag"], each["data"]
        if len(each) != 2 or type(tag) is not int or type(data) is not bytes or tag in tags or tag <= last:
            raise Rough("tag")
        if tag > LARGEST_SIZE:
            raise Rough("range")
        last = tag
        known.append((tag, data))
    known.sort()
    return known


def tag_section(fields: list[tuple[int, bytes]]) -> bytes:
    """The bytes of tagged fields in order, after their count."""
    out = [uvarint(len(fields))]
    for tag, data in fields:
        out += (uvarint(tag), uvarint(len(data)), data)
    return b"".join(out)


def own_tags(value: Mapping[str, Any]) -> bytes:
    """The tag section of a struct that declares no tags. Errors: Rough."""
    unknown = value.get(UNKNOWN)
    return b"\0" if unknown is None else tag_section(merge([], unknown, frozenset()))
