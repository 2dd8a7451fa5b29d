"""A message is declared once, in the grammar of Kafka's message JSON, and resolved once for each version.

In addition to Kafka's grammar a declaration may have:

* ``releases`` on a field: the releases whose definition has it (a tag added without a new version),
* ``variants`` on a field or a message: attributes that differ in some releases, each with its ``releases``,
* ``prefix`` on a message: ``{"type": "int16"}``, a version before the bytes; with a ``name`` it is part of the value,
* ``future`` on a message: the fields that are read from any version above the newest,
* the types ``utf`` (uint16 length, modified UTF-8), ``utf16`` (int32 count of UTF-16 units) and ``rest`` (to the end).
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Protocol, TypeAlias

from kipcheck.conformance.core.files.releases_table import patches, span
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.wire.errors import Entries

Raw: TypeAlias = Mapping[str, Any]

INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16}
SCALARS = frozenset({*INTEGERS, "bool", "float64", "string", "bytes", "records", "uuid", "utf", "utf16", "rest"})
SERVED = "served"
"""The folder of messages that only a broker of kipcheck's own knows."""
ZERO_UUID = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class Versions:
    low: int
    high: int | None

    @classmethod
    def parse(cls, text: str) -> "Versions":
        if text == "none":
            return NEVER
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version and (self.high is None or version <= self.high)

    def meets(self, other: "Versions") -> bool:
        """Whether some version is in both."""
        highs = [high for high in (self.high, other.high) if high is not None]
        return not highs or max(self.low, other.low) <= min(highs)

    def __str__(self) -> str:
        return f"{self.low}-{self.high}" if self.high != self.low else f"{self.low}"


NEVER = Versions(1, 0)


@dataclass(frozen=True, slots=True)
class Slot:
    """One field on the wire at one version, with all version conditions resolved."""

    name: str
    type: str
    """One of ``SCALARS``, or the name of the struct that ``item`` lays out; for an array, that of an element."""
    item: "Layout | None" = None
    array: bool = False
    nullable: bool = False
    compact: bool = False
    """Lengths are unsigned varints of the length plus one."""
    tag: int | None = None
    default: Any = None
    """The scalar; None for null; ``()`` for an empty array, ``...`` for a struct of defaults: see ``fresh``."""
    ignorable: bool = False
    map_key: bool = False
    about: str = ""

    def fresh(self) -> Any:
        """A new object with the default value."""
        if self.default == ():
            return []
        if self.default is ...:
            assert self.item is not None
            return self.item.defaults()
        return self.default


@dataclass(frozen=True, slots=True)
class Absent:
    """A field that is declared and missing in this version."""

    name: str
    default: Any
    ignorable: bool
    tag: int | None = None
    """Its tag in the versions that have it."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The version number before the bytes."""

    type: str
    """int16 or int32."""
    name: str | None = None
    """Its key in the value; None where the value does not contain it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that readers of some releases enforce (class ``Readable`` of 4.2.2 and from 4.4.0 on)."""

    elements: int = 1_000_000
    tags: int = 10_000


class Decode(Protocol):
    def __call__(self, data: bytes, /, *, lenient: bool = False) -> dict[str, Any]: ...


class Codec(Protocol):
    """The compiled functions of one layout: see ``kipcheck.conformance.wire.codec``."""

    @property
    def encode(self) -> Callable[[Mapping[str, Any]], bytes]: ...
    @property
    def decode(self) -> Decode: ...
    @property
    def decode_lenient(self) -> Callable[[bytes], dict[str, Any]]: ...
    def decode_bounded(self, data: bytes, entries: Entries, *, lenient: bool = False) -> dict[str, Any]: ...
    @property
    def to_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]: ...
    @property
    def from_json(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]: ...
    @property
    def source(self) -> str: ...


@dataclass(frozen=True)
class Layout:
    """A message, or a struct in it, at one version of one edition."""

    message: str
    version: int
    flexible: bool
    slots: tuple[Slot, ...]
    """In declaration order; on the wire the tagged fields come last, by tag."""
    absent: tuple[Absent, ...] = ()
    prefix: Prefix | None = None
    limits: Limits | None = field(default=None, compare=False)
    edition: str = field(default="", compare=False)
    newest: bool = field(default=True, compare=False)
    """Whether the edition has no higher version of this message."""

    def __hash__(self) -> int:
        return hash((self.message, self.version))  # caches ask for it at every message that is judged

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields, with a lower-case first letter."""
        led = (self.prefix.name,) if self.prefix and self.prefix.name else ()
        return (*led, *(slot.name for slot in self.slots))

    @cached_property
    def untagged(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if slot.tag is None)

    @cached_property
    def tagged(self) -> tuple[Slot, ...]:
        return tuple(sorted((slot for slot in self.slots if slot.tag is not None), key=lambda slot: slot.tag or 0))

    @cached_property
    def reserved(self) -> frozenset[int]:
        """The tags that the declaration has in other versions only: generated readers refuse them in this one."""
        return frozenset(each.tag for each in self.absent if each.tag is not None) - {slot.tag for slot in self.tagged}

    @cached_property
    def declared_tags(self) -> frozenset[int]:
        """The tags of this version, and the reserved ones."""
        return self.reserved | {slot.tag for slot in self.tagged if slot.tag is not None}

    @cached_property
    def codec(self) -> Codec:
        """Compiled at the first use of each of its functions, and kept."""
        return _attached.codec(self)

    def defaults(self) -> dict[str, Any]:
        """A value with every field at its default."""
        led = {self.prefix.name: self.version} if self.prefix and self.prefix.name else {}
        return {**led, **{slot.name: slot.fresh() for slot in self.slots}}

    @cached_property
    def encode(self) -> Callable[[Mapping[str, Any]], bytes]:
        """``encode(value)``: the bytes of ``value``. Errors: ``Refused``, with the path."""
        return self.codec.encode  # the compiled function itself, for speed

    @cached_property
    def decode(self) -> Decode:
        """``decode(data, lenient=False)``: bytes as bytes, uuids as ``uuid.UUID``, every field of the version present.

        ``lenient`` accepts exactly what Kafka's own reader of this edition's release accepts (see ``lenient``).
        Errors: ``Refused``, with path and offset.
        """
        return self.codec.decode

    def __getstate__(self) -> dict[str, Any]:
        """The state without compiled functions."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        return f"{self.message} v{self.version}"


@dataclass(frozen=True, slots=True)
class Attached:
    """The two parts of this package that a layout and an edition lead to, and that themselves import this module."""

    codec: Callable[[Layout], Codec]
    definitions: Callable[[Edition], Mapping[str, Raw]]
    """Of a ``jar:`` or ``maven:`` edition. Errors: LookupError."""


_attached: Attached


def attach(parts: Attached) -> None:
    """``kipcheck.conformance.wire`` calls it when it is imported, and so before any other module of the package is."""
    global _attached
    _attached = parts


def lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]


@dataclass(frozen=True)
class MessageSpec:
    """A declaration, as one edition has it."""

    name: str
    kind: str
    """request, response, header, data, or the kind of record."""
    api_key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Raw, ...]
    edition: Edition
    structs: Mapping[str, Raw] = field(default_factory=dict)
    prefix: Prefix | None = None
    future: tuple[Raw, ...] = ()
    unstable: int | None = None
    """The version that the definition marks as unstable."""

    @classmethod
    def of(cls, raw: Raw, edition: Edition, versions: Versions | None = None) -> "MessageSpec":
        """``versions``: those of the edition, where they differ from the declaration's."""
        raw = _as_of(raw, edition)
        prefix = raw.get("prefix")
        valid = Versions.parse(raw["validVersions"])
        return cls(
            raw["name"],
            raw["type"],
            raw.get("apiKey"),
            versions or valid,
            Versions.parse(raw.get("flexibleVersions", "none")),
            tuple(raw.get("fields", ())),
            edition,
            {each["name"]: each for each in raw.get("commonStructs", ())},
            prefix and Prefix(prefix["type"], prefix.get("name")),
            tuple(raw.get("future", ())),
            valid.high if raw.get("latestVersionUnstable") else None,
        )

    def at(self, version: int) -> Layout:
        """Errors: LookupError with the existing versions."""
        return _at(self, version)

    def __iter__(self) -> Iterator[Layout]:
        """The layouts of all versions."""
        assert self.versions.high is not None
        return (self.at(version) for version in range(self.versions.low, self.versions.high + 1))

    def __hash__(self) -> int:
        return hash((self.name, self.edition))

    def resolve(self, version: int) -> Layout:
        """``at``, without caching."""
        if version in self.versions:
            fields, flexible = self.fields, version in self.flexible
        elif self._reads_ahead and self.versions.high is not None and version > self.versions.high:
            fields, flexible = self.future, False
        else:
            raise LookupError(f"{self.name} has no version {version} in {self.edition}; it has {self.versions}")
        return self._struct(self.name, fields, version, flexible, top=True)

    @property
    def _reads_ahead(self) -> bool:
        """Whether versions above the newest can be decoded: only where the newest has the second number, not before
        Streams 2.0.
        """
        high = self.versions.high
        return high is not None and any(high in Versions.parse(raw["versions"]) for raw in self.future)

    def _struct(self, name: str, fields: tuple[Raw, ...], version: int, flexible: bool, top: bool = False) -> Layout:
        slots: list[Slot] = []
        absent: list[Absent] = []
        form = self._form(version)
        for raw in fields:
            if "releases" in raw and Release.parse(form.release) not in releases(raw["releases"]):
                continue
            raw = _as_of(raw, form)
            versions = Versions.parse(raw["versions"])
            if version in versions:
                slots.append(self._slot(raw, version, flexible))
            elif versions.meets(self.versions):
                tag = int(raw["tag"]) if flexible and "tag" in raw else None
                absent.append(Absent(lower_first(raw["name"]), _default(raw), _true(raw.get("ignorable")), tag))
        # A name may be declared twice for disjoint versions: it is absent only where neither applies.
        present = {slot.name for slot in slots}
        return Layout(
            name,
            version,
            flexible,
            tuple(slots),
            tuple(each for each in absent if each.name not in present),
            self.prefix if top else None,
            _limits(self.edition),
            str(self.edition),
            version == self.versions.high,
        )

    def _form(self, version: int) -> Edition:
        """Without an exact release, each version has the form of the newest release that supports it."""
        if self.edition.exact:
            return self.edition
        return replace(self.edition, release=_newest_supporting_release(self.name, version) or self.edition.release)

    def _slot(self, raw: Raw, version: int, flexible: bool) -> Slot:
        array, kind = raw["type"].startswith("[]"), raw["type"].removeprefix("[]")
        item = None
        if kind not in SCALARS:
            struct = raw if "fields" in raw else self.structs[kind]
            item = self._struct(kind, tuple(struct["fields"]), version, flexible)
        compact = flexible and ("flexibleVersions" not in raw or version in Versions.parse(raw["flexibleVersions"]))
        tagged = version in Versions.parse(raw.get("taggedVersions", "none"))
        return Slot(
            lower_first(raw["name"]),
            kind,
            item,
            array,
            version in Versions.parse(raw.get("nullableVersions", "none")),
            compact,
            int(raw["tag"]) if tagged else None,
            _default(raw),
            _true(raw.get("ignorable")),
            _true(raw.get("mapKey")),
            raw.get("about", ""),
        )


@cache
def _at(spec: MessageSpec, version: int) -> Layout:
    return spec.resolve(version)


def _as_of(raw: Raw, edition: Edition) -> Raw:
    """Applies the variants of the edition's release."""
    for variant in raw.get("variants", ()):
        if edition.release and Release.parse(edition.release) in releases(variant["releases"]):
            raw = {**raw, **{key: value for key, value in variant.items() if key != "releases"}}
    return raw


def _true(given: object) -> bool:
    """Flags are booleans, in some definitions text."""
    return str(given).lower() == "true"


def _limits(edition: Edition) -> Limits | None:
    known = edition.release and Release.parse(edition.release) in releases(span("limits-of-array-sizes"))
    return Limits() if known else None


def _default(raw: Raw) -> Any:
    """Kafka's rule: the declared default, else zero, false, empty, or a struct of defaults."""
    kind, given = raw["type"], raw.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return ()
    if kind in INTEGERS:
        return int(str(given), 0) if given not in (None, "") else 0
    match kind:
        case "bool":
            return _true(given)
        case "float64":
            return float(given or 0)
        case "string" | "utf" | "utf16":
            return given or ""
        case "bytes" | "rest":
            return b""
        case "records":
            return None
        case "uuid":
            return ZERO_UUID
        case _:
            return ...


@cache
def release_table() -> dict[str, Any]:
    """The exact releases, and the supported versions of each message by release (``schemas/releases.json``).

    ``{"releases": ["0.10.0.0", ...], "messages": {"JoinGroup": {"0.10.0.0": [0, 0], "0.10.1.0": [0, 1], ...}}}``:
    a range applies from its release until the next one named, in the order of release numbers; null ends it.
    ``"served"`` is the same of the messages of ``served``.
    """
    table = json.loads((files("kipcheck.conformance.wire") / "schemas" / "releases.json").read_text())
    return {"releases": list(patches()), **table}


def family(message: str) -> str:
    """The name under which the release table lists a message: JoinGroup for JoinGroupRequest and JoinGroupResponse."""
    if message in ("RequestHeader", "ResponseHeader"):
        return message
    return message.removesuffix("Request").removesuffix("Response")


def stable_versions(message: str, release: str) -> Versions | None:
    """The stable versions of ``message`` that the exact release ``release`` supports."""
    table, name = release_table(), family(message)
    return versions_at(table["messages"].get(name) or table[SERVED].get(name, {}), Release.parse(release))


def versions_at(changes: Mapping[str, list[int] | None], at: Release) -> Versions | None:
    """The range that applies at a release: each applies from its release until the next one named; null ends it."""
    found = None
    for first, versions in sorted((Release.parse(text), each) for text, each in changes.items()):
        if first <= at:
            found = versions
    return Versions(*found) if found else None


@cache
def _newest_supporting_release(message: str, version: int) -> str | None:
    for release in reversed(release_table()["releases"]):
        versions = stable_versions(message, release)
        if versions and version in versions:
            return str(release)
    return None


def messages(edition: Edition) -> tuple[str, ...]:
    """The messages that the edition declares, in alphabetical order."""
    if edition.standing is Standing.DEFINITIONS:
        return tuple(sorted(_attached.definitions(edition)))
    names = {*_declared("apache"), *(_declared(edition.name))}
    if edition.exact:
        own = _declared(edition.name) if edition.standing is Standing.DRAFT else ()
        names = {name for name in names if name in own or stable_versions(name, edition.release)}
    return tuple(sorted(names))


def served(edition: Edition) -> tuple[str, ...]:
    """The messages that a broker on loopback answers and no check is about, in alphabetical order."""
    names = () if edition.standing is Standing.DEFINITIONS else _declared(SERVED)
    return tuple(each for each in names if not edition.exact or stable_versions(each, edition.release))


@cache
def _declared(folder: str) -> tuple[str, ...]:
    root = files("kipcheck.conformance.wire") / "schemas" / folder
    if not root.is_dir():
        return ()
    return tuple(sorted(each.name.removesuffix(".json") for each in root.iterdir() if each.name.endswith(".json")))


def is_changed_by(edition: Edition, message: str) -> bool:
    """Whether the text of a draft changes this message."""
    return edition.standing is Standing.DRAFT and message in _declared(edition.name)


@cache
def spec(edition: Edition, message: str) -> MessageSpec:
    """The declaration of ``message`` in ``edition``. Errors: LookupError with the existing messages."""
    if edition.standing is Standing.DEFINITIONS:
        found = _attached.definitions(edition)
        if message not in found:
            raise LookupError(f"{edition} defines no {message}")
        return MessageSpec.of(found[message], edition)
    if edition.exact and str(edition.release) not in release_table()["releases"]:
        raise LookupError(f"unknown release {edition.release} of Apache Kafka; use one from 0.10.0.0 to {_newest()}")
    own = edition.standing is Standing.DRAFT and message in _declared(edition.name)
    folder = edition.name if own else SERVED if message in _declared(SERVED) else "apache"
    if message not in _declared(folder):
        names = messages(edition)
        near = hint(message, names, 0.4) or f"; it has {len(names)}, for example {', '.join(names[:3])}"
        raise LookupError(f"{edition} has no message {message}{near}")
    raw = json.loads((files("kipcheck.conformance.wire") / "schemas" / folder / f"{message}.json").read_text())
    if own or not edition.exact:
        return MessageSpec.of(raw, edition)
    versions = stable_versions(message, edition.release)
    if versions is None:
        raise LookupError(f"{edition} does not support {message}")
    return MessageSpec.of(raw, edition, versions)


def _newest() -> str:
    return str(release_table()["releases"][-1])
