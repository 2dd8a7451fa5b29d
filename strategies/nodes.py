"""The declaration of a family of cases: a few frozen nodes that say what is allowed, not what is likely.

Nodes do nothing. Three readings give them meaning, and they speak one language:
``as_hypothesis`` (a strategy), ``compiled`` (a fast generator), and data (``parse``, ``reduce``, ``mutate``).
A value is plain data: None, bool, int, float, str, bytes, uuids, and lists and dicts of these.
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
            raise ValueError(f"no place between {self.low} and {self.high} for {self.interesting or 'any integer'}")


@final
@dataclass(frozen=True, slots=True)
class Float:
    """Any finite double: a NaN equals nothing, not even itself, and JSON has neither it nor the infinities."""


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
            raise ValueError(f"constants that differ are wanted, not {self.options}")

    # By repr, for 1 == True in Python, and a node is the key under which its compiled function is kept.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pick) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@final
@dataclass(frozen=True, slots=True)
class Text:
    """Any text that UTF-8 can carry, NUL and astral characters among them; sizes count characters."""

    min_size: int = 0
    max_size: int = 20
    interesting: tuple[str, ...] = ()
    """Texts to try often: names that turn up in more places than one."""

    def __post_init__(self) -> None:
        _sizes(self.min_size, self.max_size)
        if not all(self.min_size <= len(text) <= self.max_size for text in self.interesting):
            raise ValueError(f"a size between {self.min_size} and {self.max_size} is wanted of {self.interesting}")


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
    """Any 128 bits, the all-zero uuid among them: in Kafka it stands for none."""


@final
@dataclass(frozen=True, slots=True)
class Seq:
    item: "Node"
    min_size: int = 0
    max_size: int = 4
    ascending: str | None = None
    """A key of the items: where it is given, the items are strictly ascending by it."""

    def __post_init__(self) -> None:
        _sizes(self.min_size, self.max_size)
        if self.ascending is not None and self.min_size > 1:
            raise ValueError("items that differ by a key cannot be promised in a number above 1")


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A list of just these items, one of each."""

    items: tuple["Node", ...]


@final
@dataclass(frozen=True, slots=True)
class Record:
    fields: tuple[tuple[str, "Node"], ...]
    optional: tuple[tuple[str, "Node"], ...] = ()
    """Keys that a value may lack."""


@final
@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several shapes, the simplest first. A value may fit several."""

    options: tuple["Node", ...]


@final
@dataclass(frozen=True, slots=True)
class Embedded:
    """Bytes that hold a value of another message, as ``kipcheck.conformance.wire.layout`` lays it out."""

    edition: str
    message: str
    version: int
    body: "Node"


Node: TypeAlias = Integer | Float | Flag | Pick | Text | Blob | Uuid | Seq | Row | Record | OneOf | Embedded


def record(**fields: Node) -> Record:
    return Record(tuple(fields.items()))


def with_fields(node: Record, **fields: Node) -> Record:
    """The same record, but for these of its fields. Errors: KeyError for a field that it has not."""
    for name in fields.keys() - dict(node.fields).keys():
        raise KeyError(name)
    return Record(tuple((name, fields.get(name, field)) for name, field in node.fields), node.optional)


def nullable(node: Node) -> OneOf:
    return OneOf((Pick((None,)), node))


def _sizes(low: int, high: int) -> None:
    if not 0 <= low <= high:
        raise ValueError(f"no size lies between {low} and {high}")
