"""Compiles a node to one Python function that draws a value from a ``random.Random``, for many cases per second.

Every node becomes an expression, so the whole declaration becomes one ``return``; ``draw.source`` shows it. The same
node and seed give the same values in every process: nothing here depends on hashes or a clock.
"""

import math
import struct
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, Protocol, assert_never, cast
from uuid import UUID

from kipcheck.conformance.wire import layout
from kipcheck.strategies import nodes

FEW = 16
"""Where more are allowed, mostly fewer than this many characters, bytes or items are drawn."""
FEW_SHARE = 0.95
OPTIONAL_SHARE = 0.125
INTERESTING_SHARE = 0.5


class Draw(Protocol):
    source: str

    def __call__(self, random: Random, /) -> Any: ...


_KEPT: dict[int, tuple[nodes.Node, Draw]] = {}
MOST_KEPT = 1 << 13


def compiled(node: nodes.Node) -> Draw:
    """Cached for equal nodes, and by identity first: hashing a large node takes longer than drawing from it."""
    kept = _KEPT.get(id(node))
    if kept is None:  # a cached node stays alive, so its id is unique
        if len(_KEPT) == MOST_KEPT:
            _KEPT.clear()
        kept = _KEPT[id(node)] = node, _compiled(node)
    return kept[1]


@cache
def _compiled(node: nodes.Node) -> Draw:
    names: dict[str, Any] = {"text": text, "double": double, "ascending": ascending, "UUID": UUID}
    head = "def draw(random):\n    rand, bits = random.random, random.getrandbits\n"
    source = f"{head}    return {_Writer(names).expression(node, 1)}\n"
    exec(source, names)  # noqa: S102 - only numbers, and the repr of names and constants
    draw = cast(Draw, names["draw"])
    draw.source = source
    return draw


class _Writer:
    def __init__(self, names: dict[str, Any]):
        self.names = names

    def expression(self, node: nodes.Node, depth: int) -> str:
        match node:
            case nodes.Integer(low, high, interesting):
                return _often(interesting, _number(low, high))
            case nodes.Float():
                return "double(random)"
            case nodes.Flag():
                return "rand() < 0.5"
            case nodes.Pick(options):
                return _any_of(options)
            case nodes.Text(min_size, max_size, interesting):
                return _often(interesting, f"text(random, {_size(min_size, max_size)})")
            case nodes.Blob(min_size, max_size):
                return f"bits(8 * (size := {_size(min_size, max_size)})).to_bytes(size, 'little')"
            case nodes.Uuid():
                return "UUID(int=bits(128) if rand() < 0.75 else 0)"
            case nodes.Seq(item, min_size, max_size, key):
                items = f"[{self.expression(item, depth)} for _ in range({_size(min_size, max_size)})]"
                return items if key is None else f"ascending({items}, {key!r})"
            case nodes.Row(items):
                margin = "\n" + "    " * depth
                lines = (f"{margin}    {self.expression(item, depth + 1)}," for item in items)
                return f"[{''.join(lines)}{margin}]"
            case nodes.Record():
                return self.record(node, depth)
            case nodes.OneOf(options):
                *rest, last = (self.expression(option, depth) for option in options)
                left = range(len(options), 1, -1)  # one in n, else one in n - 1, ...: all options are equally likely
                ways = zip(rest, left, strict=True)
                return f"({''.join(f'{one} if rand() * {n} < 1 else ' for one, n in ways)}{last})"
            case nodes.Embedded(edition, message, version, body):
                number = len(self.names)
                self.names[f"encode{number}"] = layout(edition, message, version).encode
                self.names[f"draw{number}"] = compiled(body)
                return f"encode{number}(draw{number}(random))"
            case _:
                assert_never(node)

    def record(self, node: nodes.Record, depth: int) -> str:
        margin = "\n" + "    " * depth
        lines = [f"{margin}    {name!r}: {self.expression(field, depth + 1)}," for name, field in node.fields]
        for name, field in node.optional:
            one = f"{{{name!r}: {self.expression(field, depth + 1)}}}"
            lines.append(f"{margin}    **({one} if rand() < {OPTIONAL_SHARE} else {{}}),")
        return f"{{{''.join(lines)}{margin}}}"


def _often(interesting: tuple[Any, ...], anything: str) -> str:
    return f"({_any_of(interesting)} if rand() < {INTERESTING_SHARE} else {anything})" if interesting else anything


def _any_of(options: tuple[Any, ...]) -> str:
    return repr(options[0]) if len(options) == 1 else f"{options!r}[int(rand() * {len(options)})]"


def _size(low: int, high: int) -> str:
    if high - low < 2 * FEW:
        return _between(low, high)
    span = f"({FEW} if rand() < {FEW_SHARE} else {high - low + 1})"
    return f"int(rand() * {span})" if low == 0 else f"{low} + int(rand() * {span})"


def _number(low: int, high: int) -> str:
    """In a wide range, each number of digits is equally likely."""
    bits = (high - low).bit_length()
    if bits <= 10:
        return _between(low, high)
    shift = f"int(rand() * {bits})"
    if low <= 0 <= high:
        return f"(({_between(low, high)}) >> {shift})"
    return f"{low} + (({_between(0, high - low)}) >> {shift})"


def _between(low: int, high: int) -> str:
    span = high - low + 1
    if span == 1:
        return repr(low)
    if span > 1 << 53:  # rand() has 53 bits: in a wider range some integers would never be drawn
        if span & (span - 1) == 0:
            return f"bits({span.bit_length() - 1}) + {low}"
        return f"random.randrange({low}, {high + 1})"
    return f"int(rand() * {span})" if low == 0 else f"{low} + int(rand() * {span})"


_NAME_CHARACTERS = bytes(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[i % 64] for i in range(256)
)
_ALPHABETS = tuple(
    (low, high - low)
    for low, high in (
        (0x00, 0x20),  # controls: NUL, which modified UTF-8 writes in two bytes
        (0x80, 0x800),  # two bytes in UTF-8
        (0x800, 0xD800),  # three, up to the surrogates
        (0xE000, 0x10000),
        (0x10000, 0x110000),  # four bytes, or a pair of surrogates
    )
)
"""The first character of each alphabet, and its size."""


def text(random: Random, size: int) -> str:
    """Mostly names as in real systems; sometimes any characters of UTF-8."""
    rand = random.random
    if rand() < 0.9:
        return random.getrandbits(8 * size).to_bytes(size, "little").translate(_NAME_CHARACTERS).decode("ascii")
    return "".join([_character(rand(), rand()) for _ in range(size)])


def _character(which: float, where: float) -> str:
    if which < 0.25:
        return chr(0x20 + int(where * 0x60))
    low, span = _ALPHABETS[int((which - 0.25) / 0.75 * len(_ALPHABETS))]
    return chr(low + int(where * span))


def double(random: Random) -> float:
    """A finite float: small whole numbers, and any bit pattern."""
    if random.random() < 0.5:
        return float(int(random.random() * 201) - 100)
    (number,) = struct.unpack(">d", random.randbytes(8))
    return number if math.isfinite(number) else 0.0


def ascending(items: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Sorted by ``key``; of items with the same key, the last."""
    by_key = {item[key]: item for item in items}
    return [by_key[each] for each in sorted(by_key)]
