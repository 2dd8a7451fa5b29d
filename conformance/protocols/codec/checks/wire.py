"""Checks of codecs."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from kipcheck.conformance.core.values.case import step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.verdict import Disagreement
from kipcheck.conformance.protocols.codec.checks import other_versions
from kipcheck.conformance.protocols.codec.checks.example_values import emptied, extreme, inhabited, tagged
from kipcheck.conformance.protocols.codec.checks.family import Subject, Value, codec_check, drawn
from kipcheck.conformance.protocols.codec.checks.large_values import each_large, large, sizes
from kipcheck.conformance.protocols.codec.checks.partial_values import partial
from kipcheck.conformance.protocols.codec.checks.version_pairs import version_pairs
from kipcheck.conformance.protocols.codec.invariants.defaults import NOT_DEFINED
from kipcheck.conformance.protocols.codec.two_decoders import without_foreign_fields
from kipcheck.conformance.protocols.declare.check import Check, Conversation
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.byte_map import Role, Span
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.schema import MessageSpec, spec
from kipcheck.golden.agreement import strictly
from kipcheck.golden.vectors import Vector, vectors
from kipcheck.strategies.damage import USUAL, damages, every_damage

TAGS = "_unknownTaggedFields"


def round_trip(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    data = subject.layout.encode(value)
    yield Conversation((subject.encode(value),))
    yield Conversation((subject.decode(data), subject.encode(value), subject.recode(data)))


def two_readings(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    yield Conversation((subject.decode(subject.layout.encode(value)),))


def no_other(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """No drawn conversations, for a check whose conversations are all given."""
    return iter(())


def golden(subject: Subject) -> Iterator[Conversation]:
    """Bytes that real Kafka wrote or refused. Errors: ``Disagreement`` if kipcheck's own codec differs from Kafka.

    ``kipcheck golden verify`` also compares the lenient decoders of all releases with the vectors.
    """
    for vector in _vectors().get((subject.edition, subject.layout.message, subject.layout.version), ()):
        for trouble in strictly(vector):
            raise Disagreement(trouble)
        yield Conversation((subject.decode(vector.data),), vector.note)
        if vector.value is not None:
            yield Conversation((subject.step("encode", value=vector.value),), vector.note)


@cache
def _vectors() -> dict[tuple[str, str, int], list[Vector]]:
    found: dict[tuple[str, str, int], list[Vector]] = {}
    for each in vectors():
        found.setdefault((each.edition, each.message, each.version), []).append(each)
    return found


def prefixes(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    data = subject.layout.encode(value)
    cuts = range(len(data))
    for cut in cuts if len(data) <= PREFIXES else sorted({*random.sample(cuts, PREFIXES - 1), len(data) - 1}):
        yield Conversation((subject.decode(data[:cut]),))


PREFIXES = 16
"""The number of prefixes of a longer message that are tried, the longest included."""


def unknown_tags(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    plain = subject.layout.encode(value)
    for one in with_tags(subject.layout, value, random):
        data = subject.layout.encode(one)
        yield Conversation((subject.decode(plain), subject.decode(data), subject.recode(data)))


def with_tags(layout: Layout, value: Value, random: Random) -> Iterator[Value]:
    """The value with an unknown tagged field in one of its structs, once for each kind of struct."""
    done: set[int] = set()
    for path, struct in _structs(layout, value):
        if struct.flexible and id(struct) not in done:
            done.add(id(struct))
            tag = max(struct.declared_tags, default=-1) + random.choice((1, 2, 7, 100, 10_000))
            data = random.randbytes(random.choice((0, 1, 2, 16)))
            yield _replaced(value, path, {TAGS: [{"tag": tag, "data": data}]})


def _structs(layout: Layout, value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Layout]]:
    yield path, layout
    for slot in layout.slots:
        inner = value.get(slot.name)
        if slot.item is None or inner is None:
            continue
        if slot.array:
            for index, each in enumerate(inner):
                yield from _structs(slot.item, each, (*path, slot.name, index))
        else:
            yield from _structs(slot.item, inner, (*path, slot.name))


def _replaced(value: Any, path: tuple[Any, ...], more: Value) -> Any:
    if not path:
        return {**value, **more}
    first, *rest = path
    inner = _replaced(value[first], tuple(rest), more)
    if isinstance(value, list):
        return [*value[:first], inner, *value[first + 1 :]]
    return {**value, first: inner}


def repeated(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """The same request twice, with another one in between."""
    layout = subject.layout
    data, other = layout.encode(value), layout.encode(drawn(subject, random))
    yield Conversation((subject.decode(data), subject.decode(other), subject.decode(data)))
    yield Conversation((subject.encode(value), subject.encode(layout.defaults()), subject.encode(value)))
    yield Conversation((subject.recode(other), subject.decode(data), subject.recode(other), subject.decode(data)))
    brief, full = subject.step("encode", value=without_tagged(layout, value)), subject.encode(inhabited(layout))
    complete = {**layout.codec.to_json(layout.defaults()), **brief["value"]}
    yield Conversation((full, brief, subject.step("encode", value=complete)))


def without_tagged(layout: Layout, value: Value) -> Value:
    """The value as JSON without its tagged fields, which a codec takes from its defaults."""
    tagged_names = {slot.name for slot in layout.tagged}
    return {name: each for name, each in layout.codec.to_json(value).items() if name not in tagged_names}


def later_versions(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    data = subject.layout.encode(value)
    for version in (subject.layout.version + 1, 32767):
        later = version.to_bytes(2, "big") + data[2:] + random.randbytes(random.choice((0, 1, 9)))
        yield Conversation((subject.decode(later),))


def damaged(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    for each in damages(subject.layout, value, random, DAMAGES):
        yield Conversation((subject.decode(each.data),), each.kind)


def damaged_again(subject: Subject, value: Value, kind: str) -> Iterator[Conversation]:
    for each in islice(every_damage(subject.layout, value, (kind,)), DAMAGED_AGAIN):
        yield Conversation((subject.decode(each.data),), kind)


DAMAGES = tuple(kind for kind in USUAL if kind not in ("prefix", "unknown-tag"))
"""All usual kinds except truncation and unknown tags, which have checks of their own."""
DAMAGED_AGAIN = 64
"""The number of damaged inputs that are tried for a smaller value."""


def foreign_fields(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """A value with a field of another version, after the same value without it."""
    for each in other_versions.with_foreign_fields(subject.layout, value):
        plain = without_foreign_fields(subject.layout, each)
        yield Conversation((subject.step("encode", value=plain), subject.step("encode", value=each)))


def partial_values(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """A value with a field at its default, and without that field."""
    for whole, part in partial(subject.layout, value, random):
        yield Conversation((subject.step("encode", value=whole), subject.step("encode", value=part)))


def large_values(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    for size in sizes(subject.layout):
        found = large(subject.layout, value, size, random)
        if found is not None:
            yield from _beside(subject, value, found, size)


def large_again(subject: Subject, value: Value, kind: str) -> Iterator[Conversation]:
    for found in each_large(subject.layout, value, int(kind)):
        yield from _beside(subject, value, found, int(kind))


def _beside(subject: Subject, small: Value, found: Value, size: int) -> Iterator[Conversation]:
    """The small value and the large one."""
    encode = subject.layout.encode
    yield Conversation((subject.encode(small), subject.encode(found)), str(size))
    yield Conversation((subject.decode(encode(small)), subject.decode(encode(found))), str(size))


def future_versions(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    for version, data in other_versions.of_the_future(subject.layout, random):
        body = {"message": subject.layout.message, "version": version, "hex": data.hex()}
        yield Conversation((step("codec", "decode", **body),))


def answers_in_v0(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    yield Conversation((subject.decode(other_versions.answer_in_v0(subject.layout, random)),))


def claims(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """A few bytes, the last of which claim a length that exceeds any memory."""
    for position in length_positions(subject.layout, value):
        for claim in CLAIMS[position.form]:
            data = subject.layout.encode(value)[: position.offset] + claim
            if len(data) < TINY:
                yield Conversation((subject.decode(data),))


def length_positions(layout: Layout, value: Value) -> Iterator[Span]:
    """The positions of lengths and counts."""
    claiming = (Role.LENGTH, Role.COUNT, Role.TAG_COUNT, Role.TAG_SIZE)
    return (position for position in byte_map(layout, value).spans if position.role in claiming)


TINY = 64
CLAIMS: Mapping[str, tuple[bytes, ...]] = {
    "int16": (b"\x7f\xff",),
    "uint16": (b"\xff\xff",),
    "int32": (b"\x7f\xff\xff\xff", b"\x10\0\0\0"),
    "uvarint": (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x7f", b"\xff\xff\xff\x7f"),
}
"""The claimed lengths, in each encoding of a length."""


def floods(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """A message that starts legally and continues with one byte, repeated many times."""
    data = subject.layout.encode(value)
    for byte in FLOOD_BYTES:
        cut = random.randrange(len(data) + 1)
        yield Conversation((subject.decode(data[:cut] + bytes([byte]) * FLOOD),))
    for each in damages(subject.layout, value, random, ("many-tags",)):
        yield Conversation((subject.decode(each.data),))


FLOOD = 384 << 10
FLOOD_BYTES = (0xFF, 0x80, 0x7F, 0x01, 0x00)


def newest(layout: Layout) -> bool:
    return layout.newest


def later_is_readable(layout: Layout) -> bool:
    return layout.newest and layout.message.startswith("ConsumerProtocol")


def future_is_readable(layout: Layout) -> bool:
    """Does the edition define a second version number in Streams metadata?"""
    found = spec(edition(layout.edition), layout.message)
    return layout.newest and bool(found.future) and future_layout(found) is not None


def future_layout(found: MessageSpec) -> Layout | None:
    assert found.versions.high is not None
    try:
        return found.at(found.versions.high + 1)
    except LookupError:
        return None


def may_be_answered_in_v0(layout: Layout) -> bool:
    return layout.message == "ApiVersionsResponse" and layout.version > 0


def lacks_fields(layout: Layout) -> bool:
    return any(True for _ in other_versions.lacking(layout))


def has_definition(layout: Layout) -> bool:
    return layout.message not in NOT_DEFINED


def flexible(layout: Layout) -> bool:
    return layout.flexible


WIRE: tuple[Check[Subject], ...] = (
    codec_check(
        "wire/round-trip",
        "values are written and read back unchanged",
        round_trip,
        values=14,
        given=version_pairs,
    ),
    codec_check(
        "wire/two-readings",
        "bytes are read as both reference readers read them",
        two_readings,
        values=16,
    ),
    codec_check(
        "wire/vectors",
        "golden bytes that released Kafka made are read and written as Kafka does",
        no_other,
        values=0,
        listed_first=("wire/decodes",),
        given=golden,
        shrinks=False,
    ),
    codec_check(
        "wire/prefixes",
        "a truncated message is refused",
        prefixes,
        values=5,
        first=(inhabited, tagged, extreme),
    ),
    codec_check(
        "wire/damage",
        "damaged bytes are refused where they have to be, and else read as Kafka reads them",
        damaged,
        values=7,
        first=(inhabited, tagged, extreme),
        again=damaged_again,
    ),
    codec_check(
        "wire/unknown-tags",
        "unknown tagged fields are skipped and kept",
        unknown_tags,
        values=6,
        first=(inhabited, emptied),
        versions=flexible,
    ),
    codec_check(
        "wire/repeat",
        "an answer does not depend on earlier requests",
        repeated,
        values=4,
        first=(emptied,),
    ),
    codec_check(
        "wire/later-versions",
        "the known fields of consumer protocol data of later versions are read",
        later_versions,
        values=12,
        versions=later_is_readable,
    ),
    codec_check(
        "wire/future-versions",
        "Streams metadata of later versions is read up to its second version number",
        future_versions,
        values=4,
        first=(),
        versions=future_is_readable,
    ),
    codec_check(
        "wire/omitted-fields",
        "an untagged field that is omitted has its declared default",
        partial_values,
        values=1,
        first=(inhabited,),
        versions=has_definition,
    ),
    codec_check(
        "wire/sizes",
        "messages that straddle the sizes of buffers are written and read as small ones",
        large_values,
        values=1,
        first=(inhabited,),
        again=large_again,
        heavy=True,
    ),
    codec_check(
        "wire/absent-fields",
        "a field that a version lacks is refused, or omitted if it may be ignored",
        foreign_fields,
        values=1,
        first=(inhabited,),
        versions=lacks_fields,
    ),
    codec_check(
        "wire/answer-in-v0",
        "an answer in v0 to an unsupported version is not misread",
        answers_in_v0,
        values=3,
        first=(),
        versions=may_be_answered_in_v0,
    ),
    codec_check(
        "wire/claims",
        "short input with large claimed lengths costs little time and memory",
        claims,
        values=2,
        first=(tagged, emptied),
        ids=("survives",),
    ),
    codec_check(
        "wire/proportion",
        "no input costs time or memory out of proportion to its size",
        floods,
        values=1,
        first=(inhabited,),
        ids=("survives",),
        versions=newest,
        heavy=True,
        shrinks=False,
    ),
)
