"""Maps the bytes of a value: the region of each field, for aimed damage.

A separate encoder that records what it writes. It is slow and simple, and writes the same bytes as the codec.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from struct import pack
from typing import Any

from kipcheck.conformance.wire.schema import Layout, Slot
from kipcheck.strategies.messages import UNKNOWN_TAGS
from kipcheck.strategies.parse import Path

FIXED = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d"}


class Role(Enum):
    """The purpose of a region."""

    VERSION = "the version that leads the bytes"
    NUMBER = "a number or a uuid"
    BOOLEAN = "a boolean"
    PRESENCE = "whether a struct follows"
    LENGTH = "how long what follows is"
    COUNT = "how many items follow"
    TEXT = "the bytes of a text"
    BYTES = "bytes that mean nothing here"
    TAG_COUNT = "how many tagged fields follow"
    TAG = "the number of a tagged field"
    TAG_SIZE = "how long the data of a tagged field is"


@dataclass(frozen=True, slots=True)
class Region:
    role: Role
    path: Path
    """Of the field; for a tag section, of its struct."""
    offset: int
    size: int
    form: str
    """How it is encoded: a fixed type, ``uvarint``, or the type of a text."""
    span: int = 0
    """For a length or count: the size of it and the bytes that it counts."""
    nullable: bool = False
    known: bool = False
    """For a tag and its size: whether the layout declares the tag."""
    inside: bool = False
    """Whether it is in the data of a known tagged field. A reader without that field skips all of it."""

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Section:
    """The tagged fields at the end of one struct."""

    layout: Layout
    path: Path
    count: Region
    tags: tuple[int, ...]
    starts: tuple[int, ...]
    """The start of each tagged field, and the end of the section."""
    inside: bool

    def free(self, number: int) -> Iterator[int]:
        """The lowest tags that neither the layout nor these bytes use."""
        taken, tag = {*self.tags, *(slot.tag for slot in self.layout.tagged)}, 0
        while number:
            if tag not in taken:
                yield tag
                number -= 1
            tag += 1


@dataclass(frozen=True, slots=True)
class ByteMap:
    """The bytes of a value, and their regions in order."""

    layout: Layout
    value: Mapping[str, Any]
    data: bytes
    regions: tuple[Region, ...]
    sections: tuple[Section, ...]
    sizes: tuple[Region, ...]
    """Sizes of the known tagged fields."""


def map_bytes(layout: Layout, value: Mapping[str, Any]) -> ByteMap:
    """``value`` must be complete, as ``layout.decode`` returns it."""
    encoder = _MappingEncoder()
    if layout.prefix is not None:
        encoder.fixed(Role.VERSION, layout.prefix.type, layout.version, (layout.prefix.name or "version",))
    encoder.struct(layout, value, ())
    regions = tuple(sorted(encoder.regions, key=lambda region: (region.offset, region.end)))
    sizes = tuple(region for region in regions if region.role is Role.TAG_SIZE and region.known)
    return ByteMap(layout, value, bytes(encoder.out), regions, tuple(encoder.sections), sizes)


def default_payload(slot: Slot) -> bytes:
    """The data of a tagged field with its default, which no encoder writes."""
    return bytes(_payload(slot, slot.fresh(), ()).out)


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


@dataclass(slots=True)
class _MappingEncoder:
    inside: bool = False
    out: bytearray = field(default_factory=bytearray)
    regions: list[Region] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def put(self, role: Role, form: str, data: bytes, path: Path, **more: Any) -> Region:
        region = Region(role, path, len(self.out), len(data), form, inside=self.inside, **more)
        self.regions.append(region)
        self.out += data
        return region

    def fixed(self, role: Role, form: str, number: float, path: Path) -> None:
        self.put(role, form, pack(">" + FIXED[form], number), path)

    def measure(self, role: Role, form: str, number: int | None, path: Path, nullable: bool) -> int:
        """Writes a length or count, to be closed after what it counts; None is null."""
        if form == "uvarint":
            data = uvarint(0 if number is None else number + 1)
        else:
            data = pack(">" + FIXED[form], -1 if number is None else number)
        self.put(role, form, data, path, nullable=nullable)
        return len(self.regions) - 1

    def close(self, index: int) -> None:
        self.regions[index] = replace(self.regions[index], span=len(self.out) - self.regions[index].offset)

    def struct(self, layout: Layout, value: Mapping[str, Any], path: Path) -> None:
        for slot in layout.untagged:
            self.slot(slot, value[slot.name], (*path, slot.name))
        if layout.flexible:
            self.tags(layout, value, path)

    def slot(self, slot: Slot, value: Any, path: Path) -> None:
        if slot.array:
            form = "uvarint" if slot.compact else "int32"
            at = self.measure(Role.COUNT, form, None if value is None else len(value), path, slot.nullable)
            for index, each in enumerate(value or ()):
                self.one(slot, each, (*path, index))
            self.close(at)
        elif slot.item is not None and slot.nullable:
            self.fixed(Role.PRESENCE, "int8", -1 if value is None else 1, path)
            if value is not None:
                self.struct(slot.item, value, path)
        else:
            self.one(slot, value, path)

    def one(self, slot: Slot, value: Any, path: Path) -> None:
        if slot.item is not None:
            self.struct(slot.item, value, path)
        elif slot.type in FIXED:
            self.fixed(Role.NUMBER, slot.type, value, path)
        else:
            nullable = slot.nullable and not slot.array
            match slot.type:
                case "bool":
                    self.put(Role.BOOLEAN, "bool", bytes((value,)), path)
                case "uuid":
                    self.put(Role.NUMBER, "uuid", value.bytes, path)
                case "rest":
                    self.put(Role.BYTES, "rest", value, path)
                case "utf16":
                    data = value.encode("utf-16-be")
                    self.sized(Role.TEXT, "utf16", "int32", data, path, nullable)
                case "utf":
                    data = java_utf(value)
                    self.sized(Role.TEXT, "utf", "uint16", data, path, nullable)
                case "string":
                    data = None if value is None else value.encode()
                    form = "uvarint" if slot.compact else "int16"
                    self.sized(Role.TEXT, "string", form, data, path, nullable)
                case _:
                    form = "uvarint" if slot.compact else "int32"
                    self.sized(Role.BYTES, slot.type, form, value, path, nullable)

    def sized(self, role: Role, kind: str, form: str, data: bytes | None, path: Path, nullable: bool) -> None:
        length = None if data is None else len(data) // 2 if kind == "utf16" else len(data)
        at = self.measure(Role.LENGTH, form, length, path, nullable)
        if data is not None:
            self.put(role, kind, data, path)
        self.close(at)

    def tags(self, layout: Layout, value: Mapping[str, Any], path: Path) -> None:
        known = [(slot, value[slot.name]) for slot in layout.tagged if value[slot.name] != slot.fresh()]
        fields = [(slot.tag or 0, _payload(slot, each, (*path, slot.name)), (*path, slot.name)) for slot, each in known]
        numbers = {tag for tag, _, _ in fields}
        for each in value.get(UNKNOWN_TAGS, ()):
            encoder = _MappingEncoder(inside=self.inside)
            encoder.put(Role.BYTES, "tag", each["data"], path)
            fields.append((each["tag"], encoder, path))
        fields.sort(key=lambda field: field[0])
        count = self.put(Role.TAG_COUNT, "uvarint", uvarint(len(fields)), path)
        starts = []
        for tag, encoder, where in fields:
            starts.append(len(self.out))
            self.put(Role.TAG, "uvarint", uvarint(tag), where, known=tag in numbers)
            self.put(Role.TAG_SIZE, "uvarint", uvarint(len(encoder.out)), where, known=tag in numbers)
            self.take(encoder)
        tags = tuple(tag for tag, _, _ in fields)
        self.sections.append(Section(layout, path, count, tags, (*starts, len(self.out)), self.inside))

    def take(self, other: "_MappingEncoder") -> None:
        """Appends what the other encoder wrote."""
        base = len(self.out)
        self.out += other.out
        self.regions += (replace(region, offset=region.offset + base) for region in other.regions)
        self.sections += (
            replace(
                section,
                count=replace(section.count, offset=section.count.offset + base),
                starts=tuple(start + base for start in section.starts),
            )
            for section in other.sections
        )


def _payload(slot: Slot, value: Any, path: Path) -> _MappingEncoder:
    """The data of a tagged field."""
    encoder = _MappingEncoder(inside=True)
    if slot.item is None or slot.array:
        encoder.slot(slot, value, path)
    elif not slot.nullable:
        encoder.struct(slot.item, value, path)
    else:
        encoder.put(Role.PRESENCE, "uvarint", uvarint(int(value is not None)), path)
        if value is not None:
            encoder.struct(slot.item, value, path)
    return encoder


def java_utf(text: str) -> bytes:
    """Modified UTF-8: each UTF-16 unit separately, and NUL in two bytes (``java.io.DataOutput``)."""
    units = text.encode("utf-16-be")
    pairs = (chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))
    return b"".join(b"\xc0\x80" if unit == "\0" else unit.encode("utf-8", "surrogatepass") for unit in pairs)
