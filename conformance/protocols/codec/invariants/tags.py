"""Invariants of codecs for unknown tagged fields and later versions of consumer protocol data."""

from collections.abc import Iterator
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Op, Refused as Refusal, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.codec.invariants import codec_invariant, wire
from kipcheck.conformance.protocols.codec.two_decoders import (
    TAGS,
    DecodedBytes,
    difference,
    in_tagged,
    read,
    tags_in,
    where,
    without_tags,
)
from kipcheck.conformance.protocols.declare.invariant import AppliesTo, impact
from kipcheck.conformance.wire import Layout

PLACE = 20

MOST_TAGS: Final = 10_000
"""A decoder may refuse a struct with more tagged fields, in defence against damaged counts (kafka-clients 4.2.2)."""


def is_tagged(verb: str) -> AppliesTo:
    """Steps with legal bytes that contain unknown tagged fields."""

    def applies_to(case: Case, step: Step) -> bool:
        return step.verb == verb and not wire.is_answer_in_v0(step) and wire.decoded(case, step).unknown_tags

    return applies_to


decode_tagged, recode_tagged = is_tagged("decode"), is_tagged("recode")


@impact(
    "A message with fields of a newer peer is refused",
    "refused peer",
    "unknown-fields",
    "refused-peer",
    "wrong-data",
    links=("KIP-482",),
)
@codec_invariant(
    "wire/skips-unknown-tags",
    "grp-05",
    checks=("wire/vectors", "wire/unknown-tags"),
    applies_to=decode_tagged,
    extra_requirements={
        ("apache", "ApiVersionsResponse"): ("584-03",),
        ("kip-584", "ApiVersionsResponse"): ("584-03",),
    },
)
def skips(history: History) -> Iterator[Violation]:
    """Unknown tagged fields are skipped, and the rest is read as without them."""
    for op in wire.answered(history, decode_tagged):
        found = wire.decoded(history.case, op.step)
        if not wire.well_read(history, without_tags(found.value)):
            continue
        path = next(tags_in(found.value))
        where = f"an unknown tag in {path or 'the message'}"
        violation = None
        if isinstance(op.observation, Refusal):
            if most_tags(found.value) > MOST_TAGS:
                continue
            violation = wire.refused(op, found.layout, f"a message with {where}")
        elif isinstance(op.observation, Replied):
            got = without_tags(op.observation["value"])
            violation = wire.misread(op, found.layout, without_tags(found.value), got, f"beside {where}")
        if violation is not None:
            yield Violation(
                violation.why, violation.at, violation.expected, violation.observed, violation.path or path,
                violation.offset, _shape(violation, owner_of(found.layout, path)),
            )  # fmt: skip


def most_tags(value: Any) -> int:
    """The largest number of unknown tagged fields in one struct."""
    if isinstance(value, dict):
        return max(len(value.get(TAGS, ())), *map(most_tags, value.values()), 0)
    return max(map(most_tags, value), default=0) if isinstance(value, list) else 0


def _shape(violation: Violation, owner: tuple[str, ...]) -> tuple[str, ...]:
    """The shape without the field: which field is misread after an unknown tag depends on the tag's position."""
    kind, *rest = violation.shape
    error_and_words = rest[:2] if kind == "refused" else ()
    return "tag refused" if kind == "refused" else "tag misread", *error_and_words, *owner


def owner_of(layout: Layout, path: str) -> tuple[str, ...]:
    """The part of a frame whose struct has the unknown tag, for a shape: empty for the body."""
    return where(layout) or (("tagged struct",) if in_tagged(layout, path) else ())


def well_skipped(history: History) -> bool:
    return not any(True for _ in skips(history))


@impact(
    "Fields of a newer peer are lost when a message is passed on",
    "trivia",
    "unknown-fields",
    "lost-fields",
    links=("KIP-482",),
)
@codec_invariant(
    "wire/keeps-unknown-tags", "grp-06", checks=("wire/unknown-tags",), grade=Grade.SHOULD, applies_to=recode_tagged
)
def keeps(history: History) -> Iterator[Violation]:
    """Unknown tagged fields are kept: what is decoded with them is encoded with them, in ascending order."""
    for op, found, written in recoded(history):
        if written.refused is None and difference(tagged(found.value), tagged(written.value)) is not None:
            what = f"the unknown tag in {whose(found)} is lost or changed when the message is decoded and encoded"
            yield spoilt(op, found, written, what, "lost")


@impact(
    "A message with fields of a newer peer is passed on in unreadable bytes",
    "wrong data",
    "layout",
    "unreadable",
    links=("KIP-482",),
)
@codec_invariant("wire/writes-readable-tags", "grp-05", checks=("wire/unknown-tags",), applies_to=recode_tagged)
def writes_readably(history: History) -> Iterator[Violation]:
    """A message that was read with unknown tagged fields is encoded as readable bytes."""
    for op, found, written in recoded(history):
        if written.refused is not None:
            why = written.refused.why
            what = f"with an unknown tag in {whose(found)}, the encoded bytes cannot be read: {why}"
            yield spoilt(op, found, written, what, "unreadable")


def recoded(history: History) -> Iterator[tuple[Op, DecodedBytes, DecodedBytes]]:
    """Steps with the bytes that were given and those that were written, if the target reads unknown tags correctly."""
    for op in wire.answered(history, recode_tagged):
        if isinstance(op.observation, Refusal) or not well_skipped(history):
            continue
        assert isinstance(op.observation, Replied)
        found = wire.decoded(history.case, op.step)
        yield op, found, read(found.layout, bytes.fromhex(op.observation["hex"]))


def whose(found: DecodedBytes) -> str:
    """The struct that has the unknown tag."""
    return next(tags_in(found.value)) or "the message"


def spoilt(op: Op, found: DecodedBytes, written: DecodedBytes, what: str, how: str) -> Violation:
    path = next(tags_in(found.value))
    return Violation(
        f"{found.layout}: {what}", (op.index,), found.data.hex(), written.data.hex(), f"{path}.{TAGS}".lstrip("."),
        None, (how, "unknown tag", *owner_of(found.layout, path)),
    )  # fmt: skip


def tagged(value: Any) -> Any:
    """Only the unknown tagged fields, each in its place."""
    if isinstance(value, dict):
        kept = {key: each if key == TAGS else tagged(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    return [tagged(each) for each in value] if isinstance(value, list) else None


def from_a_later_version(case: Case, step: Step) -> bool:
    """Is it consumer protocol data of a version above the newest, to be read as the newest?"""
    if step.verb != "decode" or not step["message"].startswith("ConsumerProtocol"):
        return False
    found = wire.decoded(case, step)
    newer = found.layout.newest and int.from_bytes(found.data[:2], "big", signed=True) > found.layout.version
    return newer and found.refused is not None and found.lenient_refused is None


@impact(
    "Consumer protocol data of a newer member is refused or misread",
    "refused peer",
    "versions",
    "refused-peer",
    links=("KIP-429",),
)
@codec_invariant(
    "wire/reads-later-versions", "429-01", checks=("wire/later-versions",), applies_to=from_a_later_version
)
def reads_later(history: History) -> Iterator[Violation]:
    """Of consumer protocol data of a later version, which only adds fields at the end, the known fields are read."""
    for op in wire.answered(history, from_a_later_version):
        found = wire.decoded(history.case, op.step)
        if isinstance(op.observation, Refusal):
            yield wire.refused(op, found.layout, "data of a later version")
        elif isinstance(op.observation, Replied):
            violation = wire.misread(
                op, found.layout, found.lenient, op.observation["value"], "in data of a later version"
            )
            if violation is not None:
                yield violation
