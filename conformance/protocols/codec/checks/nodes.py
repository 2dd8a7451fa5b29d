"""Checks of codecs for the JSON nodes that brokers keep in ZooKeeper, in every version."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, TypeAlias, cast

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec import invariants
from kipcheck.conformance.protocols.codec.checks.family import Subject, coverage, explained, place
from kipcheck.conformance.protocols.codec.strategies import as_json, from_node
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Exhibit, Family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.znodes import ZNode, znode_messages, znode_versions
from kipcheck.strategies.compiled import compiled

Value: TypeAlias = dict[str, Any]


def subjects(edition_name: str) -> Iterator[Subject]:
    for message in znode_messages(edition_name):
        for version in znode_versions(edition_name, message):
            yield Subject(edition_name, layout_of(edition_name, message, version))


def subject(edition_name: str, message: str, version: int | None) -> Subject:
    assert version is not None
    return Subject(edition_name, layout_of(edition_name, message, version))


def claimed(subject: Subject, claims: Claims) -> bool:
    return claims.has(subject.name, subject.version)


def node_of(subject: Subject) -> ZNode:
    return cast(ZNode, subject.layout)


def drawn(subject: Subject, random: Random) -> Value:
    value: Value = compiled(from_node(node_of(subject)))(random)
    return value


def shown(history: History, violation: Violation) -> list[Exhibit]:
    """The text of the failing step, a row for each value."""
    guilty = history.ops[violation.at[-1]].step
    layout = layout_of(history.case.edition, guilty["message"], guilty["version"])
    try:
        data = bytes.fromhex(guilty["hex"]) if "hex" in guilty.body else layout.encode(guilty["value"])
    except Refused:
        return []
    return explained(layout, data, violation)


NODES: Family[Subject] = Family(
    Role.CODEC,
    subjects,
    subject,
    claimed,
    node=lambda subject: from_node(node_of(subject)),
    draw=drawn,
    exhibits=shown,
    coverage=coverage,
    place=place,
)


def round_trip(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """Encodes the node, and decodes it as usually written and in another legal form."""
    node = as_json(node_of(subject), value)
    yield Conversation((subject.encode(node),), "to write")
    yield Conversation((subject.decode(subject.layout.encode(node)),), "plain")
    turned = {**dict(reversed(node.items())), "later": [{"a": None}]}
    turned["features"] = {name: {**entry, "since": 7} for name, entry in node.get("features", {}).items()}
    if "features" not in node:
        del turned["features"]
    yield Conversation((subject.decode(json.dumps(turned, indent=2).encode()),), "in another order")


def flawed(subject: Subject, value: Value, random: Random) -> Iterator[Conversation]:
    """The value with one flaw, for each applicable flaw."""
    for kind, spoil in FLAWS.items():
        data = spoil(node_of(subject), as_json(node_of(subject), value))
        if data is not None:
            yield Conversation((subject.decode(data),), kind)


def flawed_again(subject: Subject, value: Value, kind: str) -> Iterable[Conversation]:
    data = FLAWS[kind](node_of(subject), as_json(node_of(subject), value))
    return () if data is None else (Conversation((subject.decode(data),), kind),)


Spoil: TypeAlias = Callable[[ZNode, Value], bytes | None]


def _with(name: str, value: Any) -> Spoil:
    """Replaces the value of a key of the node."""
    return lambda layout, node: _text({**node, name: value}) if name in layout.names else None


def _without(name: str) -> Spoil:
    def spoil(layout: ZNode, node: Value) -> bytes | None:
        return _text({key: each for key, each in node.items() if key != name}) if name in layout.names else None

    return spoil


def _level(label: int, value: Any) -> Spoil:
    """Replaces a feature's lowest (0) or highest (-1) level."""

    def spoil(layout: ZNode, node: Value) -> bytes | None:
        if "features" not in layout.names:
            return None
        name, entry = next(iter(node["features"].items()), ("f", dict.fromkeys(layout.labels, 1)))
        return _text({**node, "features": {**node["features"], name: {**entry, layout.labels[label]: value}}})

    return spoil


def _without_level(layout: ZNode, node: Value) -> bytes | None:
    if "features" not in layout.names:
        return None
    name = next(iter(node["features"]), "f")
    return _text({**node, "features": {**node["features"], name: {}}})


def _nameless(layout: ZNode, node: Value) -> bytes | None:
    if "features" not in layout.names:
        return None
    return _text({**node, "features": {**node["features"], "": dict.fromkeys(layout.labels, 1)}})


def _falling(layout: ZNode, node: Value) -> bytes | None:
    if "features" not in layout.names or len(layout.labels) < 2:
        return None
    return _text({**node, "features": {**node["features"], "f": dict(zip(layout.labels, (3, 2), strict=True))}})


def _text(node: Any) -> bytes:
    return json.dumps(node, ensure_ascii=False, separators=(",", ":")).encode()


FLAWS: Final[Mapping[str, Spoil]] = {
    "lowest level 0": _level(0, 0),
    "highest level 0": _level(-1, 0),
    "negative level": _level(-1, -1),
    "lowest above highest": _falling,
    "past 16 bits": _level(-1, 32768),
    "level as text": _level(-1, "1"),
    "level as a fraction": _level(-1, 1.5),
    "level as a flag": _level(-1, True),
    "level as null": _level(-1, None),
    "no level": _without_level,
    "no name": _nameless,
    "no features": _without("features"),
    "features as a list": _with("features", []),
    "features as null": _with("features", None),
    "another status": _with("status", 2),
    "status as text": _with("status", "1"),
    "no status": _without("status"),
    "version below all": _with("version", -1),
    "version as text": _with("version", "1"),
    "no version": _without("version"),
    "endpoints as text": _with("endpoints", "PLAINTEXT://h:9"),
    "cut off": lambda layout, node: _text(node)[:-1],
    "no object": lambda layout, node: b"[]",
    "no JSON": lambda layout, node: _text(node).replace(b":", b"=", 1),
    "nothing": lambda layout, node: b"",
}

NODE_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "nodes/round-trip",
        "broker registrations and finalized features are written and read as specified",
        NODES,
        round_trip,
        values=12,
        invariants=invariants_of("nodes/round-trip", part=invariants),
    ),
    Check(
        "nodes/flaws",
        "broker registrations and finalized features that break a rule are refused",
        NODES,
        flawed,
        values=3,
        invariants=invariants_of("nodes/flaws", part=invariants),
        again=flawed_again,
    ),
)
