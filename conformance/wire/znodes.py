"""The JSON that brokers store in ZooKeeper: registrations (/brokers/ids/ID) and finalized features (/feature).

``BrokerIdZNode`` has features from version 5 on (KIP-584). ``FeatureZNode`` is version 0 of /features in the draft; as
released it is version 1 of /feature with both levels, and since 3.3.0 also 2 with only the highest level. Releases from
4.0.0 on do not use ZooKeeper.

Strict decoding accepts what the text allows: numbers of 16 bits (584-60), levels of at least 1 (584-01, 584-61), every
key that is written. Lenient decoding accepts what the released readers accept, observed on 2.7.0, 3.2.3 and 3.9.2: text
after the object, repeated keys (the last counts), missing keys that have a default, numbers past 16 bits (the low 16
bits count), and versions above the newest. The drafts have no reader: there both are the same.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import named, span
from kipcheck.conformance.core.values.edition import Edition, Standing, edition as _edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.wire.byte_map import ByteMap, Role, Span
from kipcheck.conformance.wire.constructs.tape import shown
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import Broken, Scan, Text, path_of
from kipcheck.conformance.wire.schema import Layout, Slot

LAST_WITH_ZOOKEEPER: Final = named("last-before-4")
INT16, INT32 = (-0x8000, 0x7FFF), (-0x8000_0000, 0x7FFF_FFFF)
REQUIRED: Final = object()
"""Stands for a missing default."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a node."""

    name: str
    type: str
    """int32, string, nullable string, strings, names (text to text) or ranges (of levels, by feature)."""
    since: int
    default: Any = REQUIRED
    optional: bool = False
    """Whether the released readers accept a node without it."""


KEYS: Final[Mapping[str, tuple[Key, ...]]] = {
    "BrokerIdZNode": (
        Key("version", "int32", 1),
        Key("host", "nullable string", 1, None, True),
        Key("port", "int32", 1, -1, True),
        Key("jmx_port", "int32", 1, -1),
        Key("timestamp", "string", 1, "-1", True),
        Key("endpoints", "strings", 2, ()),
        Key("rack", "nullable string", 3, None, True),
        Key("listener_security_protocol_map", "names", 4, {}, True),
        Key("features", "ranges", 5, {}, True),
    ),
    "FeatureZNode": (
        Key("version", "int32", 0),
        Key("status", "int32", 0, 1),
        Key("features", "ranges", 0, {}),
    ),
}
LEFT_OUT: Final = ("rack",)
"""Keys that are not written where they are null."""


@dataclass(frozen=True)
class ZNode(Layout):
    """A node's JSON as a layout: ``names``, ``encode`` and ``decode``, where bytes are UTF-8."""

    release: str = field(default="", compare=False)
    """The release whose reader lenient decoding follows; empty for a draft, which has none."""
    path: str = ""
    """The path of the node in ZooKeeper."""
    labels: tuple[str, ...] = ()
    """The keys of a feature's entry: lowest and highest level, or the highest alone."""
    lowest: int = 1
    """The least allowed lowest level."""
    unread: tuple[str, ...] = ()
    """The keys, of the node or of a feature's entry, that the released readers skip."""

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple(key for key in KEYS[self.message] if key.since <= self.version)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @cached_property
    def codec(self) -> "NodeCodec":  # type: ignore[override]
        return NodeCodec(self)

    def defaults(self) -> dict[str, Any]:
        return {key.name: self._fresh(key) for key in self.keys}

    def _fresh(self, key: Key) -> Any:
        if key.name == "version":
            return self.version
        return [] if key.default == () else {} if key.default == {} else key.default

    def trace(self, data: bytes, lenient: bool = False) -> ByteMap:
        """Like ``decode``, but with the map of the values, up to the damage if there is any."""
        found, scan, limit = ByteMap(self, data), Scan(data), len(data)
        try:
            found.value = _NodeReader(self, lenient).value(scan)
        except Refused as refused:
            found.damage = refused
            limit = limit if refused.offset is None else refused.offset
        found.spans += self._spans(scan, limit)
        return found

    def _spans(self, scan: Scan, limit: int) -> Iterator[Span]:
        done = 0
        leaves = [leaf for leaf in scan.leaves if leaf.text.end <= limit]
        for number, leaf in enumerate(leaves):
            whole = (
                number + 1 == len(leaves)
                and limit == len(scan.data)
                and not scan.data[leaf.text.end :].strip(b" \t\n\r]}")
            )
            end = limit if whole else leaf.text.end
            names = [step for step in leaf.steps if isinstance(step, str)]
            slot = Slot(names[-1] if len(names) != 2 else names[0], "") if names else None
            value, brackets = leaf.text.value, isinstance(leaf.text.value, Mapping | tuple)
            kind = {str: "string", bool: "boolean", int: "number", float: "number"}.get(type(value), "null")
            path, start = tuple(leaf.steps), leaf.text.offset
            yield Span(done, start - done, Role.SYNTAX, "JSON", path, None, slot, self.message)
            form = "JSON brackets" if brackets else f"JSON {kind}"
            yield Span(start, end - start, Role.JSON, form, path, "empty" if brackets else value, slot, self.message)
            done = end


class NodeCodec:
    """The codec of a node, with the interface of a layout's codec."""

    def __init__(self, layout: ZNode):
        self.layout = layout

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """UTF-8, keys in declaration order, without spaces. Errors: ``Refused``."""
        if not isinstance(value, Mapping):
            raise _refused(self.layout, "type", f"{shown(value)} where an object is wanted", ())
        for name in value:
            if name not in self.layout.names:
                raise _refused(self.layout, "unknown-field", f"{self.layout} has no key of that name", (str(name),))
        full = {**self.layout.defaults(), **value}
        kept = {name: full[name] for name in self.layout.names if name not in LEFT_OUT or full[name] is not None}
        try:
            data = json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise _refused(self.layout, "text", "half a surrogate pair has no UTF-8", ()) from None
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(self.layout, "type", f"no JSON can say it: {error}", ()) from None
        self._read_again(data, kept)
        return data

    def _read_again(self, data: bytes, meant: Mapping[str, Any]) -> None:
        """Errors: ``Refused`` where strict decoding refuses the bytes, or returns another value."""
        try:
            found = self.decode(data)
        except Refused as refused:
            raise Refused(
                refused.kind, refused.why, message=refused.message, version=refused.version, path=refused.path
            ) from None
        for name, entry in meant.get("features", {}).items():
            for label in entry:
                if label not in self.layout.labels:
                    why = "an entry has no key of that name"
                    raise _refused(self.layout, "unknown-field", why, ("features", str(name), str(label)))
        for name, each in meant.items():
            if found[name] != (list(each) if isinstance(each, tuple) else each):
                raise _refused(self.layout, "type", "the keys of an object are text", (name,))

    def decode(self, data: bytes, /, *, lenient: bool = False) -> dict[str, Any]:
        """Errors: ``Refused``, with path and offset."""
        return _NodeReader(self.layout, lenient).value(Scan(bytes(data)))

    def to_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a copy: a node's value is JSON already."""
        return dict(value)

    def from_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a copy: a node's value is JSON already."""
        return dict(value)


class _NodeReader:
    def __init__(self, layout: ZNode, lenient: bool):
        self.layout = layout
        self.lenient = lenient and bool(layout.release)

    def value(self, scan: Scan) -> dict[str, Any]:
        try:
            found = scan.value()
            after = scan.rest(found)
        except Broken as broken:
            raise _refused(self.layout, broken.kind, broken.why, (), broken.offset) from None
        if not isinstance(found.value, Mapping):
            raise _refused(self.layout, "type", f"{shown(_plain(found))} where an object is wanted", (), found.offset)
        if after < len(scan.data) and not self.lenient:
            raise _refused(self.layout, "trailing", f"{len(scan.data) - after} bytes after the object", (), after)
        self._once(found, ())
        return {key.name: self._key(key, found.value.get(key.name), found) for key in self.layout.keys}

    def _once(self, found: Text, steps: tuple[str, ...]) -> None:
        if found.twice and not self.lenient:
            key, offset = found.twice[0]
            raise _refused(self.layout, "json", "the key is there twice", (*steps, key), offset)

    def _key(self, key: Key, found: Text | None, around: Text) -> Any:
        at = (key.name,)
        missing = found is None or (found.value is None and self.lenient)
        if missing and (key.name in LEFT_OUT or (key.optional and self.lenient)):
            return self.layout._fresh(key)
        if found is None:
            raise _refused(self.layout, "missing", "the key is not there", at, around.offset)
        value = self._typed(key, found, at)
        if key.name == "version" and value != self.layout.version and not self._newer(value):
            why = f"version {value}, {self.layout.version} was asked for"
            raise _refused(self.layout, "version", why, at, found.offset)
        if key.name == "status" and value not in (0, 1):
            why = f"status {value} where 0 (disabled) or 1 (enabled) is wanted"
            raise _refused(self.layout, "range", why, at, found.offset)
        if key.name == "features" and "" in value and not self.layout.release:
            raise _refused(self.layout, "range", "a feature without a name", at, found.offset)
        return value

    def _newer(self, version: int) -> bool:
        """Registrations of any version are decoded; features were until 3.3.0 added a second version."""
        if not self.lenient or not self.layout.newest or version < self.layout.version:
            return False
        return self.layout.message == "BrokerIdZNode" or not _has(self.layout.release, "feature-znode-2")

    def _typed(self, key: Key, found: Text, at: tuple[str, ...]) -> Any:
        match key.type:
            case "int32":
                return self._integer(found, at, INT32)
            case "string":
                return self._string(found, at)
            case "nullable string":
                return None if found.value is None else self._string(found, at)
            case "strings":
                elements = self._of(found, Sequence, "an array", at)
                return [self._string(each, (*at, index)) for index, each in enumerate(elements)]
            case "names":
                return {name: self._string(each, (*at, name)) for name, each in self._object(found, at).items()}
            case _:
                return {name: self._range(each, (*at, name)) for name, each in self._object(found, at).items()}

    def _object(self, found: Text, at: tuple[Any, ...]) -> Mapping[str, Text]:
        members: Mapping[str, Text] = self._of(found, Mapping, "an object", at)
        self._once(found, at)
        for name, each in members.items():
            _check_encodable(name, self.layout, at, each.offset)
        return members

    def _of(self, found: Text, kind: Any, wanted: str, at: tuple[Any, ...]) -> Any:
        if not isinstance(found.value, kind) or isinstance(found.value, str):
            raise _refused(self.layout, "type", f"{shown(_plain(found))} where {wanted} is wanted", at, found.offset)
        return found.value

    def _string(self, found: Text, at: tuple[Any, ...]) -> str:
        if not isinstance(found.value, str):
            raise _refused(self.layout, "type", f"{shown(_plain(found))} where text is wanted", at, found.offset)
        _check_encodable(found.value, self.layout, at, found.offset)
        return found.value

    def _integer(self, found: Text, at: tuple[Any, ...], bounds: tuple[int, int]) -> int:
        if not isinstance(found.value, int) or isinstance(found.value, bool):
            raise _refused(
                self.layout, "type", f"{shown(_plain(found))} where a whole number is wanted", at, found.offset
            )
        _bounded(found.value, bounds, self.layout, at, found.offset)
        return found.value

    def _range(self, found: Text, at: tuple[Any, ...]) -> dict[str, int]:
        entry = self._object(found, at)
        levels = {}
        for label in self.layout.labels:
            if label not in entry:
                raise _refused(self.layout, "missing", "the key is not there", (*at, label), found.offset)
            levels[label] = self._integer(entry[label], (*at, label), INT32 if self.lenient else INT16)
        for name, each in entry.items():
            if name not in levels:
                self._ignored(each, (*at, name))
        late = self.layout.message == "FeatureZNode" and _has(self.layout.release, "feature-znode-2")
        low = levels if late or not self.lenient else {label: _int16(level) for label, level in levels.items()}
        _check_range(self.layout, at, low, found.offset)
        return {label: _int16(level) for label, level in levels.items()}

    def _ignored(self, found: Text, at: tuple[Any, ...]) -> None:
        """Checks other keys of an entry: text or a number in the draft (584-64), a number as released."""
        if not self.layout.release and isinstance(found.value, str | int | float) and not isinstance(found.value, bool):
            return
        self._integer(found, at, INT32)


def _check_range(layout: ZNode, at: tuple[Any, ...], levels: Mapping[str, int], offset: int | None = None) -> None:
    for label in layout.labels:
        if levels[label] < layout.lowest:
            why = f"{levels[label]} where {layout.lowest} or more is wanted"
            raise _refused(layout, "range", why, (*at, label), offset)
    low, high = levels[layout.labels[0]], levels[layout.labels[-1]]
    if low > high:
        raise _refused(layout, "range", f"the lowest level, {low}, is above the highest, {high}", at, offset)


def _bounded(
    value: int, bounds: tuple[int, int], layout: ZNode, at: tuple[Any, ...], offset: int | None = None
) -> None:
    if not bounds[0] <= value <= bounds[1]:
        why = f"{shown(value)} is not from {bounds[0]} to {bounds[1]}"
        raise _refused(layout, "range", why, at, offset)


def _check_encodable(text: str, layout: ZNode, at: tuple[Any, ...], offset: int | None = None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(layout, "text", "half a surrogate pair has no UTF-8", at, offset) from None


def _int16(number: int) -> int:
    return (number + 0x8000 & 0xFFFF) - 0x8000


def _plain(found: Text) -> Any:
    match found.value:
        case str() | int() | float() | None:
            return found.value
        case Mapping():
            return {}
        case _:
            return []


def _refused(layout: ZNode, kind: str, why: str, steps: tuple[Any, ...], offset: int | None = None) -> Refused:
    return Refused(kind, why, message=layout.message, version=layout.version, path=path_of(steps), offset=offset)


# The nodes of an edition


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node, with the versions that one edition has."""

    name: str
    edition: Edition
    versions: tuple[int, ...]

    def at(self, version: int) -> ZNode:
        """Errors: LookupError with the existing versions."""
        if version not in self.versions:
            there = ", ".join(map(str, self.versions))
            raise LookupError(f"{self.name} has no version {version} in {self.edition}; it has {there}")
        return _made(self.edition, self.name, version)


def znode_spec(edition: str | Edition, message: str) -> NodeSpec:
    """The node in ``edition``. Errors: LookupError with the existing nodes."""
    found = _edition(edition) if isinstance(edition, str) else edition
    versions = _versions(found).get(message, ())
    if not versions:
        raise LookupError(f"{found} has no node {message}; it has {', '.join(znode_messages(found)) or 'none'}")
    return NodeSpec(message, found, versions)


def znode(edition: str | Edition, message: str, version: int) -> ZNode:
    """The node's JSON at ``version`` in ``edition``. Errors: LookupError with the existing nodes or versions."""
    return znode_spec(edition, message).at(version)


def znode_messages(edition: str | Edition) -> tuple[str, ...]:
    """The nodes of the edition."""
    return tuple(_versions(_edition(edition) if isinstance(edition, str) else edition))


def znode_versions(edition: str | Edition, message: str) -> tuple[int, ...]:
    """Versions in ascending order; empty where the edition does not have the node."""
    return _versions(_edition(edition) if isinstance(edition, str) else edition).get(message, ())


@cache
def _made(edition: Edition, message: str, version: int) -> ZNode:
    release, draft = _release(edition), edition.name == "kip-584"
    registration = message == "BrokerIdZNode"
    if registration:
        path, labels = "/brokers/ids/ID", ["min_version", "max_version"]
    else:
        path = "/features" if draft else "/feature"
        labels = ["min_version_level"] * (version < 2) + ["max_version_level"]
    unread: tuple[str, ...] = ()
    if release and not draft:
        unread = _unread(registration, version, _has(release, "feature-znode-2"))
    # Since 3.8.0 the lowest level that a broker supports may be 0 (KAFKA-17011).
    lowest = 0 if registration and not draft and _has(release, "lowest-level-0") else 1
    return ZNode(
        message, version, False, (), edition=str(edition), newest=version == _versions(edition)[message][-1],
        release="" if draft else release, path=path, labels=tuple(labels), lowest=lowest, unread=unread,
    )  # fmt: skip


def _unread(registration: bool, version: int, maxima_only: bool) -> tuple[str, ...]:
    """Of a registration the time, and host and port where it has endpoints; since 3.3 the lowest finalized levels."""
    if registration:
        return ("timestamp",) if version == 1 else ("timestamp", "host", "port")
    return ("min_version_level",) if maxima_only else ()


@cache
def _versions(edition: Edition) -> Mapping[str, tuple[int, ...]]:
    release = _release(edition)
    if not release or Release.parse(release) not in releases(span("zookeeper")):
        return {}
    if edition.name == "kip-584":
        return {"BrokerIdZNode": (1, 2, 3, 4, 5), "FeatureZNode": (0,)}
    registrations = 5 if _has(release, "broker-znode-5") else 4 if _has(release, "broker-znode-4") else 3
    found = {"BrokerIdZNode": tuple(range(1, registrations + 1))}
    if _has(release, "feature-znode"):
        found["FeatureZNode"] = (1, 2) if _has(release, "feature-znode-2") else (1,)
    return found


def _release(edition: Edition) -> str:
    """The release whose form the nodes have. ``apache`` alone: the newest release with ZooKeeper."""
    if edition.standing is Standing.DEFINITIONS:
        return ""
    return edition.release if edition.exact else LAST_WITH_ZOOKEEPER


def _has(release: str, behaviour: str) -> bool:
    return bool(release) and Release.parse(release) in releases(span(behaviour))
