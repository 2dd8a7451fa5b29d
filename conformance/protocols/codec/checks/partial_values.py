"""Values that omit an untagged field."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, TypeAlias

from kipcheck.conformance.protocols.codec.invariants.defaults import is_usual
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.conformance.wire.schema import Slot

Value: TypeAlias = dict[str, Any]

OTHERS: Final = 2
"""How many of the fields with the usual default of their type are omitted, one at a time."""


def partial(layout: Layout, value: Value, random: Random) -> Iterator[tuple[Value, Value]]:
    """The value as JSON with one field at its default, and without that field: for every field with a default of its
    own, and for some of the others.
    """
    plain = layout.codec.to_json(value)
    usual: list[tuple[Path, Slot]] = []
    for path, slot in untagged(layout, plain):
        if is_usual(slot):
            usual.append((path, slot))
        else:
            yield at_default(plain, path, slot), without(plain, path)
    for path, slot in random.sample(usual, min(OTHERS, len(usual))):
        yield at_default(plain, path, slot), without(plain, path)


def untagged(layout: Layout, value: Any, path: Path = ()) -> Iterator[tuple[Path, Slot]]:
    """The untagged fields of the value, with their paths; of a list, those of the first element."""
    for slot in layout.untagged:
        here = (*path, slot.name)
        yield here, slot
        inner = value.get(slot.name)
        if slot.item is None or not inner:
            continue
        yield from untagged(slot.item, inner[0] if slot.array else inner, (*here, 0) if slot.array else here)


def at_default(value: Any, path: Path, slot: Slot) -> Any:
    fresh = slot.fresh()
    if slot.item is not None and not slot.array and fresh is not None:
        fresh = slot.item.codec.to_json(fresh)
    elif isinstance(fresh, bytes):
        fresh = fresh.hex()
    elif slot.type == "uuid" and not slot.array:
        fresh = str(fresh)
    return _put(value, path, {str(path[-1]): fresh})


def without(value: Any, path: Path) -> Any:
    return _put(value, path, {})


def _put(value: Any, path: Path, field: Value) -> Any:
    first, *rest = path
    if isinstance(value, list):
        return [_put(each, tuple(rest), field) if at == first else each for at, each in enumerate(value)]
    if rest:
        return {**value, first: _put(value[first], tuple(rest), field)}
    return {**{name: each for name, each in value.items() if name != first}, **field}
