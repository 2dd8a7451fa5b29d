"""Declares families of cases with a few frozen nodes, which describe allowed values, not likely ones.

Nodes have no behaviour. Three consumers interpret them, consistently: ``as_hypothesis`` (a strategy), ``compiled`` (a
fast generator), and functions on data (``parse``, ``reduce``, ``mutate``). A value is plain data: None, bool, int,
float, str, bytes, uuids, and lists and dicts of these.
"""

from dataclasses import dataclass
from typing import TypeAlias, final
from uuid import UUID

Scalar: TypeAlias = bool | int | float | str | bytes | UUID | None


@final
@dataclass(frozen=True, slots=True)
class Integer:
    low: int
    high: int
    interesting: tuple[int, ...] = ()
    """Values to try often: bounds, sentinels, neighbours of a limit."""

    def __post_init__(self) -> None:
        if not all(self.low <= n <= self.high for n in (*self.interesting, self.low)):
            raise ValueError(f"invalid range {self.low} to {self.high} for {self.interesting or 'any integer'}")


@final
@dataclass(frozen=True, slots=True)
class Float:
    """Any finite double: NaN does not equal itself, and JSON has neither NaN nor infinities."""


@final
@dataclass(frozen=True, slots=True)
class Flag:
    pass


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """One of a few constants, the simplest first."""

    options: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if not 0 < len(set(self.options)) == len(self.options):
            raise ValueError(f"constants must be distinct, got {self.options}")

    # By repr, since 1 == True in Python, and nodes are the keys of cached functions.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pick) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@final
@dataclass(frozen=True, slots=True)
class Text:
    """Any text that UTF-8 can encode, including NUL and characters above U+FFFF; sizes count characters."""

    min_size: int = 0
    max_size: int = 20
    interesting: tuple[str, ...] = ()
    """Texts to try often: names that occur in several places."""

    def __post_init__(self) -> None:
        _sizes(self.min_size, self.max_size)
        if not all(self.min_size <= len(text) <= self.max_size for text in self.interesting):
            raise ValueError(f"sizes must be from {self.min_size} to {self.max_size}: {self.interesting}")


@final
@dataclass(frozen=True, slots=True)
class Blob:
    min_size: int = 0
    max_size: int = 64

    def __post_init__(self) -> None:
        _sizes(self.min_size, self.max_size)


@final
@dataclass(frozen=True, slots=True)
class Uuid:
    """Any 128 bits, including the all-zero uuid, which in Kafka stands for none."""


@final
@dataclass(frozen=True, slots=True)
class Seq:
    item: "Node"
    min_size: int = 0
    max_size: int = 4
    ascending: str | None = None
    """A key of the items: if given, the items are strictly ascending by it."""

    def __post_init__(self) -> None:
        _sizes(self.min_size, self.max_size)
        if self.ascending is not None and self.min_size > 1:
            raise ValueError("min_size must be at most 1 for items with distinct keys")


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A list of exactly these items."""

    items: tuple["Node", ...]


@final
@dataclass(frozen=True, slots=True)
class Record:
    fields: tuple[tuple[str, "Node"], ...]
    optional: tuple[tuple[str, "Node"], ...] = ()
    """Keys that a value may omit."""


@final
@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several alternatives, the simplest first. A value may match several."""

    options: tuple["Node", ...]


@final
@dataclass(frozen=True, slots=True)
class Embedded:
    """Bytes that encode a value of another message, as ``kipcheck.conformance.wire.layout`` lays it out."""

    edition: str
    message: str
    version: int
    body: "Node"


Node: TypeAlias = Integer | Float | Flag | Pick | Text | Blob | Uuid | Seq | Row | Record | OneOf | Embedded


def record(**fields: Node) -> Record:
    return Record(tuple(fields.items()))


def with_fields(node: Record, **fields: Node) -> Record:
    """The same record with these fields replaced. Errors: KeyError for an unknown field."""
    for name in fields.keys() - dict(node.fields).keys():
        raise KeyError(name)
    return Record(tuple((name, fields.get(name, field)) for name, field in node.fields), node.optional)


def nullable(node: Node) -> OneOf:
    return OneOf((Pick((None,)), node))


def _sizes(low: int, high: int) -> None:
    if not 0 <= low <= high:
        raise ValueError(f"invalid sizes: {low} to {high}")
