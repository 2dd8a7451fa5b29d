"""The stream of the construct decoder: its position, the path of the current field, and the map of what was read."""

import io
from typing import Any

from kipcheck.conformance.wire.byte_map import ByteMap, Role, Span
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import path_of
from kipcheck.conformance.wire.schema import Layout, Slot


class Tape(io.BytesIO):
    """Bytes being read or written, with the path of the current field."""

    def __init__(
        self,
        layout: Layout,
        data: bytes = b"",
        lenient: bool = False,
        found: ByteMap | None = None,
        writing: bool = False,
    ):
        super().__init__(data)
        self.layout = layout
        self.lenient = lenient
        self.found = found
        self.end = self.size = len(data)
        """Where reading must stop: the end of the bytes, or of the current tagged field."""
        self.steps: list[str | int] = []
        """Names and indices down to the current field; unchanged when reading fails."""
        self.owners: list[str] = []
        self.writing = writing
        self.inside = False
        """Whether a known tagged field is being read."""
        led = layout.prefix is not None and layout.prefix.name is not None
        self.limited = lenient and not led
        """Whether ``Limits`` apply: they are those of kafka-clients; no release of Streams has them."""

    @property
    def left(self) -> int:
        return self.end - self.tell()

    @property
    def path(self) -> str:
        return path_of(self.steps)

    def refused(self, kind: str, why: str, offset: int | None = None) -> Refused:
        """The refusal of the current field, to be raised; ``offset`` defaults to the current position."""
        where = None if self.writing else self.tell() if offset is None else offset
        return Refused(
            kind, why, message=self.layout.message, version=self.layout.version, path=self.path, offset=where
        )

    def need(self, size: int, what: str, offset: int | None = None) -> None:
        """Errors: ``Refused`` unless ``size`` more bytes remain."""
        if size > self.left:
            kind, whose = ("truncated", "") if self.end == self.size else ("tag", " in the tagged field")
            raise self.refused(kind, f"{what}, {self.left or 'none'} left{whose}", offset)

    @property
    def edge(self) -> str:
        return "the end" if self.end == self.size else "the end of the tagged field"

    def varint(self) -> int:
        """An unsigned varint: seven bits per byte, lowest first, 32 bits at most.

        Strict: in its shortest form. Lenient: up to five bytes long, and bits above 32 are lost.
        Errors: ``Refused``.
        """
        start, number = self.tell(), 0
        for shift in range(0, 35, 7):
            self.need(1, "a varint goes on" if shift else "a varint is wanted", start)
            byte = self.read(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise self.refused("varint", "a varint of more than five bytes", start)
        if self.lenient:
            return number & 0xFFFF_FFFF
        if number > 0xFFFF_FFFF:
            raise self.refused("varint", "a varint of more than 32 bits", start)
        if byte == 0 and self.tell() - start > 1:
            raise self.refused("varint", f"{number} in {self.tell() - start} bytes, more than it needs", start)
        return number

    def record(
        self, start: int, role: Role, form: str, value: Any, slot: Slot | None = None, end: int | None = None
    ) -> None:
        """Adds the bytes from ``start`` to ``end``, by default the current position, to the map, if there is one."""
        if self.found is not None:
            size = (self.tell() if end is None else end) - start
            owner = self.owners[-1] if self.owners else self.layout.message
            self.found.spans.append(Span(start, size, role, form, tuple(self.steps), value, slot, owner, self.inside))

    def record_end(self, start: int) -> None:
        """Adds the current position as the end of what the length or count at ``start`` counts, if there is a map."""
        if self.found is not None:
            self.found.ends[start] = self.tell()


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def shown(value: Any) -> str:
    """For an error message: the value's type, and the value if it is short."""
    text = repr(value)[:40] if isinstance(value, bool | float | str | None) else ""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 80:
        text = str(value)
    return f"{type(value).__name__} {text}".strip() if value is not None else "null"
