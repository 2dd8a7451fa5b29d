"""Reads golden vectors and their lock from files."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.schema import Layout
from kipcheck.golden.outcomes import by_release, takes

TEXT: Final = "text"
"""The origin of a vector that is derived from a text and not made by a jar."""
REGRESSIONS: Final = "regressions"
"""The folder of conversations that failed once: see ``kipcheck.golden.regressions``."""


class Malformed(ValueError):
    """A file of vectors that violates ``schema.json``; the text names the file and the error."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of the bytes of a vector from a text, and the reason for them."""

    offset: int
    size: int
    field: str
    why: str
    clause: str
    """The clause of the text, or the number of a choice where the text leaves one."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Some bytes of one message at one version, and their meaning."""

    edition: str
    message: str
    version: int
    note: str
    """What is special about it, in a few words; unique within message and version."""
    hex: str
    value: Mapping[str, Any] | None = field(hash=False)
    """As JSON; None where a strict reader refuses the bytes."""
    made_by: str
    """The coordinates of the jar, or ``text``."""
    outcomes: Mapping[str, str] = field(hash=False, default_factory=dict)
    """What exact releases do with the bytes: see ``kipcheck.golden.outcomes``."""
    damage: str | None = None
    """The kind of damage applied to the jar's bytes."""
    of: str | None = None
    """The note of the undamaged vector, of the same version."""
    written_by: tuple[str, ...] = ()
    """The releases whose own classes write exactly these bytes, where each was tried."""
    parts: tuple[Part, ...] = ()
    """For a vector from a text: all of its bytes, explained."""

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
    def leading(self) -> int:
        """The version in the bytes, which may be damaged; the message's version where the bytes have none."""
        prefix = self.layout.prefix
        size = {"int16": 2, "int32": 4}[prefix.type] if prefix is not None else 0
        if not size or len(self.data) < size:
            return self.version
        return int.from_bytes(self.data[:size], "big", signed=True)

    @property
    def refused(self) -> bool:
        """Whether all tested releases refuse the bytes."""
        return bool(self.outcomes) and not any(map(takes, self.outcomes.values()))

    @property
    def digest(self) -> str:
        """A hash of all fields."""
        parts = [[each.offset, each.size, each.field, each.why, each.clause] for each in self.parts]
        everything = [
            self.edition, self.message, self.version, self.note, self.hex, self.value, self.made_by, self.outcomes,
            self.damage, self.of, self.written_by, parts,
        ]  # fmt: skip
        return _digest(everything)


@dataclass(frozen=True, slots=True)
class Lock:
    """The reviewed state."""

    jars: Mapping[str, str]
    """The SHA-256 of the jar at each coordinate."""
    vectors: Mapping[str, str]
    """The digest of each vector, by its name."""
    regressions: Mapping[str, str]
    """The digest of each regression, by its id."""


def vectors(message: str | None = None, root: Traversable | None = None) -> tuple[Vector, ...]:
    """All vectors, or those of one message. Errors: ``Malformed``."""
    folder = (root or files("kipcheck.golden")) / "vectors"
    wanted = None if message is None else f"{message}.json"
    return tuple(
        each
        for edition in _editions(folder)
        for file in _sorted(edition)
        if wanted in (None, file.name)
        for each in _of_file(edition.name, file)
    )


def lock(root: Traversable | None = None) -> Lock:
    """``lock.json``."""
    content = json.loads(((root or files("kipcheck.golden")) / "lock.json").read_text("utf-8"))
    named = {f"{name} {note}": each for name, some in content["vectors"].items() for note, each in some.items()}
    return Lock(content["jars"], named, content.get("regressions", {}))


def regression_digests(root: Traversable | None = None) -> dict[str, str]:
    """A digest of the content of each regression, by its id: the name of its file."""
    folder = (root or files("kipcheck.golden")) / "vectors" / REGRESSIONS
    if not folder.is_dir():
        return {}
    return {each.name.removesuffix(".json"): _digest(json.loads(each.read_text("utf-8"))) for each in _sorted(folder)}


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def jars(root: Traversable | None = None) -> Iterator[tuple[str, Mapping[str, str]]]:
    """For each file: its edition and message, and the digests of jars in it."""
    for edition in _editions((root or files("kipcheck.golden")) / "vectors"):
        for file in _sorted(edition):
            content = json.loads(file.read_text("utf-8"))
            yield f"{edition.name}/{content['message']}", content["origin"].get("jars", {})


def _of_file(edition: str, file: Traversable) -> Iterator[Vector]:
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["edition"] != edition or f"{content['message']}.json" != file.name:
            raise Malformed(f"{edition}/{file.name} contains vectors of {content['edition']}/{content['message']}")
        origin = content["origin"]
        made_by = next(iter(origin["jars"])) if origin["kind"] == "jar" else TEXT
        asked = {int(version): text.split() for version, text in content.get("asked", {}).items()}
        for each in content["vectors"]:
            version = each["version"]
            yield Vector(
                edition, content["message"], version, each["note"], each["hex"], each["value"],
                each.get("made_by", made_by), by_release(each.get("outcomes", {}), asked.get(version, ())),
                each.get("damage"), each.get("of"), tuple(each.get("written_by", "").split()),
                tuple(Part(**part) for part in each.get("parts", ())),
            )  # fmt: skip
    except (KeyError, TypeError, AttributeError, StopIteration, ValueError) as wrong:
        if isinstance(wrong, Malformed):
            raise
        raise Malformed(f"{edition}/{file.name}: {wrong!r}") from None


def _editions(folder: Traversable) -> list[Traversable]:
    """The folders of editions, without that of ``kipcheck.golden.regressions``, which has no vectors."""
    return [each for each in _sorted(folder) if each.name != REGRESSIONS]


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda each: each.name)
