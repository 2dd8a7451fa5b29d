"""Text encodings of the construct decoder: UTF-8, the modified UTF-8 of ``java.io.DataOutput``, and UTF-16."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kipcheck.conformance.wire.constructs.tape import Tape

Read: TypeAlias = Callable[[bytes, Tape, int], str]
Write: TypeAlias = Callable[[str, Tape], bytes]


def read_utf8(raw: bytes, tape: Tape, offset: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as wrong:
        if not tape.lenient:
            raise tape.refused("text", f"byte {raw[wrong.start]:02x} is no UTF-8 here", offset + wrong.start) from None
    # Java replaces a whole encoded surrogate by one U+FFFD, Python each of its bytes.
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", raw).decode(errors="replace")


def write_utf8(text: str, tape: Tape) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise tape.refused("text", "half a surrogate pair has no UTF-8") from None


def read_modified(raw: bytes, tape: Tape, offset: int) -> str:
    """Errors: ``Refused`` for invalid modified UTF-8; in strict mode also for a form that the writer does not use."""
    if raw.isascii() and 0 not in raw:
        return raw.decode("ascii")
    units = bytearray()
    at = 0
    while at < len(raw):
        found = _MODIFIED.match(raw, at)
        if not found:
            raise tape.refused("text", f"byte {raw[at]:02x} is no modified UTF-8 here", offset + at)
        first, *more = found[0]
        unit = first & (0x7F, 0x1F, 0x0F)[len(more)]
        for byte in more:
            unit = unit << 6 | byte & 0x3F
        if not tape.lenient and len(found[0]) != _modified_size(unit):
            raise tape.refused("text", f"{found[0].hex()} is not how modified UTF-8 writes U+{unit:04X}", offset + at)
        units += unit.to_bytes(2, "big")
        at = found.end()
    return _units(bytes(units), tape, offset)


_MODIFIED: Final = re.compile(rb"[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")


def _modified_size(unit: int) -> int:
    return 1 if 0 < unit < 0x80 else 2 if unit < 0x800 else 3


def write_modified(text: str, tape: Tape) -> bytes:
    raw = bytearray()
    units = write_utf16(text, tape)
    for at in range(0, len(units), 2):
        unit = int.from_bytes(units[at : at + 2], "big")
        match _modified_size(unit):
            case 1:
                raw.append(unit)
            case 2:
                raw += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
            case _:
                raw += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(raw)


def read_utf16(raw: bytes, tape: Tape, offset: int) -> str:
    return _units(raw, tape, offset)


def write_utf16(text: str, tape: Tape) -> bytes:
    try:
        return text.encode("utf-16-be")
    except UnicodeEncodeError:
        raise tape.refused("text", "half a surrogate pair is no text") from None


def _units(raw: bytes, tape: Tape, offset: int) -> str:
    """Java keeps lone surrogates, and so does lenient decoding."""
    try:
        return raw.decode("utf-16-be", "surrogatepass" if tape.lenient else "strict")
    except UnicodeDecodeError:
        raise tape.refused("text", "half a surrogate pair", offset) from None


TEXTS: Final[Mapping[str, tuple[Read, Write]]] = {
    "string": (read_utf8, write_utf8),
    "utf": (read_modified, write_modified),
    "utf16": (read_utf16, write_utf16),
}
