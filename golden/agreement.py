"""Compares both decoders with a vector: strictly, and leniently as each release reads it."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.canonical_form import canonical
from kipcheck.conformance.wire import constructs, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.quirks import as_read
from kipcheck.conformance.wire.schema import Layout
from kipcheck.conformance.wire.znodes import ZNode
from kipcheck.golden.outcomes import ACCEPTED, FUTURE, REWRITTEN, UNWRITABLE, takes
from kipcheck.golden.vector_files import Vector, vectors
from kipcheck.strategies.legal import FORGIVING

Value = dict[str, Any]

IN_SUBSTANCE = ("SubscriptionInfo", "AssignmentInfo", "StickyAssignorUserData", "CooperativeStickyAssignorUserData")
"""Messages that are written by classes with sets and maps, so that values are compared in canonical form."""
FLAT = releases(span("hand-written-consumer-protocol"))
"""In these releases the consumer protocol is written by such classes too."""
REFUSE_SUPPORTING_LESS = releases(span("supported-below-used-refused"))
"""These releases refuse a subscription that supports less than its own version: a rule of values, not of layouts."""
OWN_SECOND_INT = releases(span("own-version-to-members"))
"""These releases write their own newest version as the second number, whatever they read."""
FORGETS_V1 = releases(span("without-fix-of-kafka-6054"))
"""In these releases an assignment of version 1 is version 2 after it was read."""
SECOND_INT = {"SubscriptionInfo": "latestSupportedVersion", "AssignmentInfo": "commonlySupportedVersion"}


def strictly(vector: Vector) -> Iterator[str]:
    """Both decoders must return the value and write the bytes; without a value both must refuse."""
    at = vector.layout
    if vector.refused and vector.value is not None and not _supports_less(vector, vector.value):
        yield f"{vector.name}: it has a value, but every release refuses it"
    for who, read, write in _readings(vector, at):
        try:
            value = read(vector.data)
        except Refused as refused:
            if vector.value is not None:
                yield f"{vector.name}: {who} refuses it: {refused}"
            continue
        if vector.value is None:
            yield f"{vector.name}: {who} accepts it"
        elif at.codec.to_json(value) != vector.value:
            yield f"{vector.name}: {who} reads {at.codec.to_json(value)}"
        elif (written := write(at.codec.from_json(vector.value))) != vector.data:
            yield f"{vector.name}: {who} writes {written.hex()}"


def _readings(vector: Vector, at: Layout) -> Iterator[tuple[str, Callable[[bytes], Value], Callable[[Value], bytes]]]:
    yield "the codec", at.decode, at.encode
    if not isinstance(at, ZNode):
        yield "the construct decoder", lambda data: constructs.read(at, data), lambda value: constructs.build(at, value)
    elif vector.value is not None:
        # Python's own reader has no rules, so it cannot check what must be refused.
        yield "Python's JSON decoder", lambda data: {**at.defaults(), **json.loads(data)}, at.encode


def leniently(vector: Vector) -> Iterator[str]:
    """``apache@RELEASE`` must accept what the release accepts, with the same value."""
    cached: dict[tuple[object, ...], str] = {}
    if vector.leading != vector.version:
        return  # the caller chooses the layout for another version
    for release, outcome in vector.outcomes.items():
        try:
            at = _shared(f"apache@{release}", vector.message, vector.version)
        except LookupError:
            if takes(outcome):
                yield f"{vector.name}: {release}: the outcome is {outcome}, but its edition lacks the version"
            continue
        number = Release.parse(release)
        key = (
            id(at),
            outcome,
            *(number in each for each in (FLAT, REFUSE_SUPPORTING_LESS, OWN_SECOND_INT, FORGETS_V1)),
        )
        if key not in cached:
            cached[key] = "; ".join(_as_the_release(vector, at, release, outcome))
        if cached[key]:
            yield f"{vector.name}: {release}: {cached[key]}"


def _as_the_release(vector: Vector, at: Layout, release: str, outcome: str) -> Iterator[str]:
    values = []
    for read in (at.codec.decode_lenient, lambda data: constructs.read(at, data, lenient=True)):
        try:
            values.append(read(vector.data))
        except Refused as refused:
            if takes(outcome) and vector.message not in FORGIVING:
                yield f"the outcome is {outcome}, but a lenient decoder refuses: {refused}"
            return
    value, second = values
    if value != second:
        yield f"one lenient decoder returns {value}, the other {second}"
    if not takes(outcome):
        if not (_supports_less(vector, value) and Release.parse(release) in REFUSE_SUPPORTING_LESS):
            yield f"the outcome is {outcome}, but the lenient decoders accept"
        return
    word, _, written = outcome.partition(" ")
    if word == ACCEPTED:
        written = vector.hex
    elif word == REWRITTEN and not written:
        written = _undamaged(vector).hex
    elif word in (FUTURE, UNWRITABLE):
        return
    yield from _same(vector, at, release, value, bytes.fromhex(written))


def _same(vector: Vector, at: Layout, release: str, value: Value, theirs: bytes) -> Iterator[str]:
    """Whether the decoded value is the one that the release wrote back."""
    flat = vector.message.startswith("ConsumerProtocol") and Release.parse(release) in FLAT
    if flat or vector.message in IN_SUBSTANCE:
        led = int.from_bytes(theirs[:4], "big", signed=True) if vector.message in SECOND_INT else vector.version
        if led != vector.version:
            yield from _forgotten(vector, at, release, value, theirs)
            return
        try:
            again = at.decode(theirs, lenient=True)
        except Refused as refused:
            yield f"the release writes back {theirs.hex()}, which is refused: {refused}"
            return
        second = SECOND_INT.get(vector.message)
        if second in value and Release.parse(release) in OWN_SECOND_INT:
            again, value = {**again, second: 0}, {**value, second: 0}
        ours, meant = (_canonical(vector.message, at.codec.to_json(each)) for each in (value, again))
        if ours != meant:
            yield f"the release writes back {theirs.hex()}, but the lenient decoders return {value}"
        return
    try:
        ours_again = at.encode(value)
    except Refused as refused:
        yield f"the release writes the value back, but the codec refuses it: {refused}"
        return
    if ours_again != theirs:
        yield f"the release writes back {theirs.hex()}, the codec {ours_again.hex()}"


def _forgotten(vector: Vector, at: Layout, release: str, value: Value, theirs: bytes) -> Iterator[str]:
    """Some releases turn version 1 of an assignment into version 2 when they read it."""
    if vector.message != "AssignmentInfo" or Release.parse(release) not in FORGETS_V1:
        yield f"the release writes back another version: {theirs.hex()}"
        return
    other = _shared(f"apache@{release}", vector.message, 2)
    read = other.decode(theirs, lenient=True)
    again = {name: each for name, each in read.items() if name in at.names} | {"version": 1}
    if _canonical(vector.message, at.codec.to_json(again)) != _canonical(vector.message, at.codec.to_json(value)):
        yield f"the release writes back {theirs.hex()}, but the lenient decoders return {value}"


def _canonical(message: str, value: Value) -> Any:
    try:
        return canonical(message, value)
    except KeyError:
        return value  # a topic that the dictionary lacks


def _supports_less(vector: Vector, value: Any) -> bool:
    if vector.message != "SubscriptionInfo" or not value:
        return False
    return bool(value.get("latestSupportedVersion", 0) < vector.version)


@cache
def _small(edition: str, message: str, version: int, note: str) -> Vector:
    return next(
        each for each in vectors(message) if (each.edition, each.version, each.note) == (edition, version, note)
    )


def _undamaged(vector: Vector) -> Vector:
    assert vector.of is not None, f"{vector.name} names no undamaged vector"
    return _small(vector.edition, vector.message, vector.version, vector.of)


_readers: dict[tuple[Any, ...], Layout] = {}


@cache
def _shared(edition: str, message: str, version: int) -> Layout:
    """The layout of a release; equal layouts are one object, so that each is compiled once."""
    found = layout(edition, message, version)
    key = (found, as_read(found), found.limits, found.newest)
    return _readers.setdefault(key, found)
