"""Invariants of codecs for every message and version: encode, decode, recode and refuse."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Refused as Refusal, Replied
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Disagreement, Grade, Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant
from kipcheck.conformance.protocols.codec.two_decoders import (
    DecodedBytes,
    brief,
    difference,
    field_at,
    in_tagged,
    kind_at,
    layout_of,
    read,
    tags_in,
    where,
    without_foreign_fields,
    without_known_tags,
    without_tags,
)
from kipcheck.conformance.protocols.declare.invariant import ByMessage, impact
from kipcheck.conformance.protocols.declare.survival import INPUTS
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.quirks import without_unread

PLACE = 10

BOUND = frozenset({"truncated", "length", "varint"})
"""The kinds of damage that no reader may accept; Kafka's own readers accept some of the others."""

UNSUPPORTED_VERSION = KafkaError.UNSUPPORTED_VERSION.to_bytes(2, "big")

LAYOUTS: ByMessage = {
    ("apache", "ApiVersionsResponse"): ("584-04",),
    ("kip-584", "ApiVersionsResponse"): ("584-03", "584-65"),
    ("apache", "UpdateFeaturesRequest"): ("584-05",),
    ("apache", "UpdateFeaturesResponse"): ("584-05",),
    ("kip-584", "UpdateFeaturesRequest"): ("584-05",),
    ("kip-584", "UpdateFeaturesResponse"): ("584-05",),
    ("apache", "SubscriptionInfo"): ("268-01", "268-02", "268-04", "268-05"),
    ("apache", "AssignmentInfo"): ("268-01", "268-03", "268-04", "268-05"),
    ("apache@1.1.1", "SubscriptionInfo"): ("268-02", "268-05", "268-40"),
    ("apache@1.1.1", "AssignmentInfo"): ("268-03", "268-05", "268-40"),
    ("kip-268", "SubscriptionInfo"): ("268-02", "268-04", "268-05", "268-49", "268-50", "268-56"),
    ("kip-268", "AssignmentInfo"): ("268-03", "268-04", "268-05", "268-49", "268-50", "268-51", "268-56"),
    ("kip-429", "JoinGroupRequest"): ("429-07",),
    ("apache", "ConsumerProtocolSubscription"): ("429-01",),
    ("apache", "ConsumerProtocolAssignment"): ("429-21",),
    ("apache", "ValueAndTimestamp"): ("258-01", "258-13", "258-31"),
}
"""Further requirements that the layouts of some messages have."""


def decoded(case: Case, step: Step) -> DecodedBytes:
    """The bytes of a step, as both readers read them."""
    return read(layout_of(case.edition, step["message"], step["version"]), bytes.fromhex(step["hex"]))


def damage(case: Case, step: Step) -> tuple[str, ...]:
    """What is wrong with the bytes of a step, for a shape: the reason of Kafka's own readers to refuse them."""
    if "hex" not in step.body:
        return ()
    try:
        found = decoded(case, step)
    except LookupError:  # nodes of ZooKeeper are no messages
        return ()
    reason = found.lenient_refused or found.refused
    # Where a claimed length exceeds the message is decided by what follows it, and so by the draw.
    kind = "legal" if reason is None else {"truncated": "length", "null": "length"}.get(reason.kind, reason.kind)
    return (kind, *where(found.layout))


INPUTS[Role.CODEC] = damage


def is_answer_in_v0(step: Step) -> bool:
    """May the bytes be the v0 answer with which a broker refuses the later version that was requested?"""
    later = step["message"] == "ApiVersionsResponse" and step["version"] > 0
    return later and bytes.fromhex(step["hex"]).startswith(UNSUPPORTED_VERSION)


LENIENT = frozenset({"StickyAssignorUserData", "CooperativeStickyAssignorUserData"})
"""User data that assignors treat as absent if they cannot read it."""


def is_readable_in_v0(case: Case, step: Step) -> bool:
    """Can Kafka's client read the bytes as v0, which it tries if it cannot read the requested version?

    True also if it refuses v0 for a reason such as a null, which other readers accept.
    """
    if step["message"] != "ApiVersionsResponse" or step["version"] == 0:
        return False
    shorter = read(layout_of(case.edition, step["message"], 0), bytes.fromhex(step["hex"]))
    return shorter.lenient_refused is None or shorter.lenient_refused.kind not in BOUND


def answered(history: History, applies_to: Callable[[Case, Step], bool]) -> Iterator[Op]:
    """The steps that the predicate selects, and that were answered or refused."""
    for op in history.ops:
        if isinstance(op.observation, Replied | Refusal) and applies_to(history.case, op.step):
            yield op


MOST_WORDS = 8
"""Of an error message, in a shape."""


def words(text: str, drawn: Iterable[str] = ()) -> str:
    """The first words of an error message that do not change from case to case: no numbers, names or quotations, and
    none of the ``drawn`` words.
    """
    plain = (word.strip(".,:;()") for word in text.split())
    kept = (word for word in plain if word.isascii() and word.isalpha() and word.islower() and word not in drawn)
    return " ".join(islice(kept, MOST_WORDS))


def refused(op: Op, layout: Layout, what: str) -> Violation:
    assert isinstance(op.observation, Refusal)
    reason = f"{op.observation.error}: {op.observation.why}".rstrip(": ")
    text = words(op.observation.why, _drawn_words(layout, op.step))
    return Violation(
        f"{layout}: {what} was refused with {reason}", (op.index,), "accepted", f"refused: {reason}",
        offset=op.observation.offset, shape=("refused", op.observation.error, text, *where(layout)),
    )  # fmt: skip


def _drawn_words(layout: Layout, step: Step) -> set[str]:
    """The words in the texts of the value that is written or read: an error message may quote them."""
    value = step["value"] if "value" in step.body else read(layout, bytes.fromhex(step["hex"])).lenient
    return {word for text in _texts(value) for word in text.split()}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def misread(op: Op, layout: Layout, wanted: object, got: object, what: str) -> Violation | None:
    found = difference(wanted, got)
    if found is None:
        return None
    return Violation(
        f"{layout}: {what} {found.path or 'the value'} is read as {brief(found.got)}, not {brief(found.wanted)}",
        (op.index,), brief(found.wanted), brief(found.got), found.path,
        shape=("misread", kind_at(layout, found.path), *_sorts(found.wanted, found.got), *where(layout)),
    )  # fmt: skip


def rewritten(op: Op, layout: Layout, wanted: bytes, got: bytes, what: str) -> Violation | None:
    """What is wrong with ``got``: its value, or if the value is the same, its form. None if it equals ``wanted``."""
    if wanted == got:
        return None
    offset = next((n for n, (one, other) in enumerate(zip(wanted, got, strict=False)) if one != other), None)
    offset = min(len(wanted), len(got)) if offset is None else offset
    meant = read(layout, got)
    before = read(layout, wanted)
    path, kind = field_at(layout, wanted, offset)
    if meant.refused is not None:
        sort, trouble = "unreadable", str(meant.refused)
    elif (found := difference(before.value, meant.value)) is not None:
        sort, path, kind, trouble = "another value", found.path, kind_at(layout, found.path), str(found)
    else:
        sort, trouble = "another form", "the same value in other bytes"
    return Violation(
        f"{layout}: {what} is written as {_cut(got)}, not {_cut(wanted)} ({trouble})",
        (op.index,), _cut(wanted), _cut(got),
        path, offset, ("written", sort, kind, *where(layout)),
    )  # fmt: skip


def _cut(data: bytes) -> str:
    text = data.hex()
    return text if len(text) <= 96 else f"{text[:93]}... ({len(data)} bytes)"


def _sorts(wanted: object, got: object) -> tuple[str, str]:
    """The types of the two values, for a shape; next to a null an empty value counts as a type of its own."""

    def sort(value: object, other: object) -> str:
        return "null" if value is None else "empty" if other is None and value in ("", []) else type(value).__name__

    return sort(wanted, got), sort(got, wanted)


@dataclass(frozen=True, slots=True)
class ValueToWrite:
    """What the reference codec makes of the value of a step."""

    step: Step
    layout: Layout
    data: bytes | None
    """The canonical bytes; None if the layout cannot encode the value."""
    plain: bool
    """Has it no unknown tagged fields?"""
    complete: bool
    """Does it have every untagged field, at any depth?"""


_WRITTEN: dict[int, ValueToWrite] = {}
"""Of the last steps, by identity: every invariant requests the same ones again."""
FEW: Final = 32


def _to_write(layout: Layout, step: Step) -> ValueToWrite:
    """Errors: ``Disagreement``."""
    kept = _WRITTEN.get(id(step))
    if kept is None or kept.layout is not layout:  # the cached step is alive, so no other step has its id
        if len(_WRITTEN) >= FEW:
            _WRITTEN.clear()
        data, value = _written(layout, step), step["value"]
        plain = not any(True for _ in tags_in(value))
        complete = data is not None and not any(True for _ in omitted(layout, value))
        kept = _WRITTEN[id(step)] = ValueToWrite(step, layout, data, plain, complete)
    return kept


def canonical(layout: Layout, step: Step) -> bytes | None:
    """The canonical bytes of a step's value; None if the layout cannot encode it. Errors: ``Disagreement``."""
    return _to_write(layout, step).data


def _written(layout: Layout, step: Step) -> bytes | None:
    try:
        value = layout.codec.from_json(step["value"])
        data = layout.encode(value)
    except Refused:
        return None
    back = read(layout, data)
    if back.refused is not None or not _is_within(without_foreign_fields(layout, step["value"]), back.value):
        read_as = back.refused or back.value
        raise Disagreement(f"{layout}: the bytes that the codec wrote, {data[:200].hex()}, are read as {read_as}")
    return data


def _is_within(given: Any, whole: Any) -> bool:
    """Is the given value, which may omit fields at any depth, a part of the whole one?"""
    if isinstance(given, dict) and isinstance(whole, dict):
        return all(name in whole and _is_within(each, whole[name]) for name, each in given.items())
    if isinstance(given, list) and isinstance(whole, list):
        return len(given) == len(whole) and all(map(_is_within, given, whole))
    return bool(given == whole)


def omitted(layout: Layout, value: Mapping[str, Any]) -> Iterator[str]:
    """The names of the untagged fields that the value omits, at any depth."""
    for slot in layout.slots:
        if slot.name not in value:
            if slot.tag is None:
                yield slot.name
        elif slot.item is not None and (inner := value[slot.name]) is not None:
            for each in inner if slot.array else [inner]:
                yield from omitted(slot.item, each)


def is_encode(case: Case, step: Step) -> bool:
    """Is it a value that the layout can encode, with every untagged field and no unknown tagged ones?"""
    found = encodable(case, step)
    return found is not None and found.complete


def encodable(case: Case, step: Step) -> ValueToWrite | None:
    """The value of the step, if the layout can encode it and it has no unknown tagged fields."""
    if step.verb != "encode":
        return None
    found = _to_write(layout_of(case.edition, step["message"], step["version"]), step)
    return found if found.plain and found.data is not None else None


@impact(
    "A message is written in bytes that other implementations read differently",
    "wrong data",
    "layout",
    "wrong-data",
    "unreadable",
)
@codec_invariant(
    "wire/encodes",
    "grp-05",
    checks=("wire/round-trip", "wire/vectors"),
    applies_to=is_encode,
    extra_requirements=LAYOUTS,
)
def encodes(history: History) -> Iterator[Violation]:
    """A legal value is written as bytes that are read as the same value."""
    for op in answered(history, is_encode):
        layout = layout_of(history.case.edition, op.step["message"], op.step["version"])
        wanted = canonical(layout, op.step)
        assert wanted is not None
        if isinstance(op.observation, Refusal):
            yield refused(op, layout, "a legal value")
        elif isinstance(op.observation, Replied):
            found = rewritten(op, layout, wanted, bytes.fromhex(op.observation["hex"]), "the value")
            if found is not None:
                yield found


def is_plain(verb: str) -> Callable[[Case, Step], bool]:
    """Steps with legal bytes, without unknown tagged fields."""

    def applies_to(case: Case, step: Step) -> bool:
        if step.verb != verb or is_answer_in_v0(step):
            return False
        found = decoded(case, step)
        return found.legal and not found.unknown_tags

    return applies_to


decode_plain, recode_plain = is_plain("decode"), is_plain("recode")


@impact("Fields of a legal message get other values", "wrong data", "layout", "wrong-data", "refused-peer")
@codec_invariant(
    "wire/decodes",
    "grp-05",
    checks=("wire/two-readings", "wire/vectors"),
    applies_to=decode_plain,
    extra_requirements=LAYOUTS,
)
def decodes(history: History) -> Iterator[Violation]:
    """Legal bytes are read as the value that both reference readers find in them."""
    for op in answered(history, decode_plain):
        found = decoded(history.case, op.step)
        if isinstance(op.observation, Refusal):
            yield refused(op, found.layout, "a legal message")
        elif isinstance(op.observation, Replied):
            got = op.observation["value"]
            violation = misread(op, found.layout, without_unread(found.layout, found.value, got), got, "in legal bytes")
            if violation is not None:
                yield violation


def well_read(history: History, value: object) -> bool:
    """Did every decode of this value in the case return it? What follows from a wrong answer is not judged."""
    return all(
        isinstance(op.observation, Replied) and difference(value, op.observation["value"]) is None
        for op in answered(history, decode_plain)
        if decoded(history.case, op.step).value == value
    )


def well_written(history: History, data: bytes) -> bool:
    """Did every encode of the value of these bytes in the case return them?"""
    return all(
        isinstance(op.observation, Replied) and bytes.fromhex(op.observation["hex"]) == data
        for op in answered(history, is_encode)
        if canonical(layout_of(history.case.edition, op.step["message"], op.step["version"]), op.step) == data
    )


@impact("A message changes when it is read and written again", "wrong data", "layout", "wrong-data", "unreadable")
@codec_invariant("wire/recodes", "grp-05", checks=("wire/round-trip",), applies_to=recode_plain)
def recodes(history: History) -> Iterator[Violation]:
    """A value that is decoded from canonical bytes is encoded as the same bytes."""
    for op in answered(history, recode_plain):
        found = decoded(history.case, op.step)
        if not (well_read(history, found.value) and well_written(history, found.data)):
            continue
        if isinstance(op.observation, Refusal):
            yield refused(op, found.layout, "a legal message, to be decoded and encoded,")
        elif isinstance(op.observation, Replied):
            got = bytes.fromhex(op.observation["hex"])
            violation = rewritten(op, found.layout, found.data, got, "a message that is decoded and encoded")
            if violation is not None:
                yield violation


def is_beyond_bounds(case: Case, step: Step) -> bool:
    """Are the bytes cut off, or is a length past their end, so that Kafka's own readers refuse them too?"""
    if step.verb != "decode" or step["message"] in LENIENT or is_readable_in_v0(case, step):
        return False
    found = decoded(case, step)
    # Kafka reads a negative length as null, so it is not damage of this kind even where null is not allowed.
    if found.refused is None or found.lenient_refused is None:
        return False
    beyond = found.refused.kind in BOUND and found.lenient_refused.kind in BOUND
    return beyond and not (is_skippable(found) or is_negative_varint(found))


def is_skippable(found: DecodedBytes) -> bool:
    """Is the damage within the data of a known tagged field, which a reader that does not know the field skips?

    The size of that data has to be within the message: no reader can skip past its end.
    """
    assert found.refused is not None
    if not in_tagged(found.layout, found.refused.path):
        return False
    try:
        without_known_tags(found.layout).decode(found.data)
    except Refused as refusal:
        return refusal.kind not in BOUND
    return True


def is_negative_varint(found: DecodedBytes) -> bool:
    """Is the reason five bytes that Kafka reads as a negative number: null, or in older releases no tags?"""
    offset = found.refused.offset if found.refused is not None else None
    varint = b"" if offset is None else found.data[offset : offset + 5]
    return len(varint) == 5 and all(byte >= 0x80 for byte in varint[:4]) and 0x08 <= varint[4] < 0x80


@impact(
    "A truncated message is accepted, with values that were never sent",
    "wrong data",
    "bounds",
    "wrong-data",
    links=("CWE-130",),
)
@codec_invariant(
    "wire/refuses",
    "grp-05",
    checks=("wire/vectors", "wire/prefixes", "wire/damage"),
    applies_to=is_beyond_bounds,
    extra_requirements={("apache", "ValueAndTimestamp"): ("258-31",)},
)
def refuses(history: History) -> Iterator[Violation]:
    """Bytes that are cut off, or have lengths past their end, are refused."""
    for op in answered(history, is_beyond_bounds):
        if isinstance(op.observation, Replied):
            found = decoded(history.case, op.step)
            assert found.refused is not None
            yield Violation(
                f"{found.refused}; it was accepted",
                (op.index,), f"refused: {found.refused.why}", f"accepted as {_value(op.observation['value'])}",
                found.refused.path, found.refused.offset,
                ("accepted", found.refused.kind, *_field_kind(found.layout, found.refused), *where(found.layout)),
            )  # fmt: skip


def is_leniently_readable(case: Case, step: Step) -> bool:
    """Are the bytes refused by the strict reader and accepted by Kafka's own?"""
    if step.verb != "decode" or is_readable_in_v0(case, step):
        return False
    found = decoded(case, step)
    return found.refused is not None and found.lenient_refused is None


@impact("A malformed message is read as another value than Kafka reads", "trivia", "leniency", "wrong-data")
@codec_invariant(
    "wire/reads-alike", "grp-05", checks=("wire/damage",), grade=Grade.INFO, applies_to=is_leniently_readable
)
def reads_like_kafka(history: History) -> Iterator[Violation]:
    """Bytes that a strict reader refuses are, if accepted, read as Kafka's own readers read them."""
    for op in answered(history, is_leniently_readable):
        if isinstance(op.observation, Replied):
            found = decoded(history.case, op.step)
            assert found.refused is not None
            got = without_tags(op.observation["value"])
            wanted = without_unread(found.layout, without_tags(found.lenient), got)
            violation = misread(op, found.layout, wanted, got, f"in bytes with {found.refused.why}")
            if violation is not None:
                shape = ("unlike", found.refused.kind, *violation.shape)
                yield replace(violation, offset=found.refused.offset, shape=shape)


def _field_kind(layout: Layout, reason: Refused) -> tuple[str, ...]:
    """The field type for a shape; omitted for a varint, which is read in the same way everywhere."""
    return () if reason.kind == "varint" else (kind_at(layout, reason.path).split()[-1],)


def _value(value: object) -> str:
    text = str(without_tags(value))
    return text if len(text) <= 200 else f"{text[:197]}..."
