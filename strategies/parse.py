"""Checks whether a value belongs to a declaration, and reports where and why it does not."""

import math
from collections.abc import Iterator, Sized
from itertools import pairwise
from typing import Any, NamedTuple, assert_never
from uuid import UUID

from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import Path, path_of
from kipcheck.conformance.wire.schema import INTEGERS, Layout
from kipcheck.strategies import nodes


class Mismatch(NamedTuple):
    path: Path
    why: str

    def __str__(self) -> str:
        return f"{path_of(self.path) or 'the value'}: {self.why}"


def parse(node: nodes.Node, value: Any) -> Any:
    """Returns the value if it belongs to the declaration. Errors: ValueError with the path and the reason."""
    for mismatch in mismatches(node, value):
        raise ValueError(str(mismatch))
    return value


def belongs(node: nodes.Node, value: Any) -> bool:
    return next(mismatches(node, value), None) is None


def mismatches(node: nodes.Node, value: Any, path: Path = ()) -> Iterator[Mismatch]:
    match node:
        case nodes.Integer(low, high):
            if type(value) is not int:  # a bool is an int in Python, but not here
                yield Mismatch(path, f"an integer is wanted, not {value!r}")
            elif not low <= value <= high:
                yield Mismatch(path, f"{value} is outside {low} to {high}")
        case nodes.Float():
            if type(value) is not float or not math.isfinite(value):
                yield Mismatch(path, f"a finite float is wanted, not {value!r}")
        case nodes.Flag():
            if type(value) is not bool:
                yield Mismatch(path, f"true or false is wanted, not {value!r}")
        case nodes.Pick(options):
            if not any(type(value) is type(option) and value == option for option in options):
                yield Mismatch(path, f"{value!r} is none of {', '.join(map(repr, options))}")
        case nodes.Text(min_size, max_size):
            yield from _sized(str, "text", value, min_size, max_size, path)
            if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
                yield Mismatch(path, f"{value!r} has a surrogate, which UTF-8 cannot carry")
        case nodes.Blob(min_size, max_size):
            yield from _sized(bytes, "bytes", value, min_size, max_size, path)
        case nodes.Uuid():
            if not isinstance(value, UUID):
                yield Mismatch(path, f"a uuid is wanted, not {value!r}")
        case nodes.Seq(item, min_size, max_size, key):
            yield from _sized(list, "a list", value, min_size, max_size, path)
            inside = [*_items(item, value, path)]
            yield from inside
            if key is not None and isinstance(value, list) and not inside:
                for index, (one, next_one) in enumerate(pairwise(each[key] for each in value)):
                    if not one < next_one:
                        yield Mismatch((*path, index + 1, key), f"more than {one} is wanted, not {next_one}")
        case nodes.Row(items):
            yield from _sized(list, "a list", value, len(items), len(items), path)
            for index, (item, each) in enumerate(zip(items, value if isinstance(value, list) else (), strict=False)):
                yield from mismatches(item, each, (*path, index))
        case nodes.Record():
            yield from _fields(node, value, path)
        case nodes.OneOf(options):
            tries = [list(mismatches(option, value, path)) for option in options]
            if all(tries):  # The option that matched most of the value gives the best explanation.
                yield from max(tries, key=lambda found: len(found[0].path))
        case nodes.Embedded(edition, message, version, body):
            yield from _embedded(layout(edition, message, version), body, value, path)
        case _:
            assert_never(node)


def _embedded(holder: Layout, body: nodes.Node, value: Any, path: Path) -> Iterator[Mismatch]:
    if not isinstance(value, bytes):
        yield Mismatch(path, f"bytes are wanted, not {value!r}")
        return
    if holder.prefix is not None:  # locating a refusal is slow, and most values differ here
        size = INTEGERS[holder.prefix.type] // 8
        if value[:size] != holder.version.to_bytes(size, "big"):
            yield Mismatch(path, f"{holder} is wanted, and not bytes that begin with {value[:size].hex() or 'nothing'}")
            return
    try:
        inner = holder.decode(value)
    except Refused as refused:
        yield Mismatch(path, str(refused))
    else:
        yield from mismatches(body, inner, path)


def _items(item: nodes.Node, value: Any, path: Path) -> Iterator[Mismatch]:
    for index, each in enumerate(value if isinstance(value, list) else ()):
        yield from mismatches(item, each, (*path, index))


def _fields(node: nodes.Record, value: Any, path: Path) -> Iterator[Mismatch]:
    names, loose = [name for name, _ in node.fields], [name for name, _ in node.optional]
    if not isinstance(value, dict) or not {*names} <= value.keys() <= {*names, *loose}:
        got = ", ".join(map(str, value)) if isinstance(value, dict) else repr(value)
        perhaps = f" (and perhaps {', '.join(loose)})" if loose else ""
        yield Mismatch(path, f"the fields {', '.join(names)}{perhaps} are wanted, not {got or 'none'}")
        return
    for name, field in (*node.fields, *node.optional):
        if name in value:
            yield from mismatches(field, value[name], (*path, name))


def _sized(kind: type[Sized], name: str, value: Any, low: int, high: int, path: Path) -> Iterator[Mismatch]:
    if not isinstance(value, kind):
        yield Mismatch(path, f"{name} is wanted, not {value!r}")
    elif not low <= len(value) <= high:
        yield Mismatch(path, f"size {len(value)} is outside {low} to {high}")
