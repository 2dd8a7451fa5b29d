"""Reduces a failing value to the smallest one found that still fails.

Only the declaration defines what is simpler, so one reducer serves event sequences and message fields. Values are not
changed in place: a result may share parts with the input.
"""

from collections.abc import Callable, Iterator
from itertools import chain, permutations
from typing import Any, TypeVar, assert_never
from uuid import UUID

from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.jsontext import Path
from kipcheck.strategies import nodes
from kipcheck.strategies.parse import belongs, parse

Sliced = TypeVar("Sliced", str, bytes, list[Any])

PLAIN = "0"
"""The simplest character, as in Hypothesis."""


def reduce(node: nodes.Node, value: Any, fails: Callable[[Any], bool]) -> Any:
    """Follows ``simpler`` while the value fails, until no simpler value does. Errors: ValueError of ``parse``."""
    value = parse(node, value)  # raises for a case of an older declaration
    while True:
        for candidate in chain(simpler(node, value), simpler_together(node, value), shorter_renamed(node, value)):
            if fails(candidate):
                value = candidate
                break
        else:
            return value


def least(node: nodes.Node) -> Any:
    """The simplest value of a node."""
    match node:
        case nodes.Integer(low, high):
            return min(max(0, low), high)
        case nodes.Float():
            return 0.0
        case nodes.Flag():
            return False
        case nodes.Pick(options):
            return options[0]
        case nodes.Text(min_size):
            return PLAIN * min_size
        case nodes.Blob(min_size):
            return bytes(min_size)
        case nodes.Uuid():
            return UUID(int=0)
        case nodes.Seq(item, min_size):
            return [least(item)] * min_size
        case nodes.Row(items):
            return [least(item) for item in items]
        case nodes.Record(fields):
            return {name: least(field) for name, field in fields}
        case nodes.OneOf(options):
            return least(options[0])
        case nodes.Embedded(edition, message, version, body):
            return layout(edition, message, version).encode(least(body))
        case _:
            assert_never(node)


def simpler(node: nodes.Node, value: Any) -> Iterator[Any]:
    """Simpler values, the largest changes first. Repeating it always ends."""
    match node:
        case nodes.Integer():
            yield from _nearer(value, least(node))
            if value < 0 and -value <= node.high and least(node) == 0:
                yield -value
        case nodes.Float():
            yield from _rounder(value)
        case nodes.Flag():
            yield from [False] if value else []
        case nodes.Pick(options):
            yield from options[: options.index(value)]
        case nodes.Text(min_size):
            yield from _shorter(value, min_size)
            yield from map("".join, _plainer([*value], PLAIN, _characters))
        case nodes.Blob(min_size):
            yield from _shorter(value, min_size)
            yield from map(bytes, _plainer([*value], 0, lambda byte: _nearer(byte, 0)))
        case nodes.Uuid():
            yield from (UUID(int=number) for number in _nearer(value.int, 0))
        case nodes.Seq(item, min_size):
            yield from _shorter(value, min_size)
            yield from _merged(node, value)
            for index, each in enumerate(value):
                yield from _kept(node, ([*value[:index], one, *value[index + 1 :]] for one in simpler(item, each)))
            if node.ascending is None:
                yield from _sorted(value)
        case nodes.Row(items):
            for index, item in enumerate(items):
                yield from ([*value[:index], one, *value[index + 1 :]] for one in simpler(item, value[index]))
        case nodes.Record(fields, optional):
            for name, _ in optional:
                if name in value:
                    yield {each: kept for each, kept in value.items() if each != name}
            for name, field in (*fields, *optional):
                if name in value:
                    yield from ({**value, name: one} for one in simpler(field, value[name]))
        case nodes.OneOf(options):
            home = next(index for index, option in enumerate(options) if belongs(option, value))
            for option in options[:home]:
                yield from option.options if isinstance(option, nodes.Pick) else [least(option)]
            holders = (option for option in options[home + 1 :] if isinstance(option, nodes.Embedded))
            holder = next((option for option in holders if belongs(option, value)), None)
            if holder is None:
                yield from simpler(options[home], value)
            else:
                # Plain bytes that encode a message: simplify that message, or drop bytes. Neither way lengthens them,
                # and only the first keeps their number: so it ends.
                yield from (one for one in simpler(holder, value) if len(one) <= len(value))
                yield from (one for one in simpler(options[home], value) if len(one) < len(value))
        case nodes.Embedded(edition, message, version, body):
            inner = layout(edition, message, version)
            yield from (inner.encode(one) for one in simpler(body, inner.decode(value)))
        case _:
            assert_never(node)


def simpler_together(node: nodes.Node, value: Any) -> Iterator[Any]:
    """Simplifies equal parts in the same way: a failure that depends on their equality needs them equal."""
    equal: dict[tuple[nodes.Node, str], list[Path]] = {}
    parts: dict[tuple[nodes.Node, str], Any] = {}
    for path, part, each in _parts(node, value, ()):
        key = (part, repr(each))
        equal.setdefault(key, []).append(path)
        parts[key] = each
    for key, paths in equal.items():
        if len(paths) > 1:
            for one in simpler(key[0], parts[key]):
                changed = value
                for path in paths:
                    changed = _replaced(changed, path, one)
                if belongs(node, changed):  # ascending keys may not be ascending any more
                    yield changed


def shorter_renamed(node: nodes.Node, value: Any) -> Iterator[Any]:
    """Without one item of a list, and with one name in place of another in all that remains.

    Two clients may be needed only because one item more makes up for the difference between them. Any name will do,
    not only a simpler one: the list is shorter each time, so it ends.
    """
    if not isinstance(node, nodes.Seq) or node.ascending is not None:
        return
    for left_out in reversed(range(len(value)) if len(value) > node.min_size else ()):
        rest = [*value[:left_out], *value[left_out + 1 :]]
        names: dict[nodes.Pick, dict[Any, list[Path]]] = {}
        for path, part, each in _parts(node, rest, ()):
            if isinstance(part, nodes.Pick) and isinstance(each, str):
                names.setdefault(part, {}).setdefault(each, []).append(path)
        for used in names.values():
            for old, new in permutations(used, 2):
                renamed = rest
                for path in used[old]:
                    renamed = _replaced(renamed, path, new)
                yield renamed


def _parts(node: nodes.Node, value: Any, path: Path) -> Iterator[tuple[Path, nodes.Node, Any]]:
    """Items of lists and values of fields, the outer ones first."""
    match node:
        case nodes.Seq(item):
            for index, each in enumerate(value):
                yield (*path, index), item, each
                yield from _parts(item, each, (*path, index))
        case nodes.Row(items):
            for index, item in enumerate(items):
                yield (*path, index), item, value[index]
                yield from _parts(item, value[index], (*path, index))
        case nodes.Record(fields, optional):
            for name, field in (*fields, *optional):
                if name in value:
                    yield (*path, name), field, value[name]
                    yield from _parts(field, value[name], (*path, name))
        case nodes.OneOf(options):
            home = next(option for option in options if belongs(option, value))
            yield from _parts(home, value, path)


def _replaced(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [*value[:first], _replaced(value[first], rest, new), *value[first + 1 :]]
    return {**value, first: _replaced(value[first], rest, new)}


def _kept(node: nodes.Seq, candidates: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """The candidates in ascending order, where order is required."""
    if node.ascending is None:
        yield from candidates
    for each in candidates:
        keys = [item[node.ascending] for item in each]
        if keys == sorted(set(keys)):
            yield each


def _sorted(value: list[Any]) -> Iterator[list[Any]]:
    """Swaps two neighbours so that the plainer one comes first."""
    ranks = [(len(repr(each)), repr(each)) for each in value]
    for index in range(len(value) - 1):
        if ranks[index] > ranks[index + 1]:
            yield [*value[:index], value[index + 1], value[index], *value[index + 2 :]]


def _shorter(value: Sliced, min_size: int) -> Iterator[Sliced]:
    """Removes one chunk: from the largest possible size down to single items, the last first."""
    chunk = len(value) - min_size
    while chunk > 0:
        for end in range(len(value), chunk - 1, -chunk):
            yield value[: end - chunk] + value[end:]
        chunk //= 2


def _nearer(value: int, goal: int) -> Iterator[int]:
    """From the goal to the value's neighbour, by halves of the distance."""
    distance, sign = abs(value - goal), 1 if value > goal else -1
    for halvings in range(distance.bit_length()):
        yield value - sign * (distance >> halvings)


def _merged(node: nodes.Seq, value: list[Any]) -> Iterator[list[Any]]:
    """Merges two items that differ at most in an amount: waits of several seconds can become one."""
    if len(value) <= node.min_size or node.ascending is not None:
        return
    amounts = [_amount(node.item, each) for each in value]
    for later in range(len(value) - 1, 0, -1):
        for earlier in range(later - 1, -1, -1):
            both = amounts[earlier], amounts[later]
            if both[0] is not None and both[1] is not None and both[0][2] == both[1][2]:
                path, part, _ = both[0]
                total = _at(value[earlier], path) + _at(value[later], path)
                if part.low <= total <= part.high:
                    one = _replaced(value[later], path, total)
                    between, rest = value[earlier + 1 : later], value[later + 1 :]
                    yield [*value[:earlier], one, *between, *rest]
                    yield [*value[:earlier], *between, one, *rest]
                break


def _amount(item: nodes.Node, value: Any) -> tuple[Path, nodes.Integer, str] | None:
    """The only integer in it: path, node, and the rest for comparison. None unless there is exactly one."""
    found = [(path, part) for path, part, _ in _parts(item, value, ()) if isinstance(part, nodes.Integer)]
    if len(found) != 1:
        return None
    path, part = found[0]
    return path, part, repr(_replaced(value, path, None))


def _at(value: Any, path: Path) -> Any:
    for each in path:
        value = value[each]
    return value


def _plainer(parts: list[Any], plain: Any, nearer: Callable[[Any], Iterator[Any]]) -> Iterator[list[Any]]:
    """Makes a chunk of the parts plain, by halves, then moves one of them nearer to it."""
    chunk = len(parts)
    while chunk > 1:
        for start in range(0, len(parts), chunk):
            if any(part != plain for part in parts[start : start + chunk]):
                end = min(start + chunk, len(parts))
                yield [*parts[:start], *([plain] * (end - start)), *parts[end:]]
        chunk //= 2
    for index, part in enumerate(parts):
        yield from ([*parts[:index], one, *parts[index + 1 :]] for one in nearer(part))


def _characters(one: str) -> Iterator[str]:
    """The plain character first, then characters with smaller numbers; those below it count as less simple than any."""
    point, plain = ord(one), ord(PLAIN)
    if point < plain:
        yield from (PLAIN, "a", "\x80")
    for number in _nearer(point, plain) if point > plain else ():
        if not 0xD800 <= number < 0xE000:
            yield chr(number)


def _rounder(value: float) -> Iterator[float]:
    if value < 0:
        yield -value
    whole = int(value)
    if value != whole:
        yield float(whole)
    for number in _nearer(whole, 0):
        # Past 2^53 neighbours are the same double: only numbers that come nearer count.
        if abs(float(number)) < abs(value):
            yield float(number)
