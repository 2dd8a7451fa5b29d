"""The edges of the fields of operations, derived from their declaration, and the values that a step has there.

An edge is a value at which a rule may decide otherwise: each flag, choice and typical value, null, a list without
items, with one and with several, and what ``edges(...)`` names beside the field. Fields inside of a value have paths:
``supported[].low``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Any, Final, NamedTuple

from kipcheck.conformance.core.operations.field_annotations import Field
from kipcheck.conformance.core.operations.field_kinds import Kind


class Edge(NamedTuple):
    path: str
    value: str
    """As JSON; of a list also how many items it has."""


ITEMS: Final = ("no items", "one item", "several items")


def edges_of(field: Field) -> Iterator[Edge]:
    """Those that default cases have."""
    if not field.typical:
        sizes = ITEMS if field.size is None else ITEMS[field.size.least : field.size.most + 1]
        for each in _of_kind(field.name, field.kind):
            if each.path != field.name or each.value not in ITEMS or each.value in sizes:
                yield each
        return
    yield from (_edge(field.name, each) for each in field.kind.edges)
    match field.typical:
        case (range() as values,):
            yield from (_edge(field.name, each) for each in (values[0], values[-1]))
        case values:
            yield from (_edge(field.name, each) for each in values)
    yield from (_edge(field.name, None) for _ in (1,) if field.kind.nullable)


def _of_kind(path: str, kind: Kind) -> Iterator[Edge]:
    schema = kind.schema
    values = schema.get("enum", (True, False) if "boolean" in str(schema.get("type")) else ())
    yield from (_edge(path, each) for each in (*kind.edges, *values, *((None,) if kind.nullable else ())))
    for name, part in kind.parts:
        if name == "[]":
            yield from (Edge(path, each) for each in ITEMS)
        yield from _of_kind(_inside(path, name), part)


def values_in(field: Field, body: Mapping[str, Any]) -> Iterator[Edge]:
    """What a step has there; a field that it omits has its default."""
    if field.name in body:
        yield from _of_value(field.name, field.kind, body[field.name])
    elif field.default is not MISSING:
        yield from _of_value(field.name, field.kind, field.kind.plain(field.default))


def _of_value(path: str, kind: Kind, value: Any) -> Iterator[Edge]:
    yield _edge(path, value)
    if value is None:
        return
    for name, part in kind.parts:
        if name == "[]":
            yield Edge(path, ITEMS[min(len(value), 2)])
            for each in value:
                yield from _of_value(_inside(path, name), part, each)
        elif isinstance(value, Mapping):
            if name in value:
                yield from _of_value(_inside(path, name), part, value[name])
        elif not isinstance(value, str) and int(name) < len(value):  # the last items of a list may be left out
            yield from _of_value(_inside(path, name), part, value[int(name)])


def _edge(path: str, value: Any) -> Edge:
    return Edge(path, json.dumps(value, sort_keys=True))


def _inside(path: str, name: str) -> str:
    return path + name if name == "[]" else f"{path}.{name}"
