"""The edges of declared nodes: each option, both flags, the ends of a range, and lists with no, one and several items.

Paths and values are those of ``conformance/core/operations/field_edges.py``.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.core.operations.field_edges import ITEMS, Edge
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Record, Row, Seq


def edges_drawn(node: Node, path: str = "") -> Iterator[Edge]:
    """A node that draws one value has no edge."""
    match node:
        case Pick(options) if len(options) > 1:
            yield from (Edge(path, json.dumps(each)) for each in options)
        case Flag():
            yield from (Edge(path, json.dumps(each)) for each in (False, True))
        case Integer(low, high, interesting):
            yield from (Edge(path, json.dumps(each)) for each in {low: 0, high: 0, **dict.fromkeys(interesting)})
        case Seq(item, least, most):
            yield from (Edge(path, ITEMS[each]) for each in range(least, min(most, len(ITEMS) - 1) + 1))
            yield from edges_drawn(item, f"{path}[]")
        case Row(items):
            for at, each in enumerate(items):
                yield from edges_drawn(each, _inside(path, str(at)))
        case Record(fields, optional):
            for name, each in (*fields, *optional):
                yield from edges_drawn(each, _inside(path, name))
        case OneOf(options):
            for each in options:
                yield from edges_drawn(each, path)


def values_drawn(value: Any, path: str = "") -> Iterator[Edge]:
    """The values at all paths of plain data."""
    yield Edge(path, json.dumps(value, sort_keys=True, default=list))
    match value:
        case Mapping():
            for name, each in value.items():
                yield from values_drawn(each, _inside(path, name))
        case list() | tuple():
            yield Edge(path, ITEMS[min(len(value), len(ITEMS) - 1)])
            for at, each in enumerate(value):
                yield from values_drawn(each, f"{path}[]")
                yield from values_drawn(each, _inside(path, str(at)))


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
