"""The stream of the construct decoder: its position, the path of the current field, and notes of what was read."""

import io
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, Slot


class Role(Enum):
    """The purpose of some bytes."""

    FIELD = "a field, with the length that leads it"
    COUNT = "how many elements follow"
    PRESENCE = "whether a struct follows"
    VERSION = "the version that leads the bytes"
    TAGS = "how many tagged fields follow"
    TAG = "the number of a tagged field"
    SIZE = "how many bytes a tagged field takes"
    UNKNOWN = "the bytes of a tagged field that the layout does not know"


@dataclass(frozen=True, slots=True)
class Note:
    """Some bytes that were read, and their interpretation."""

    offset: int
    lead: int
    """How many of the bytes are the length in front."""
    size: int
    path: str
    type: str
    """The type as laid out: ``compact nullable string``."""
    value: Any
    role: Role
    slot: Slot | None
    """The field that the bytes belong to; None for bytes of no field."""
    owner: str
    """The message or struct that declares the field."""


class Tape(io.BytesIO):
    """Bytes being read or written, with the path of the current field."""

    def __init__(
        self,
        layout: Layout,
        data: bytes = b"",
        lenient: bool = False,
        notes: list[Note] | None = None,
        writing: bool = False,
    ):
        super().__init__(data)
        self.layout = layout
        self.lenient = lenient
        self.notes = notes
        self.end = self.size = len(data)
        """Where reading must stop: the end of the bytes, or of the current tagged field."""
        self.steps: list[str | int] = []
        """Names and indices down to the current field; unchanged when reading fails."""
        self.owners: list[str] = []
        self.writing = writing
        led = layout.prefix is not None and layout.prefix.name is not None
        self.limited = lenient and not led
        """Whether ``Limits`` apply: they are those of kafka-clients; no release of Streams has them."""

    @property
    def left(self) -> int:
        return self.end - self.tell()

    @property
    def path(self) -> str:
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".")

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

    def note(
        self, offset: int, type: str, value: Any, role: Role = Role.FIELD, slot: Slot | None = None, lead: int = 0
    ) -> None:
        """Notes what was read from ``offset`` to the current position, if notes are kept."""
        if self.notes is not None:
            owner = self.owners[-1] if self.owners else self.layout.message
            self.notes.append(Note(offset, lead, self.tell() - offset, self.path, type, value, role, slot, owner))


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def shown(value: Any) -> str:
    """For an error message: the value's type, and the value if it is short."""
    text = repr(value)[:40] if isinstance(value, bool | float | str | None) else ""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 80:
        text = str(value)
    return f"{type(value).__name__} {text}".strip() if value is not None else "null"
