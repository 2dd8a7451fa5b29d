"""Decodes what Kafka's own readers accept, to the values that they read.

====================  ========================================================================  ====================
what                  rule                                                                      class that sets it
====================  ========================================================================  ====================
bytes after the end   ignored                                                                   generated ``read``
boolean               any byte but 0 is true                                                    generated ``read``
length, not compact   any negative one is null; refused where there is no null                  generated ``read``
length, compact       an unsigned varint as a signed int, minus 1, wrapping; negative is null   generated ``read``
string                at most 32767 bytes; invalid UTF-8 becomes U+FFFD                         generated ``read``
bytes, string         more than is left is refused                                              ByteBufferAccessor
array                 a count above the number of bytes left is refused                         generated ``read``
unsigned varint       at most 5 bytes, not always the fewest; bits above 32 are dropped         ByteUtils
number of tags        as a signed int: a negative one means none                                generated ``read``
known tag             in any order, the last one counts; its size is read and ignored           generated ``read``
unknown tag           in any order, kept, twice too; a size below 0 or past the end is refused  Readable
tag of a field that   refused (``Layout.reserved``)                                             generated ``read``
other versions have
nullable struct       a negative byte is null; after any other the struct follows               generated ``read``
leading int16         of the consumer protocol: any higher version reads as the newest one      ConsumerProtocol
limits                more than 1,000,000 elements or 10,000 tags, or a negative number of      Readable of 4.2.2
                      tags, is refused (``Layout.limits``)                                      and 4.4.0
Streams assignment    ``DataInput``: modified UTF-8, over-long forms and lone surrogates too;   AssignmentInfo
                      a negative count is refused, but that of UTF-16 units means none
====================  ========================================================================  ====================

Readers of Streams up to 4.3.0 accept more: see ``quirks``.

A Streams subscription is decoded as by the generated class inside ``SubscriptionInfo``. Its further checks of the two
version numbers (from 2.5 on the second must not be below the first) concern their meaning and are not made here.

Tags are shown as on the wire, unsigned. Lone surrogates are kept as Python's surrogate code points. Such values cannot
be encoded: no generated writer accepts such tags, and encoded text is valid UTF-8.
"""

import re
import struct
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from kipcheck.conformance.wire import primitives
from kipcheck.conformance.wire.errors import CLASSES, Entries, Refused
from kipcheck.conformance.wire.quirks import as_read, with_all_fields
from kipcheck.conformance.wire.schema import Layout, Slot

ROUGH = (primitives.Rough, struct.error)
"""The exceptions that these readers raise on bytes that they refuse."""


class Buffer:
    """A ``ByteBufferAccessor``: bytes, and the current position."""

    __slots__ = ("at", "data", "end", "entries")

    def __init__(self, data: bytes, entries: Entries | None = None) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.entries = entries
        """Those that are still accepted; None: any number."""

    def number(self, form: struct.Struct) -> Any:
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.end - self.at:
            raise primitives.Rough("length")
        start = self.at
        self.at += size
        return self.data[start : self.at]

    def uvarint(self) -> int:
        """A signed 32-bit int, as in Java."""
        number = shift = 0
        while True:
            if self.at >= self.end:
                raise primitives.Rough("truncated")
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise primitives.Rough("varint")
        return _int32(number)


Read: TypeAlias = Callable[[Buffer], Any]


class DecodeLenient(Protocol):
    def __call__(self, data: bytes, /, entries: Entries | None = None) -> dict[str, Any]: ...


def lenient(layout: Layout, locate: Callable[[bytes, Exception], Exception]) -> DecodeLenient:
    """A function of bytes-like data. ``locate`` converts a failure to the exception to raise."""
    readable = as_read(layout)
    read = _struct(readable)
    ahead = _prefix(layout)

    def decode(data: bytes, /, entries: Entries | None = None) -> dict[str, Any]:
        if type(data) is not bytes:
            data = bytes(memoryview(data))
        buffer = Buffer(data, entries)
        try:
            value: dict[str, Any] = ahead(buffer)
            value |= read(buffer)
        except ROUGH as failure:
            rough = failure.with_traceback(None)  # in which this frame is, so that a collection would have to free both
        else:
            return value if readable is layout else with_all_fields(layout, value)
        raise locate(data, rough)

    return decode


def read_first(layout: Layout, data: bytes, entries: Entries) -> tuple[dict[str, Any], int]:
    """The value at the start of bytes, and its size. Errors: ``Refused``, without an offset; ``TooManyEntries``."""
    buffer = Buffer(data, entries)
    try:
        return _struct(layout)(buffer), buffer.at
    except ROUGH as failure:
        kind = failure.kind if isinstance(failure, primitives.Rough) else "truncated"
        raise Refused(kind, CLASSES[kind], message=layout.message, version=layout.version) from None


def _prefix(layout: Layout) -> Callable[[Buffer], dict[str, Any]]:
    if layout.prefix is None:
        return lambda buffer: {}
    form, name = struct.Struct(">" + primitives.FORMATS[layout.prefix.type]), layout.prefix.name
    higher = layout.newest and layout.message.startswith("ConsumerProtocol")

    def read(buffer: Buffer) -> dict[str, Any]:
        version = buffer.number(form)
        if version != layout.version and not (higher and version > layout.version):
            raise primitives.Rough("version", name or "")
        return {name: version} if name else {}

    return read


def _struct(layout: Layout) -> Read:
    plain = [(slot.name, _slot(layout, slot)) for slot in layout.untagged]
    if not layout.flexible:
        return lambda buffer: {name: read(buffer) for name, read in plain}
    tagged = {slot.tag: (slot.name, _slot(layout, slot, tagged=True)) for slot in layout.tagged}
    names, reserved = [slot.name for slot in layout.slots], layout.reserved
    limit = layout.limits.tags if layout.limits else None

    def read_struct(buffer: Buffer) -> dict[str, Any]:
        found = {name: read(buffer) for name, read in plain}
        unknown = []
        count = buffer.uvarint()
        if limit is not None and not 0 <= count <= limit:
            raise primitives.Rough("length")
        if buffer.entries is not None:
            buffer.entries.take(max(count, 0))
        for _ in range(count):
            tag, size = buffer.uvarint(), buffer.uvarint()
            if tag in tagged:
                name, read = tagged[tag]
                found[name] = read(buffer)
            elif tag in reserved:
                raise primitives.Rough("tag")
            else:
                unknown.append({"tag": tag & 0xFFFF_FFFF, "data": buffer.take(size)})
        for slot in layout.tagged:
            if slot.name not in found:
                found[slot.name] = slot.fresh()
        value = {name: found[name] for name in names}
        if unknown:
            value[primitives.UNKNOWN] = unknown
        return value

    return read_struct


def _slot(layout: Layout, slot: Slot, tagged: bool = False) -> Read:
    if slot.array:
        return _array(layout, slot)
    if slot.item is not None and slot.nullable:
        return _nullable_struct(slot.item, tagged)
    return _one(slot)


def _nullable_struct(item: Layout, tagged: bool) -> Read:
    read = _struct(item)
    here: Read = (lambda buffer: buffer.uvarint() > 0) if tagged else (lambda buffer: buffer.number(_INT8) >= 0)
    return lambda buffer: read(buffer) if here(buffer) else None


def _one(slot: Slot) -> Read:
    if slot.item is not None:
        return _struct(slot.item)
    if slot.type in primitives.FORMATS:
        form = struct.Struct(">" + primitives.FORMATS[slot.type])
        return lambda buffer: buffer.number(form)
    match slot.type:
        case "bool":
            return lambda buffer: buffer.number(_INT8) != 0
        case "uuid":
            return lambda buffer: primitives.uuid_of(buffer.take(16))
        case "rest":
            return lambda buffer: buffer.take(buffer.end - buffer.at)
        case "utf":
            return lambda buffer: primitives.join_surrogates(primitives.units(buffer.take(buffer.number(_UINT16))))
        case "utf16":
            return _utf16
        case "string":
            return _sized(slot, _length(slot, _INT16), java_text, primitives.LONGEST_STRING)
        case _:
            return _sized(slot, _length(slot, _INT32), bytes, None)


def _sized(slot: Slot, length: Read, make: Callable[[bytes], Any], most: int | None) -> Read:
    def read(buffer: Buffer) -> Any:
        size = length(buffer)
        if size < 0:
            if slot.nullable:
                return None
            raise primitives.Rough("null", slot.name)
        if most is not None and size > most:
            raise primitives.Rough("length", slot.name)
        return make(buffer.take(size))

    return read


def _array(layout: Layout, slot: Slot) -> Read:
    length = _length(slot, _INT32)
    read = _one(Slot(slot.name, slot.type, slot.item, compact=slot.compact))
    streams = layout.prefix is not None and layout.prefix.name is not None  # no release of Streams has limits
    limit = layout.limits.elements if layout.limits and not streams else None

    def read_array(buffer: Buffer) -> Any:
        count = length(buffer)
        if count < 0:
            if slot.nullable:
                return None
            raise primitives.Rough("null", slot.name)
        if count > buffer.end - buffer.at or (limit is not None and count > limit):
            raise primitives.Rough("length", slot.name)
        if buffer.entries is not None:
            buffer.entries.take(count)
        return [read(buffer) for _ in range(count)]

    return read_array


def _length(slot: Slot, form: struct.Struct) -> Read:
    if slot.compact:
        return lambda buffer: _int32(buffer.uvarint() - 1)
    return lambda buffer: buffer.number(form)


def _utf16(buffer: Buffer) -> str:
    count = max(0, buffer.number(_INT32))
    return buffer.take(count * 2).decode("utf-16-be", "surrogatepass")


def java_text(data: bytes) -> str:
    """Decodes like ``new String(data, UTF_8)``: one U+FFFD for each longest prefix of an encoded character.

    Python does the same, except that it replaces each byte of an encoded surrogate, and Java the whole.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", data).decode(errors="replace")


def _int32(number: int) -> int:
    return (number & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_INT8, _INT16, _INT32, _UINT16 = (struct.Struct(">" + code) for code in "bhiH")
