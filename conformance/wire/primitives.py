"""Scalars on the wire, as in Kafka's ``Readable``, ``Writable`` and ``ByteUtils``; and ``java.io`` text."""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from uuid import UUID

FORMATS: Final = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d"}
"""Format codes of ``struct``; all values are big-endian."""

BOUNDS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
}

LONGEST_STRING: Final = 2**15 - 1
"""In bytes of UTF-8: the limit of generated writers, and of readers of compact strings."""

LONGEST_UTF: Final = 2**16 - 1
"""In bytes of modified UTF-8."""

LARGEST_SIZE: Final = 2**31 - 1
"""Of sizes, counts and tags, which are ints in Java."""

UNKNOWN: Final = "_unknownTaggedFields"


class Rough(ValueError):
    """A refusal by compiled code: class and path without indexes. A second decoder locates it."""

    def __init__(self, kind: str, path: str = "") -> None:
        super().__init__(kind, path)
        self.kind = kind
        self.path = path


MANY: Final = 127
"""From this number of elements on, no function is cached. The compact length of fewer is one byte."""


class Table(dict[int, Any]):
    """Number of elements -> a function that codes them all at once; created when missing, cached below ``MANY``."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Any:
        made = self._make(number)
        if number < MANY:
            self[number] = made
        return made


@cache
def int16_lengths() -> list[bytes]:
    """By length: the bytes before a string that is not compact."""
    return [length.to_bytes(2, "big") for length in range(LONGEST_STRING + 1)]


@cache
def int32_lengths() -> list[bytes]:
    """By length: the bytes before short bytes and arrays that are not compact."""
    return [int32_length(length) for length in range(1024)]


@cache
def compact_lengths() -> list[bytes]:
    """By length: the bytes before a compact string, and before bytes and arrays up to that length."""
    return [compact_length(length) for length in range(LONGEST_STRING + 1)]


def int32_length(length: int) -> bytes:
    return length.to_bytes(4, "big")


def compact_length(length: int) -> bytes:
    return uvarint(length + 1)


def uvarint(number: int) -> bytes:
    """The shortest varint of ``number``, which has at most 32 bits."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, in its shortest form, and its end. Errors: Rough; IndexError at the end of the bytes."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    number, shift = first & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise Rough("varint")
    if byte == 0 or number > 0xFFFF_FFFF:
        raise Rough("varint")
    return number, at + 1


def modified_utf8(text: str) -> bytes:
    """Encodes as ``DataOutput.writeUTF``: NUL in two bytes, characters past U+FFFF as two surrogates of three bytes.

    Errors: UnicodeEncodeError for a lone surrogate, which is not text.
    """
    plain = text.encode()
    if b"\0" in plain:
        plain = plain.replace(b"\0", b"\xc0\x80")
    if not plain or max(plain) < 0xF0:
        return plain
    return (
        "".join(_pair(each) if each > "\uffff" else each for each in text)
        .encode("utf-8", "surrogatepass")
        .replace(b"\0", b"\xc0\x80")
    )


def _pair(character: str) -> str:
    above = ord(character) - 0x1_0000
    return chr(0xD800 + (above >> 10)) + chr(0xDC00 + (above & 0x3FF))


def read_modified_utf8(data: bytes) -> str:
    """Decodes only the form that ``modified_utf8`` writes. Errors: UnicodeError."""
    if data.isascii():
        if b"\0" in data:
            raise Rough("text")
        return data.decode("ascii")
    text = units(data)
    plain = join_surrogates(text)
    if modified_utf8(plain) != data:  # an over-long form, or a bare NUL
        raise Rough("text")
    return plain


def units(data: bytes) -> str:
    """The UTF-16 units that ``DataInput.readUTF`` reads: over-long forms too, and each surrogate separately.

    Errors: Rough.
    """
    out: list[str] = []
    at, end = 0, len(data)
    while at < end:
        first = data[at]
        if first < 0x80:
            size, unit = 1, first
        elif first >> 5 == 0b110:
            size, unit = 2, first & 0x1F
        elif first >> 4 == 0b1110:
            size, unit = 3, first & 0x0F
        else:
            raise Rough("text")
        tail = data[at + 1 : at + size]
        if len(tail) != size - 1:
            raise Rough("text")
        for byte in tail:
            if byte & 0xC0 != 0x80:
                raise Rough("text")
            unit = unit << 6 | byte & 0x3F
        out.append(chr(unit))
        at += size
    return "".join(out)


def join_surrogates(text: str) -> str:
    """Joins pairs of surrogates; lone surrogates stay as Python's surrogate code points."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


_Safe = type(UUID(int=0).is_safe)
_set_int = UUID.int.__set__  # type: ignore[attr-defined, misc]
_set_safe = UUID.is_safe.__set__  # type: ignore[attr-defined, misc]


def uuid_of(data: bytes) -> UUID:
    """``UUID(bytes=data)`` for 16 bytes, without its checks, which cost five times as much as the work."""
    made = UUID.__new__(UUID)
    _set_int(made, int.from_bytes(data, "big"))
    _set_safe(made, _Safe.unknown)
    return made


def unpackers(codes: str) -> Table:
    """By count: ``unpack_from`` for that many repetitions of ``codes``."""
    return Table(lambda count: struct.Struct(times(codes, count)).unpack_from)


def packers(codes: str, ahead: str = "") -> Table:
    """By count: ``pack`` for that many repetitions of ``codes``."""
    return Table(lambda count: struct.Struct(times(codes, count, ahead)).pack)


def times(codes: str, count: int, ahead: str = "") -> str:
    """The format of ``count`` repetitions. One code after a number is faster than the code repeated."""
    if codes == codes[0] * len(codes):
        return f">{ahead}{count * len(codes)}{codes[0]}"
    return f">{ahead}{codes * count}"
