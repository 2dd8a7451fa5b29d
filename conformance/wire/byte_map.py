"""The map of bytes: the purpose, path and value of each region, recorded by a decoder while it reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.schema import Layout, Slot


class Role(Enum):
    """The purpose of a region."""

    VERSION = "the version that leads the bytes"
    NUMBER = "a number or a uuid"
    BOOLEAN = "a boolean"
    PRESENCE = "whether a struct follows"
    LENGTH = "how long the following text or bytes are"
    COUNT = "how many elements follow"
    TEXT = "the bytes of a text"
    BYTES = "bytes without structure here"
    TAG_COUNT = "how many tagged fields follow"
    TAG = "the number of a tagged field"
    TAG_SIZE = "how many bytes a tagged field takes"
    SYNTAX = "the JSON text before a value: brackets, keys and spaces"
    JSON = "a JSON value"


class Span(NamedTuple):
    """A region, and its interpretation."""

    offset: int
    size: int
    role: Role
    form: str
    """The encoding: a fixed type, ``uvarint``, or the type of a text."""
    path: Path
    """Of the field; for a tag section, of its struct."""
    value: Any
    slot: Slot | None
    """The field that the bytes belong to; None for bytes of no field."""
    owner: str
    """The message or struct that declares the field."""
    inside: bool = False
    """Whether it is in the data of a known tagged field. A reader without that field skips all of it."""

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def nullable(self) -> bool:
        return self.slot is not None and self.slot.nullable


class Section(NamedTuple):
    """The tagged fields at the end of one struct."""

    layout: Layout
    path: Path
    offset: int
    tags: tuple[int, ...]
    starts: tuple[int, ...]
    """The start of each tagged field, and the end of the section. The first is the end of the count."""
    defaults: Mapping[int, bytes]
    """By known tag: the data of the default value, which no encoder writes."""

    def free(self, number: int) -> Iterator[int]:
        """The lowest tags that neither the layout, in any version, nor these bytes use."""
        taken, tag = {*self.tags, *self.layout.declared_tags}, 0
        while number:
            if tag not in taken:
                yield tag
                number -= 1
            tag += 1


@dataclass
class ByteMap:
    """Bytes, and their spans in order, without gaps, up to the damage if there is any."""

    layout: Layout
    data: bytes
    spans: list[Span] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    """Inner ones first."""
    ends: dict[int, int] = field(default_factory=dict)
    """By the offset of a length or count: the end of the bytes that it counts. None for null."""
    value: Mapping[str, Any] = field(default_factory=dict)
    """The value of undamaged bytes."""
    damage: Refused | None = None

    @cached_property
    def known_sizes(self) -> list[Span]:
        """Sizes of the known tagged fields."""
        return [span for span in self.spans if span.role is Role.TAG_SIZE and span.slot]
