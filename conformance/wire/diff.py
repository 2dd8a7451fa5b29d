"""Compares two editions: how their messages differ, and whether one decodes correctly what the other encodes."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Any

from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.plain import plain
from kipcheck.conformance.wire.schema import Layout, MessageSpec, Slot, Versions, messages, spec


class Compatibility(IntEnum):
    """What a reader decodes from a writer's bytes; the worst over all values."""

    SAME = 0
    SKIPS = 1
    """The same, except for tags that the reader does not know."""
    REFUSES = 2
    """The same, except for a null that the reader refuses."""
    MISREADS = 3
    """Bytes are misinterpreted or refused: the values decide which."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference in the declarations of a field."""

    path: str
    """``members.metadata``; empty for the message."""
    what: str
    """field, name, order, type, nullable, compact, tag, prefix, flexible; default, ignorable, mapKey."""
    a: Any
    """As JSON; None for a field that only the other edition has."""
    b: Any

    @property
    def flag(self) -> bool:
        """Whether it concerns only a default or a flag, so that no byte changes."""
        return self.what in ("default", "ignorable", "mapKey", "name")


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """A version that both editions have, with differences."""

    version: int
    differences: tuple[Difference, ...]
    a_of_b: Compatibility
    """What a reader of A decodes from bytes of B."""
    b_of_a: Compatibility
    unstable: tuple[str, ...] = ()
    """The editions that mark this version as unstable."""

    @property
    def unbumped(self) -> bool:
        """Whether the layout differs under the same version number."""
        return not all(each.flag for each in self.differences)

    @property
    def misreads(self) -> bool:
        return max(self.a_of_b, self.b_of_a) >= Compatibility.REFUSES

    def as_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "unbumped": self.unbumped,
            "reads": {"a_of_b": self.a_of_b.name.lower(), "b_of_a": self.b_of_a.name.lower()},
            "unstable": list(self.unstable),
            "differences": plain(self.differences),
        }


@dataclass(frozen=True, slots=True)
class MessageDiff:
    """A message that differs between the two editions."""

    message: str
    a: Versions | None
    """None where the edition has no such message."""
    b: Versions | None
    keys: tuple[int | None, int | None] = (None, None)
    """The API keys, where they differ."""
    versions: tuple[VersionDiff, ...] = ()

    def as_json(self) -> dict[str, Any]:
        keys = {"apiKey": {"a": self.keys[0], "b": self.keys[1]}} if self.keys[0] != self.keys[1] else {}
        spans = {"a": self.a and [self.a.low, self.a.high], "b": self.b and [self.b.low, self.b.high]}
        return {"message": self.message, **spans, **keys, "versions": [each.as_json() for each in self.versions]}


@dataclass(frozen=True, slots=True)
class Diff:
    a: str
    b: str
    compared: int
    """Message versions that both editions have."""
    messages: tuple[MessageDiff, ...]
    missing: tuple[tuple[str, str], ...] = ()
    """Jars that could not be read: coordinate and reason."""

    @property
    def misreads(self) -> bool:
        """Whether, in a version of both, one edition's reader misreads or refuses what the other writes."""
        return any(version.misreads for message in self.messages for version in message.versions)

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "compared": self.compared,
            "misreads": self.misreads,
            "missing": [{"coordinate": coordinate, "why": why} for coordinate, why in self.missing],
            "messages": [each.as_json() for each in self.messages],
        }

    def text(self) -> str:
        """One block per message; versions with the same differences are grouped."""
        differing = sum(len(each.versions) for each in self.messages)
        lines = [f"{self.a} (A), {self.b} (B): {self.compared} message versions in both, {differing} of them differ"]
        lines += [f"not read: {coordinate}: {why}" for coordinate, why in self.missing]
        lines += _only("A", [(each.message, each.a) for each in self.messages if each.b is None])
        lines += _only("B", [(each.message, each.b) for each in self.messages if each.a is None])
        for message in self.messages:
            if message.a and message.b:
                lines += ["", *_block(message)]
        return "\n".join(lines)


def diff(a: Edition, b: Edition) -> Diff:
    """Errors: LookupError where an edition cannot be read."""
    in_a, in_b = messages(a), messages(b)
    found, compared = [], 0
    for name in sorted({*in_a, *in_b}):
        left = spec(a, name) if name in in_a else None
        right = spec(b, name) if name in in_b else None
        if left and right:
            compared += len(_common(left, right))
        described = _of_message(name, left, right)
        if described:
            found.append(described)
    return Diff(str(a), str(b), compared, tuple(found), (*_missing(a), *_missing(b)))


def _missing(edition: Edition) -> tuple[tuple[str, str], ...]:
    if edition.standing is not Standing.DEFINITIONS:
        return ()
    from kipcheck.conformance.wire.definitions import missing  # opens jars: only for these editions

    return missing(edition)


def _common(a: MessageSpec, b: MessageSpec) -> range:
    low, high = max(a.versions.low, b.versions.low), min(_high(a), _high(b))
    return range(low, high + 1)


def _high(message: MessageSpec) -> int:
    assert message.versions.high is not None
    return message.versions.high


def _of_message(name: str, a: MessageSpec | None, b: MessageSpec | None) -> MessageDiff | None:
    if a is None or b is None:
        return MessageDiff(name, a.versions if a else None, b.versions if b else None)
    rerouted = a.api_key != b.api_key
    versions = []
    for version in _common(a, b):
        left, right = a.at(version), b.at(version)
        differences = tuple(differences_of(left, right))
        # With another API key the bytes reach another API, or none.
        a_of_b, b_of_a = (
            (Compatibility.MISREADS,) * 2 if rerouted else (compatibility(right, left), compatibility(left, right))
        )
        if differences or rerouted:
            unstable = tuple(str(each.edition) for each in (a, b) if each.unstable == version)
            versions.append(VersionDiff(version, differences, a_of_b, b_of_a, unstable))
    keys = (a.api_key, b.api_key) if rerouted else (None, None)
    if versions or rerouted or a.versions != b.versions:
        return MessageDiff(name, a.versions, b.versions, keys, tuple(versions))
    return None


# ---- compatibility of readers and writers


def compatibility(writer: Layout, reader: Layout) -> Compatibility:
    """The worst that ``reader`` does with what ``writer`` writes."""
    if (writer.prefix, writer.flexible) != (reader.prefix, reader.flexible):
        return Compatibility.MISREADS
    if len(writer.untagged) != len(reader.untagged):
        return Compatibility.MISREADS
    pairs = list(zip(writer.untagged, reader.untagged, strict=True))
    known = {slot.tag: slot for slot in reader.tagged}
    for written in writer.tagged:
        if written.tag in known:
            pairs.append((written, known[written.tag]))
    worst = max((_of_slot(written, read) for written, read in pairs), default=Compatibility.SAME)
    written_names, read_names = {slot.name for slot in writer.slots}, {slot.name for slot in reader.slots}
    for written, read in pairs:
        # A new name for the same bytes does no harm; a name that also occurs elsewhere is the place of another field.
        if written.name != read.name and (written.name in read_names or read.name in written_names):
            return Compatibility.MISREADS
    if any(slot.tag not in known for slot in writer.tagged):
        worst = max(worst, Compatibility.SKIPS)
    return worst


def _of_slot(written: Slot, read: Slot) -> Compatibility:
    if (written.array, written.compact) != (read.array, read.compact) or _wire(written) != _wire(read):
        return Compatibility.MISREADS
    # A tagged field with its default value is not written: the reader uses its own default.
    if written.tag is not None and written.default != read.default:
        return Compatibility.MISREADS
    worst = Compatibility.REFUSES if written.nullable and not read.nullable else Compatibility.SAME
    if written.item and read.item:
        worst = max(worst, compatibility(written.item, read.item))
    return worst


def _wire(slot: Slot) -> object:
    """What determines the bytes of one element."""
    if slot.item:
        # A single nullable struct is preceded by a presence byte.
        return ("struct", slot.nullable and not slot.array)
    return {"records": "bytes"}.get(slot.type, slot.type)


# ---- differences


def differences_of(a: Layout, b: Layout, path: str = "") -> Iterator[Difference]:
    """All differences of the declarations; structs are compared by their fields, not by their names."""
    if a.prefix != b.prefix:
        yield Difference(path, "prefix", _prefix(a), _prefix(b))
    if a.flexible != b.flexible:
        yield Difference(path, "flexible", a.flexible, b.flexible)
    renamed = _renamed(a, b)
    in_a = {renamed.get(slot.name, slot.name): slot for slot in a.slots}
    in_b = {slot.name: slot for slot in b.slots}
    for name in dict.fromkeys((*in_a, *in_b)):
        here = f"{path}.{name}" if path else name
        if name in in_a and name in in_b:
            yield from _of_slots(here, in_a[name], in_b[name])
        else:
            described = [_described(side[name]) if name in side else None for side in (in_a, in_b)]
            yield Difference(here, "field", *described)
    order = [renamed.get(slot.name, slot.name) for slot in a.untagged], [slot.name for slot in b.untagged]
    common = [[name for name in names if name in in_a and name in in_b] for names in order]
    if common[0] != common[1] and sorted(common[0]) == sorted(common[1]):
        yield Difference(path, "order", *common)
    absent = {each.name: each for each in b.absent}
    for each in a.absent:
        if other := absent.get(each.name):
            here = f"{path}.{each.name}" if path else each.name
            if each.default != other.default:
                yield Difference(here, "default", _plain(each.default), _plain(other.default))
            if each.ignorable != other.ignorable:
                yield Difference(here, "ignorable", each.ignorable, other.ignorable)


def _renamed(a: Layout, b: Layout) -> dict[str, str]:
    """Fields of A -> fields of B with the same position and bytes, where neither name occurs in the other."""
    in_a, in_b = {slot.name for slot in a.slots}, {slot.name for slot in b.slots}
    places = [*zip(a.untagged, b.untagged, strict=False)]
    places += [(slot, other) for slot in a.tagged for other in b.tagged if slot.tag == other.tag]
    return {
        slot.name: other.name
        for slot, other in places
        if slot.name not in in_b and other.name not in in_a and (slot.array, _wire(slot)) == (other.array, _wire(other))
    }


def _of_slots(path: str, a: Slot, b: Slot) -> Iterator[Difference]:
    if a.name != b.name:
        yield Difference(path, "name", a.name, b.name)
    if a.array != b.array or _kind(a) != _kind(b):
        yield Difference(path, "type", _described(a), _described(b))
    for what, left, right in (
        ("nullable", a.nullable, b.nullable),
        ("compact", a.compact, b.compact),
        ("tag", a.tag, b.tag),
        ("default", _plain(a.default), _plain(b.default)),
        ("ignorable", a.ignorable, b.ignorable),
        ("mapKey", a.map_key, b.map_key),
    ):
        if left != right:
            yield Difference(path, what, left, right)
    if a.item and b.item:
        yield from differences_of(a.item, b.item, path)


def _kind(slot: Slot) -> str:
    """Structs are compared by their fields, since no byte contains their names."""
    return "struct" if slot.item else slot.type


def _described(slot: Slot) -> str:
    tag = "" if slot.tag is None else f"tag {slot.tag}: "
    fields = f"{{{', '.join(each.name for each in slot.item.slots)}}}" if slot.item else ""
    return f"{tag}{'nullable ' if slot.nullable else ''}{'[]' if slot.array else ''}{_kind(slot)}{fields}"


def _plain(default: Any) -> Any:
    if default == ():
        return []
    if default is ...:
        return {}
    return default.hex() if isinstance(default, bytes) else str(default) if isinstance(default, uuid.UUID) else default


def _prefix(layout: Layout) -> str | None:
    return layout.prefix.type if layout.prefix else None


# ---- as text

SENTENCES = {
    Compatibility.SAME: "{reader} reads what {writer} writes",
    Compatibility.SKIPS: "{reader} reads what {writer} writes, and skips tags that it does not know",
    Compatibility.REFUSES: "{reader} REFUSES nulls that {writer} writes",
    Compatibility.MISREADS: "{reader} MISREADS or refuses what {writer} writes",
}


SHOWN = 12
"""The most messages listed that one edition lacks: a release's jars define 200 that are not declared here."""


def _only(letter: str, found: list[tuple[str, Versions | None]]) -> list[str]:
    if not found:
        return []
    more = f" and {len(found) - SHOWN} more (all with --json)" if len(found) > SHOWN else ""
    return [f"only in {letter}: " + ", ".join(f"{message} {versions}" for message, versions in found[:SHOWN]) + more]


def _block(message: MessageDiff) -> Iterator[str]:
    spans = f"{message.a} in both" if message.a == message.b else f"{message.a} in A, {message.b} in B"
    keys = f"; API key {message.keys[0]} in A, {message.keys[1]} in B" if message.keys[0] != message.keys[1] else ""
    yield f"{message.message}: versions {spans}{keys}"
    for (differences, a_of_b, b_of_a, unstable), group in groupby(
        message.versions, lambda each: (each.differences, each.a_of_b, each.b_of_a, each.unstable)
    ):
        versions = list(group)
        span = Versions(versions[0].version, versions[-1].version)
        notes = ["changed without a version bump"] if versions[0].unbumped else []
        notes += [f"unstable in {name}" for name in unstable]
        yield f"  v{span}" + (f" ({', '.join(notes)})" if notes else "")
        for each in differences:
            yield f"    {each.path or 'message'}: {_difference_line(each)}"
        yield "    " + SENTENCES[a_of_b].format(reader="A", writer="B")
        yield "    " + SENTENCES[b_of_a].format(reader="B", writer="A")


def _difference_line(difference: Difference) -> str:
    if difference.what == "field":
        return f"{difference.a} in A, not in B" if difference.a else f"{difference.b} in B, not in A"
    return f"{difference.what}: {_shown(difference.a)} in A, {_shown(difference.b)} in B"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)
