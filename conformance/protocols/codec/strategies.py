"""Values of a node's JSON. Objects with arbitrary keys are lists here, so that a reducer can remove entries."""

from functools import cache
from typing import Any

from kipcheck.conformance.wire.znodes import ZNode
from kipcheck.strategies.nodes import Integer, Node, Pick, Record, Seq, Text, nullable, record

HIGHEST = 32767
PORTS = Integer(-1, 65535, interesting=(-1, 0, 9092))


@cache
def from_node(layout: ZNode) -> Record:
    """Values that ``as_json`` converts to the node's. The version is not included: the layout determines it."""
    return Record(tuple((key.name, _key(layout, key.name, key.type)) for key in layout.keys if key.name != "version"))


def _key(layout: ZNode, name: str, kind: str) -> Node:
    match kind:
        case "int32":
            return Pick((1, 0)) if name == "status" else PORTS
        case "string":
            return Text()
        case "nullable string":
            return nullable(Text())
        case "strings":
            return Seq(Text(), 0, 3)
        case "names":
            return Seq(record(name=Text(), value=Text()), 0, 3)
    levels = Integer(layout.lowest, HIGHEST, interesting=(layout.lowest, 2, HIGHEST))
    return Seq(record(name=Text(1, 20), low=levels, more=Integer(0, HIGHEST - 1, interesting=(0, 1))), 0, 3)


def as_json(layout: ZNode, value: dict[str, Any]) -> dict[str, Any]:
    """The node's value as it is encoded. Of entries with the same name the last one counts."""
    made: dict[str, Any] = {"version": layout.version}
    for key in layout.keys:
        if key.type == "names":
            made[key.name] = {each["name"]: each["value"] for each in value[key.name]}
        elif key.type == "ranges":
            made[key.name] = {each["name"]: _levels(layout, each) for each in value[key.name]}
        elif key.name != "version":
            made[key.name] = value[key.name]
    return made


def _levels(layout: ZNode, entry: dict[str, Any]) -> dict[str, int]:
    high = min(entry["low"] + entry["more"], HIGHEST)
    return dict(zip(layout.labels, (entry["low"], high) if len(layout.labels) == 2 else (high,), strict=True))
