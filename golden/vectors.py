"""Golden vectors: bytes that real Kafka made, with the value behind them and what releases make of them.

``vectors/EDITION/MESSAGE.json`` (``schema.json`` explains every key) are data for readers in any language;
``lock.json`` holds a digest of each vector and of each jar that made one, so that none changes or vanishes unseen.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from conformance.core.edition import edition as edition_named
from conformance.wire import constructs, layout
from conformance.wire.errors import Refused
from conformance.wire.schema import Layout

ACCEPTED: Final = "accepted"
REWRITTEN: Final = "rewritten"
TEXT: Final = "text"
"""The origin of a vector that follows from a text and that no jar made."""


class Malformed(ValueError):
    """A file of vectors that is not what ``schema.json`` says; which, and what."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Some bytes of one message at one version, and what they mean."""

    edition: str
    message: str
    version: int
    note: str
    """What is special about it, in a few words; no other of the same message and version has the same."""
    hex: str
    value: Mapping[str, Any] | None = field(hash=False)
    """In the form of JSON; None where the bytes have none and must be refused."""
    made_by: str
    """The jar's coordinates, or ``text``."""
    outcomes: Mapping[str, str] = field(hash=False, default_factory=dict)
    """What exact releases do with the bytes: accepted, rewritten, or rejected or internal and the class thrown."""

    @property
    def name(self) -> str:
        return f"{self.edition}/{self.message} v{self.version} {self.note}"

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)

    @property
    def layout(self) -> Layout:
        return layout(self.edition, self.message, self.version)

    @property
    def digest(self) -> str:
        """Of everything in it."""
        everything = [
            self.edition, self.message, self.version, self.note, self.hex, self.value, self.made_by, self.outcomes,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Lock:
    """What was reviewed."""

    jars: Mapping[str, str]
    """The SHA-256 of the jar at each coordinate."""
    vectors: Mapping[str, str]
    """The digest of each vector, by its name."""


def vectors(message: str | None = None, root: Traversable | None = None) -> tuple[Vector, ...]:
    """All there are, or those of one message. Errors: ``Malformed``."""
    folder = (root or files("golden")) / "vectors"
    found = (each for edition in _sorted(folder) for file in _sorted(edition) for each in _of_file(edition.name, file))
    return tuple(each for each in found if message in (None, each.message))


def lock(root: Traversable | None = None) -> Lock:
    """``lock.json``."""
    held = json.loads(((root or files("golden")) / "lock.json").read_text("utf-8"))
    return Lock(held["jars"], held["vectors"])


def verify(root: Traversable | None = None) -> list[str]:
    """One line for each vector that is not what was reviewed, or that a reading of ours takes for something else."""
    found = vectors(root=root)
    return [*unreviewed(found, lock(root)), *(line for each in found for line in check(each))]


def unreviewed(found: Iterable[Vector], held: Lock) -> Iterator[str]:
    """How the vectors differ from those in the lock."""
    here = {}
    for each in found:
        if each.name in here:
            yield f"{each.name}: it is there twice"
        here[each.name] = each
        if each.made_by != TEXT and each.made_by not in held.jars:
            yield f"{each.name}: the lock has no digest of {each.made_by}"
    for name in sorted(here.keys() | held.vectors.keys()):
        if name not in here:
            yield f"{name}: it is gone"
        elif name not in held.vectors:
            yield f"{name}: it is new, and not in the lock"
        elif here[name].digest != held.vectors[name]:
            yield f"{name}: it is not what was reviewed"


def check(vector: Vector) -> Iterator[str]:
    """Both readings of ours, both ways, strictly; and leniently as each release does."""
    at = vector.layout
    for who, read, write in (
        ("the codec", at.decode, at.encode),
        ("the second reading", lambda data: constructs.read(at, data), lambda value: constructs.build(at, value)),
    ):
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
    for release, outcome in vector.outcomes.items():
        yield from _as_the_release(vector, release, outcome)


def _as_the_release(vector: Vector, release: str, outcome: str) -> Iterator[str]:
    edition = vector.edition if edition_named(vector.edition).exact else f"{vector.edition}@{release}"
    try:
        layout(edition, vector.message, vector.version).decode(vector.data, lenient=True)
    except Refused as refused:
        if outcome in (ACCEPTED, REWRITTEN):
            yield f"{vector.name}: {release} accepts it, and our lenient reading does not: {refused}"
    else:
        if outcome not in (ACCEPTED, REWRITTEN):
            yield f"{vector.name}: {release} says {outcome}, and our lenient reading accepts it"


def _of_file(edition: str, file: Traversable) -> Iterator[Vector]:
    try:
        held = json.loads(file.read_text("utf-8"))
        if held["edition"] != edition or f"{held['message']}.json" != file.name:
            raise Malformed(f"{edition}/{file.name} is of {held['edition']}/{held['message']}")
        made_by = held["origin"]["jar"] if held["origin"]["kind"] == "jar" else TEXT
        for each in held["vectors"]:
            yield Vector(
                edition, held["message"], each["version"], each["note"], each["hex"], each["value"],
                each.get("made_by", made_by), each.get("outcomes", {}),
            )  # fmt: skip
    except (KeyError, TypeError, json.JSONDecodeError) as wrong:
        raise Malformed(f"{edition}/{file.name}: {wrong!r}") from None


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda each: each.name)
