"""Converts a layout to a node: every value that the declaration of a message allows, within sizes suitable for tests.

Users call ``kipcheck.strategies.values("JoinGroupRequest", versions=7)`` instead. Values are those that
``layout.decode`` returns for their bytes. Values that would change on the way are left out: NaN and infinities in
float64, and lone surrogates in every kind of text.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TypeVar

from kipcheck.conformance.core.values.edition import Edition, edition as edition_of
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.schema import INTEGERS, Layout, Slot, spec
from kipcheck.strategies import nodes
from kipcheck.strategies.typical_values import EMBEDDED, ERRORS, NUMBERS, TEXTS

T = TypeVar("T")

UNKNOWN_TAGS = "_unknownTaggedFields"
LAST_TAG = (1 << 31) - 2
"""Kafka reads a field of the next higher tag, but cannot write it: its writer uses that number for the end."""

ITEMS = (4, 3, 2)
"""The most items in a list at the top, one level down, and further down."""
NUMBERS_IN_A_LIST = 200
"""Enough for a count of two bytes as a varint."""
SIZE = 300
"""The most characters or bytes: past 127 and past 255, where lengths take another byte."""


def from_layout(layout: Layout, overrides: Mapping[str, nodes.Node] | None = None) -> nodes.Record:
    """``overrides``: by path (``protocols.metadata``) or by name, the node of one item of the field."""
    return _Reader(layout, overrides or {}).struct(layout, (), 0)


def embedded(edition: str, messages: Iterable[str]) -> tuple[nodes.Embedded, ...]:
    """The messages with these names, at every version, as bytes in a field; those that the edition lacks are left
    out.
    """
    return tuple(each for message in messages for each in _embedded(edition, message))


@cache
def _embedded(edition: str, message: str) -> tuple[nodes.Embedded, ...]:
    """Cached because many versions of many messages contain the same ones."""
    layouts_of_it = _layouts_or_none(edition, message)
    return tuple(nodes.Embedded(edition, each.message, each.version, from_layout(each)) for each in layouts_of_it)


def layouts(edition: str | Edition, message: str, versions: int | Iterable[int] | None = None) -> tuple[Layout, ...]:
    """At ``versions``, or at all that the edition has.

    Errors: LookupError for an unknown message or version; TypeError for versions that are no numbers.
    """
    if versions is None:
        return tuple(spec(edition_named(edition), message))
    chosen = (versions,) if isinstance(versions, int) else tuple(versions)
    if not chosen:
        raise LookupError(f"no version of {message} was given")
    for each in chosen:
        if type(each) is not int:
            raise TypeError(f"versions must be numbers, such as 3 or range(2, 6), got {each!r}")
    return tuple(layout_of(edition, message, version) for version in chosen)


def edition_named(edition: str | Edition) -> Edition:
    """Errors: LookupError with the known editions."""
    return edition_of(edition) if isinstance(edition, str) else edition


def _layouts_or_none(edition: str, message: str) -> Iterator[Layout]:
    try:
        yield from layouts(edition, message)
    except LookupError:
        return


class _Reader:
    def __init__(self, layout: Layout, overrides: Mapping[str, nodes.Node]):
        self.message = layout.message
        self.edition = layout.edition
        self.overrides = overrides

    def struct(self, layout: Layout, path: tuple[str, ...], depth: int) -> nodes.Record:
        fields: list[tuple[str, nodes.Node]] = []
        if layout.prefix and layout.prefix.name:
            fields.append((layout.prefix.name, nodes.Pick((layout.version,))))
        fields += ((slot.name, self.slot(slot, (*path, slot.name), depth)) for slot in layout.slots)
        return nodes.Record(tuple(fields), ((UNKNOWN_TAGS, unknown_tags(layout)),) if layout.flexible else ())

    def slot(self, slot: Slot, path: tuple[str, ...], depth: int) -> nodes.Node:
        node = self.item(slot, path, depth)
        if slot.array:
            most = NUMBERS_IN_A_LIST if isinstance(node, nodes.Integer) else ITEMS[min(depth, len(ITEMS) - 1)]
            node = nodes.Seq(node, 0, most)
        if slot.nullable:
            return nodes.nullable(node)
        if slot.tag is not None and isinstance(slot.default, int | float | str) and slot.default:
            return nodes.OneOf(
                (nodes.Pick((slot.default,)), node)
            )  # the simplest tagged field is the one that is not written
        return node

    def item(self, slot: Slot, path: tuple[str, ...], depth: int) -> nodes.Node:
        given = self.overrides.get(".".join(path), self.overrides.get(slot.name))
        if given is not None:
            return given
        if slot.item is not None:
            return self.struct(slot.item, path, depth + slot.array)
        if slot.type in INTEGERS:
            number = _integer(slot, path)
            sent = ERRORS.get(self.message, ()) if slot.name == "errorCode" else ()
            return nodes.OneOf((nodes.Pick((0, *sent)), number)) if sent else number
        match slot.type:
            case "bool":
                return nodes.Flag()
            case "string" | "utf" | "utf16":
                return nodes.Text(0, SIZE, _typical(TEXTS, path))
            case "bytes" | "records" | "rest":
                kinds = embedded(self.edition, EMBEDDED.get(".".join((self.message, *path)), ()))
                return nodes.OneOf((nodes.Blob(0, SIZE), *kinds)) if kinds else nodes.Blob(0, SIZE)
            case "uuid":
                return nodes.Uuid()
            case "float64":
                return nodes.Float()
            case unknown:
                raise NotImplementedError(f"{slot.name}: no values are declared for wire type {unknown!r}")


def unknown_tags(layout: Layout) -> nodes.Seq:
    """Tagged fields of a later version: ascending, and none that the layout declares."""
    data = nodes.Blob(0, SIZE)
    free = tuple(
        nodes.record(tag=nodes.Integer(low, high, _ends(low, high)), data=data) for low, high in free_tags(layout)
    )
    return nodes.Seq(free[0] if len(free) == 1 else nodes.OneOf(free), 1, 3, ascending="tag")


def free_tags(layout: Layout) -> Iterator[tuple[int, int]]:
    """The ranges of tags that the layout does not declare, in this version or another."""
    low = 0
    for tag in sorted(layout.declared_tags):
        if low < tag:
            yield low, tag - 1
        low = tag + 1
    yield low, LAST_TAG


def _ends(low: int, high: int) -> tuple[int, ...]:
    """The bounds, and the tags next to the lower one, which a later version will use."""
    return tuple(dict.fromkeys(n for n in (low, low + 1, low + 2, high) if n <= high))


def _integer(slot: Slot, path: tuple[str, ...]) -> nodes.Integer:
    low, high = _range(slot.type)
    default = (slot.default,) if isinstance(slot.default, int) else ()
    wanted = dict.fromkeys((0, 1, -1, high, low, *default, *_typical(NUMBERS, path)))
    return nodes.Integer(low, high, tuple(n for n in wanted if low <= n <= high))


def _range(kind: str) -> tuple[int, int]:
    bits = INTEGERS[kind]
    return (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _typical(table: Mapping[str, tuple[T, ...]], path: tuple[str, ...]) -> tuple[T, ...]:
    return table.get(".".join(path[-2:]), table.get(path[-1], ()))
