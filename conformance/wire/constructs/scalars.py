"""Scalars and texts, with a table of primitives from construct, which is independent of the codec's."""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import construct as c

from kipcheck.conformance.wire.byte_map import Role
from kipcheck.conformance.wire.constructs.tape import Tape, counted, shown
from kipcheck.conformance.wire.constructs.texts import TEXTS
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Slot

if TYPE_CHECKING:
    Piece: TypeAlias = c.Construct[Any, Any]
else:
    Piece = c.Construct

NUMBERS: Final[Mapping[str, Piece]] = {
    "int8": c.Int8sb,
    "int16": c.Int16sb,
    "int32": c.Int32sb,
    "int64": c.Int64sb,
    "uint16": c.Int16ub,
    "float64": c.Float64b,
}
SIZES: Final = {kind: piece.sizeof() for kind, piece in NUMBERS.items()}
LENGTHS: Final = {"string": "int16", "bytes": "int32", "records": "int32", "utf": "uint16", "utf16": "int32"}
"""The type of the length in front, where it is not a varint."""
MOST: Final = 0x7FFF_FFFF
LONGEST: Final = {"string": 0x7FFF, "utf": 0xFFFF}


class Part(Piece):
    """Part of a message: reads from a tape and writes to one."""

    least = 1
    """The least number of bytes it can take."""

    def take(self, tape: Tape) -> Any:
        """The value at the current position. Errors: ``Refused``."""
        raise NotImplementedError

    def put(self, value: Any, tape: Tape) -> None:
        """Errors: ``Refused``."""
        raise NotImplementedError

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self.take(stream)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        self.put(value, stream)
        return value


def _taken(piece: Any, tape: Tape) -> Any:
    return piece._parse(tape, None, "")


def _put(piece: Any, value: Any, tape: Tape) -> None:
    piece._build(value, tape, None, "")


class Number(Part):
    def __init__(self, slot: Slot):
        super().__init__()
        self.slot = slot
        self.least = SIZES[slot.type]

    def take(self, tape: Tape) -> int | float:
        start = tape.tell()
        value: int | float = take_number(self.slot.type, self.slot.type, tape)
        tape.record(start, Role.NUMBER, self.slot.type, value, self.slot)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        put_number(self.slot.type, value, tape)


class Truth(Part):
    def __init__(self, slot: Slot):
        super().__init__()
        self.slot = slot

    def take(self, tape: Tape) -> bool:
        start = tape.tell()
        tape.need(1, "bool takes 1 byte")
        value: int = _taken(c.Byte, tape)
        if value > 1 and not tape.lenient:
            raise tape.refused("boolean", f"{value} where 0 or 1 is wanted", start)
        tape.record(start, Role.BOOLEAN, "bool", bool(value), self.slot)
        return bool(value)

    def put(self, value: Any, tape: Tape) -> None:
        if not isinstance(value, bool):
            raise _wrong_type(value, "true or false", tape)
        _put(c.Flag, value, tape)


class Unique(Part):
    least = 16

    def __init__(self, slot: Slot):
        super().__init__()
        self.slot = slot

    def take(self, tape: Tape) -> uuid.UUID:
        start = tape.tell()
        tape.need(16, "uuid takes 16 bytes")
        value = uuid.UUID(bytes=_taken(c.Bytes(16), tape))
        tape.record(start, Role.NUMBER, "uuid", value, self.slot)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        if not isinstance(value, uuid.UUID):
            raise _wrong_type(value, "a uuid", tape)
        _put(c.Bytes(16), value.bytes, tape)


class Sized(Part):
    """A length, then that many bytes or units: text, bytes, records, and the two text types of Streams."""

    def __init__(self, slot: Slot):
        super().__init__()
        self.slot = slot
        self.role = Role.BYTES if slot.type in ("bytes", "records") else Role.TEXT
        self.length = "uvarint" if slot.compact else LENGTHS[slot.type]
        self.least = 1 if slot.compact else SIZES[self.length]
        self.unit = 2 if slot.type == "utf16" else 1
        self.most = LONGEST.get(slot.type, MOST)
        self.text = None if self.role is Role.BYTES else TEXTS[slot.type]

    def take(self, tape: Tape) -> bytes | str | None:
        start = tape.tell()
        length = take_length(self.length, self.slot, tape)
        if length is None:
            tape.record(start, Role.LENGTH, self.length, None, self.slot)
            return None
        if length > self.most:
            raise tape.refused("length", f"length {length} where at most {self.most} may be", start)
        if length * self.unit > tape.left:
            past = length * self.unit - tape.left
            raise tape.refused("length", f"length {length} runs {past} past {tape.edge}", start)
        begin = tape.tell()
        raw: bytes = _taken(c.Bytes(length * self.unit), tape)
        value = raw if self.text is None else self.text[0](raw, tape, begin)
        tape.record(start, Role.LENGTH, self.length, length, self.slot, begin)
        tape.record(begin, self.role, self.slot.type, value, self.slot)
        tape.record_end(start)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        if value is None:
            if not self.slot.nullable:
                raise tape.refused("null", f"null where a {self.slot.type} is wanted")
            put_length(self.length, None, tape)
            return
        if self.text is None:
            if not isinstance(value, bytes | bytearray | memoryview):
                raise _wrong_type(value, "bytes", tape)
            raw = bytes(value)
        else:
            if not isinstance(value, str):
                raise _wrong_type(value, "text", tape)
            raw = self.text[1](value, tape)
        if len(raw) > self.most * self.unit:
            raise tape.refused("length", f"{len(raw)} bytes where at most {self.most} may be")
        put_length(self.length, len(raw) // self.unit, tape)
        _put(c.GreedyBytes, raw, tape)


class Rest(Part):
    """All remaining bytes."""

    least = 0

    def __init__(self, slot: Slot):
        super().__init__()
        self.slot = slot

    def take(self, tape: Tape) -> bytes:
        start = tape.tell()
        value: bytes = _taken(c.Bytes(tape.left), tape)
        tape.record(start, Role.BYTES, "rest", value, self.slot)
        return value

    def put(self, value: Any, tape: Tape) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong_type(value, "bytes", tape)
        _put(c.GreedyBytes, bytes(value), tape)


def take_number(kind: str, what: str, tape: Tape) -> Any:
    """Errors: ``Refused`` where fewer bytes remain than ``what`` takes."""
    size = SIZES[kind]
    tape.need(size, f"{what} takes {counted(size, 'byte')}")
    return _taken(NUMBERS[kind], tape)


def put_number(kind: str, value: Any, tape: Tape) -> None:
    """Errors: ``Refused`` unless ``value`` is a number of that type."""
    wanted = float | int if kind == "float64" else int
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise _wrong_type(value, kind, tape)
    try:
        _put(NUMBERS[kind], value, tape)
    except c.FormatFieldError:
        raise tape.refused("range", f"{shown(value)} is out of the range of {kind}") from None


def _wrong_type(value: Any, wanted: str, tape: Tape) -> Refused:
    return tape.refused("null" if value is None else "type", f"{shown(value)} where {wanted} is wanted")


def put_varint(number: int, tape: Tape) -> None:
    _put(c.VarInt, number, tape)


def take_length(kind: str, slot: Slot, tape: Tape) -> int | None:
    """The length of a text, bytes or an array; None for null. Errors: ``Refused``."""
    start = tape.tell()
    if kind == "uvarint":
        number = tape.varint()
        # Kafka subtracts one in 32 bits and takes a negative result as null.
        length = -1 if tape.lenient and number > MOST + 1 else number - 1
    else:
        length = take_number(kind, f"{kind} length", tape)
    if length >= 0:
        return length
    if tape.lenient and slot.type == "utf16" and not slot.array:
        return 0
    if length < -1 and not tape.lenient:
        raise tape.refused("length", f"length {length}", start)
    if not slot.nullable:
        raise tape.refused("null", "null where the field has none", start)
    return None


def put_length(kind: str, length: int | None, tape: Tape) -> None:
    if kind == "uvarint":
        put_varint(0 if length is None else length + 1, tape)
    else:
        put_number(kind, -1 if length is None else length, tape)
