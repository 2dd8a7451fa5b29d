"""The kinds of damage: the places in the bytes of a value where each applies, and the outcomes a reader may have."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kipcheck.conformance.wire.byte_map import ByteMap, Role, Section, Span
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.primitives import UNKNOWN, uvarint
from kipcheck.strategies.messages import LAST_TAG

FLOOD = 200_000
"""Bytes: far more than any message here, and still cheap for a reader that is linear in time and memory."""
EVERY_CUT = 256
"""A message up to this size is cut at each byte."""
MANY_TAGS = 10_001
"""One more than some releases accept (``kipcheck.conformance.wire.schema.Limits``)."""


class Outcome(Enum):
    REFUSE = "must refuse"
    EITHER = "may refuse or accept, but neither crash, hang nor take much memory"
    ACCEPT = "must accept"


class Edit(NamedTuple):
    """Replaces ``removed`` bytes by ``patch``."""

    offset: int
    removed: int
    patch: bytes

    @property
    def growth(self) -> int:
        return len(self.patch) - self.removed


class Corruption(NamedTuple):
    """Damage that is not applied yet: cheap, so that all of it can be listed."""

    kind: str
    outcome: Outcome
    path: Path
    edits: tuple[Edit, ...]
    """In order of their offsets."""
    tags: tuple[tuple[int, bytes], ...] = ()
    """Unknown tagged fields that it adds to the struct at ``path``."""


Find = Callable[[ByteMap], Iterator[Corruption]]


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    sentence: str
    outcome: Outcome
    """The usual outcome; where a reader may know less or more than the layout, a wound of this kind has ``EITHER``."""
    find: Find
    heavy: bool = False
    """Creates hundreds of kilobytes."""


KINDS: dict[str, Kind] = {}


def _kind(name: str, outcome: Outcome, sentence: str, *, heavy: bool = False) -> Callable[[Find], Find]:
    def register(find: Find) -> Find:
        KINDS[name] = Kind(name, sentence, outcome, find, heavy)
        return find

    return register


def _at(kind: str, span: Span, patch: bytes, removed: int | None = None, outcome: Outcome | None = None) -> Corruption:
    """One edit at a span. A reader that does not know a tag need not check what is inside."""
    outcome = outcome or (Outcome.EITHER if span.inside else KINDS[kind].outcome)
    return Corruption(
        kind, outcome, _path(span), (Edit(span.offset, span.size if removed is None else removed, patch),)
    )


# Must refuse


@_kind("prefix", Outcome.REFUSE, "The bytes end too early.")
def _prefixes(mapped: ByteMap) -> Iterator[Corruption]:
    size = len(mapped.data)
    for span in mapped.spans:
        path, inside = _path(span), range(span.offset, span.end)
        around = {*inside[:2], *inside[-1:]}
        for cut in inside if size <= EVERY_CUT else sorted(around):
            yield Corruption("prefix", Outcome.REFUSE, path, (Edit(cut, size - cut, b""),))


@_kind("length", Outcome.REFUSE, "A length or count runs past the end of the bytes.")
def _lengths(mapped: ByteMap) -> Iterator[Corruption]:
    size = len(mapped.data)
    for span in _of(mapped, Role.LENGTH, Role.COUNT):
        left = size - span.end
        # UTF-16 units take two bytes each, so any count above the remaining bytes is too large in bytes as well.
        for number in (left + 1, *_HUGE[span.form]):
            if left < number <= _LARGEST[span.form]:
                yield _at("length", span, _number(span.form, number, bias=1))
        if span.form == "uvarint" and not span.nullable:
            yield _at("length", span, b"\xff\xff\xff\xff\x0f")  # -1 to a reader of signed ints, so null
    for span in _of(mapped, Role.TAG_SIZE):
        if span.slot is None:
            left = size - span.end
            yield from (_at("length", span, uvarint(number)) for number in (left + 1, 0x7FFF_FFFF, 0xFFFF_FFFF))
    for span in _of(mapped, Role.TAG_COUNT):
        left = size - span.end
        yield from (_at("length", span, uvarint(number)) for number in (left + 1, 0x7FFF_FFFF))


@_kind("long-varint", Outcome.REFUSE, "A varint takes more than five bytes.")
def _long_varints(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _varints(mapped):
        same = _padded(mapped.data[span.offset : span.end], 6)
        for patch in (same, b"\xff\xff\xff\xff\xff\x01", b"\x80" * 10 + b"\x00"):
            yield _at("long-varint", span, patch)


@_kind("flood", Outcome.REFUSE, "A varint without end, or a count of 2^31-1 before a large input.", heavy=True)
def _floods(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _varints(mapped):
        yield _at("flood", span, b"\xff" * FLOOD, len(mapped.data) - span.offset)
    for span in _of(mapped, Role.LENGTH, Role.COUNT):
        if _LARGEST[span.form] > FLOOD:
            huge = _number(span.form, 0x7FFF_FFFF, bias=0)
            yield _at("flood", span, huge + bytes(FLOOD), len(mapped.data) - span.offset)
    for span in _of(mapped, Role.TAG_COUNT):
        yield _at("flood", span, uvarint(0x7FFF_FFFF) + bytes(FLOOD), len(mapped.data) - span.offset)


# Either


@_kind("trailing", Outcome.EITHER, "Bytes follow after the end.")
def _trailing(mapped: ByteMap) -> Iterator[Corruption]:
    if any(span.form == "rest" for span in mapped.spans):
        return
    for extra in (b"\x00", b"\xff", b"\x00\x00\x00\x01\xff", mapped.data or b"\x01"):
        yield Corruption("trailing", Outcome.EITHER, (), (Edit(len(mapped.data), 0, extra),))


@_kind("boolean", Outcome.EITHER, "A boolean is neither 0 nor 1.")
def _booleans(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _of(mapped, Role.BOOLEAN):
        yield from (_at("boolean", span, bytes((byte,))) for byte in (2, 0x80, 0xFF))


@_kind("presence", Outcome.EITHER, "The byte before a struct that may be null is neither -1 nor 1.")
def _presences(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _of(mapped, Role.PRESENCE):
        if span.form == "int8":
            yield from (_at("presence", span, bytes((byte,))) for byte in (0, 2, 0x7F, 0x80, 0xFE))


@_kind("text", Outcome.EITHER, "A text is no UTF-8, or not in the form that its field has.")
def _texts(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _of(mapped, Role.TEXT):
        if not span.size:
            continue
        patches = (b"\xd8\x00", b"\xdc\x00\xd8\x00") if span.form == "utf16" else _BAD_UTF8
        for patch in patches:
            if len(patch) <= span.size and not (patch == b"\xc0\x80" and span.form == "utf"):
                padding = "a".encode("utf-16-be") * span.size if span.form == "utf16" else b"a" * span.size
                yield _at("text", span, patch + padding[: span.size - len(patch)])


@_kind("null", Outcome.EITHER, "Null where there is none, or a negative number other than -1 for null.")
def _nulls(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _of(mapped, Role.LENGTH, Role.COUNT):
        if span.inside or span.form == "uint16":
            continue
        negative = (b"\x00", b"\xff\xff\xff\xff\x0f") if span.form == "uvarint" else _NEGATIVE[span.form]
        for patch in negative[1:] if span.nullable else negative[:1] if span.form == "uvarint" else negative:
            yield _at("null", span, patch, mapped.ends.get(span.offset, span.end) - span.offset)


@_kind("wide-varint", Outcome.EITHER, "A varint of five bytes encodes more than 32 bits, or a negative number of tags.")
def _wide_varints(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _varints(mapped):
        yield _at("wide-varint", span, b"\xff\xff\xff\xff\x7f")
        if span.role is Role.TAG_COUNT:
            yield _at("wide-varint", span, b"\xff\xff\xff\xff\x0f")


@_kind("padded-varint", Outcome.EITHER, "A varint takes more bytes than its number needs.")
def _padded_varints(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _varints(mapped):
        for size in (span.size + 1, 5):
            if span.size < size <= 5:
                patch = _padded(mapped.data[span.offset : span.end], size)
                edits = _resized(mapped, (Edit(span.offset, span.size, patch),))
                yield Corruption("padded-varint", Outcome.EITHER, _path(span), edits)


@_kind("tag-order", Outcome.EITHER, "Tagged fields are out of order, or one stands there twice.")
def _tag_orders(mapped: ByteMap) -> Iterator[Corruption]:
    for section in mapped.sections:
        one, other = section.free(2)
        last = section.starts[-1]
        for extra in ((other, one), (one, one)):
            yield _more_tags("tag-order", mapped, section, [(tag, b"\x07") for tag in extra], last)
        spans = [mapped.data[a:b] for a, b in zip(section.starts, section.starts[1:], strict=False)]
        if spans:
            yield _more_raw_tags("tag-order", mapped, section, spans[0], 1, last)
        if len(spans) > 1:
            swapped = Edit(section.starts[0], len(spans[0]) + len(spans[1]), spans[1] + spans[0])
            yield Corruption("tag-order", Outcome.EITHER, section.path, (swapped,))


@_kind("tag-size", Outcome.EITHER, "The data of a known tagged field is shorter or longer than its size field.")
def _tag_sizes(mapped: ByteMap) -> Iterator[Corruption]:
    for span in mapped.known_sizes:
        size = _read(mapped.data[span.offset : span.end])
        for wrong in (size - 1, size + 1, 0, 0x7FFF_FFFF):
            if wrong >= 0 and wrong != size:
                yield _at("tag-size", span, uvarint(wrong))


@_kind("tag-default", Outcome.EITHER, "A known tagged field is written although it has its default value.")
def _tag_defaults(mapped: ByteMap) -> Iterator[Corruption]:
    for section in mapped.sections:
        for slot in section.layout.tagged:
            if slot.tag is not None and slot.tag not in section.tags:
                field = [(slot.tag, section.defaults[slot.tag])]
                yield _more_tags("tag-default", mapped, section, field, _slot_of(section, slot.tag))


@_kind("version", Outcome.EITHER, "The leading version is not the one that the layout has.")
def _versions(mapped: ByteMap) -> Iterator[Corruption]:
    for span in _of(mapped, Role.VERSION):
        version = mapped.layout.version
        for other in (version + 1, version - 1, -1, 100, 0x7FFF):
            yield _at("version", span, (other % (1 << 8 * span.size)).to_bytes(span.size, "big"))


@_kind("many-tags", Outcome.EITHER, f"There are {MANY_TAGS:,} unknown tagged fields.", heavy=True)
def _many_tags(mapped: ByteMap) -> Iterator[Corruption]:
    for section in mapped.sections[-1:]:
        above = max((*section.tags, *section.layout.declared_tags), default=0) + 1
        fields = [(tag, b"") for tag in range(above, above + MANY_TAGS)]
        if fields[-1][0] <= LAST_TAG:
            yield _more_tags("many-tags", mapped, section, fields, section.starts[-1])


# Must accept


@_kind("unknown-tag", Outcome.ACCEPT, "A struct has a tagged field that the layout does not know.")
def _unknown_tags(mapped: ByteMap) -> Iterator[Corruption]:
    for section in mapped.sections:
        (lowest,) = section.free(1)
        tags = [lowest, *(tag for tag in (99, LAST_TAG) if tag not in {*section.tags, *section.layout.declared_tags})]
        for tag, data in zip(tags, (b"", b"\x00\xff", b"\x2a" * 200), strict=False):
            corruption = _more_tags("unknown-tag", mapped, section, [(tag, data)], _slot_of(section, tag))
            yield corruption._replace(tags=((tag, data),))


def _path(span: Span) -> Path:
    """The path of the field; of unknown tagged fields, that of their struct."""
    if span.role is Role.VERSION:
        return span.path or ("version",)
    return span.path[:-2] if UNKNOWN in span.path else span.path


def _slot_of(section: Section, tag: int) -> int:
    """The offset at which a tag is in order."""
    return section.starts[sum(each < tag for each in section.tags)]


def _more_tags(
    kind: str, mapped: ByteMap, section: Section, fields: list[tuple[int, bytes]], offset: int
) -> Corruption:
    raw = b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)
    return _more_raw_tags(kind, mapped, section, raw, len(fields), offset)


def _more_raw_tags(kind: str, mapped: ByteMap, section: Section, raw: bytes, number: int, offset: int) -> Corruption:
    more = Edit(section.offset, section.starts[0] - section.offset, uvarint(len(section.tags) + number))
    return Corruption(kind, KINDS[kind].outcome, section.path, _resized(mapped, (more, Edit(offset, 0, raw))))


def _resized(mapped: ByteMap, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Corrects the sizes of the surrounding tagged fields, from the innermost out."""
    first, growth = edits[0].offset, sum(edit.growth for edit in edits)
    around = []
    for span in reversed(mapped.known_sizes):
        size = _read(mapped.data[span.offset : span.end])
        if span.end <= first < span.end + size:
            around.append(Edit(span.offset, span.size, uvarint(size + growth)))
            growth += around[-1].growth
    return (*reversed(around), *edits)


def _of(mapped: ByteMap, *roles: Role) -> Iterator[Span]:
    return (span for span in mapped.spans if span.role in roles)


def _varints(mapped: ByteMap) -> Iterator[Span]:
    return (span for span in mapped.spans if span.form == "uvarint")


def _number(form: str, number: int, bias: int) -> bytes:
    """``bias`` is 1 for compact lengths; a number that would exceed 31 bits is written unchanged."""
    if form == "uvarint":
        return uvarint(min(number + bias, 0x7FFF_FFFF))
    return number.to_bytes(_SIZES[form], "big")


def _padded(varint: bytes, size: int) -> bytes:
    return bytes((*varint[:-1], varint[-1] | 0x80)) + b"\x80" * (size - len(varint) - 1) + b"\x00"


def _read(varint: bytes) -> int:
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(varint))


_SIZES = {"int16": 2, "uint16": 2, "int32": 4}
_LARGEST = {"int16": 0x7FFF, "uint16": 0xFFFF, "int32": 0x7FFF_FFFF, "uvarint": 0x7FFF_FFFE}
_HUGE = {
    "int16": (0x7FFF,), "uint16": (0xFFFF,), "int32": (0x7FFF_FFFF, 0x4000_0000), "uvarint": (0x7FFF_FFFE, 0x3FFF_FFFF),
}  # fmt: skip
_NEGATIVE = {
    "int16": (b"\xff\xff", b"\xff\xfe", b"\x80\x00"), "int32": (b"\xff" * 4, b"\xff\xff\xff\xfe", b"\x80\0\0\0"),
}  # fmt: skip
_BAD_UTF8 = (
    b"\xff",  # no such byte
    b"\x80",  # the second byte of a character without the first
    b"\xc0\x80",  # NUL in two bytes: valid in modified UTF-8, not in UTF-8
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xf4\x90\x80\x80",  # past U+10FFFF
)
