"""Changes a value in one place, to extend a corpus."""

from random import Random
from typing import Any, TypeVar

from kipcheck.conformance.wire import layout
from kipcheck.strategies.compiled import ascending, compiled
from kipcheck.strategies.nodes import Blob, Embedded, Integer, Node, OneOf, Pick, Record, Row, Seq, Text
from kipcheck.strategies.parse import belongs

Sliced = TypeVar("Sliced", str, bytes)


def mutate(node: Node, value: Any, random: Random) -> Any:
    """A value that usually differs in one place; place and change are drawn."""
    match node:
        case Integer(low, high) if random.random() < 0.25:
            return min(max(value + random.choice((-1, 1)), low), high)
        case Text(min_size, max_size) | Blob(min_size, max_size) if random.random() < 0.5:
            return _spliced(value, compiled(node)(random), min_size, max_size, random)
        case Seq():
            return _another_list(node, value, random)
        case Row(items):
            at = random.choice([index for index, item in enumerate(items) if not _fixed(item)] or [-1])
            return value if at < 0 else [*value[:at], mutate(items[at], value[at], random), *value[at + 1 :]]
        case Record():
            return _another_record(node, value, random)
        case OneOf(options) if random.random() < 0.5:
            return mutate(random.choice([one for one in options if belongs(one, value)]), value, random)
        case Embedded(edition, message, version, body):
            inner = layout(edition, message, version)
            return inner.encode(mutate(body, inner.decode(value), random))
        case _:
            return compiled(node)(random)


def _spliced(value: Sliced, other: Sliced, low: int, high: int, random: Random) -> Sliced:
    """The head of one value and the tail of the other, if that size is allowed."""
    child = value[: random.randint(0, len(value))] + other[random.randint(0, len(other)) :]
    return child if low <= len(child) <= high else other


def _another_list(node: Seq, value: list[Any], random: Random) -> list[Any]:
    at = random.randint(0, len(value))
    before, after = value[:at], value[at:]
    changes = []
    if len(value) < node.max_size:
        changes.append([*before, compiled(node.item)(random), *after])
    if after:
        changes.append([*before, mutate(node.item, after[0], random), *after[1:]])
        if before:
            changes.append([*before[:-1], after[0], before[-1], *after[1:]])
        if len(value) > node.min_size:
            changes.append([*before, *after[1:]])
    changed = random.choice(changes or [value])
    return changed if node.ascending is None else ascending(changed, node.ascending)


def _another_record(node: Record, value: dict[str, Any], random: Random) -> dict[str, Any]:
    loose = [(name, field) for name, field in (*node.fields, *node.optional) if not _fixed(field)]
    if not loose:
        return value
    name, field = random.choice(loose)
    optional = any(name == each for each, _ in node.optional)
    if name not in value:
        return {**value, name: compiled(field)(random)}
    if optional and random.random() < 0.5:
        return {each: kept for each, kept in value.items() if each != name}
    return {**value, name: mutate(field, value[name], random)}


def _fixed(node: Node) -> bool:
    """Whether nothing can be changed."""
    match node:
        case Pick(options):
            return len(options) == 1
        case Row(items):
            return all(map(_fixed, items))
        case Record(fields, optional):
            return not optional and all(_fixed(field) for _, field in fields)
        case _:
            return False
