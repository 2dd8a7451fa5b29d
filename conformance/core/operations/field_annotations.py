"""What may stand in the annotation of a field of an operation, and the field that is read from it."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, get_type_hints

from kipcheck.conformance.core.operations.field_kinds import Edges, Kind, edges, kind_of

__all__ = [
    "About", "Edges", "Field", "Named", "Size", "Typical", "Wire", "about", "edges", "fields_of", "hidden", "named",
    "omissible", "optional", "size", "typical", "wire",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class About:
    """``about("a sentence for people")``, without a period."""

    text: str


@dataclass(frozen=True, slots=True)
class Typical:
    """``typical(...)``: the values that are drawn, the simplest first; one range: all integers in it."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """``named("class")``: the key of the field in an answer; ``hidden``: it is not a part of the answer."""

    key: str


def about(text: str) -> About:
    return About(text)


def typical(*values: Any) -> Typical:
    return Typical(values)


def named(key: str) -> Named:
    return Named(key)


hidden: Final = Named("")


@dataclass(frozen=True, slots=True)
class Size:
    """``size(1, 2)``: how many items are drawn of a list whose items have a few values."""

    least: int
    most: int


def size(least: int, most: int) -> Size:
    return Size(least, most)


@dataclass(frozen=True, slots=True)
class Wire:
    """``wire("memberId")``: the place of a field in a message, or those of the parts of a row: see ``wire_form``."""

    places: tuple[str, ...]
    is_sorted: bool
    """Rows are read sorted."""
    blank_is_null: bool
    """No text is read as null."""


def wire(*places: str, is_sorted: bool = False, blank_is_null: bool = False) -> Wire:
    return Wire(places, is_sorted, blank_is_null)


class Optional:
    """The type of ``optional``: a step, or an answer, omits the field where it has its default."""


class Omissible:
    """The type of ``omissible``: an event that a person writes may omit the field; a step always has it."""


optional: Final = Optional()
omissible: Final = Omissible()


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    meaning: str
    key: str
    """In an answer; empty: it is not a part of it."""
    default: Any
    """MISSING: there is none."""
    typical: tuple[Any, ...]
    optional: bool
    """A step or an answer omits it where it has its default: a new field changes no case that lacks it."""
    omissible: bool
    size: Size | None

    @property
    def may_be_absent(self) -> bool:
        """In shorthand."""
        return self.default is not MISSING or self.kind.nullable

    @property
    def absent(self) -> Any:
        return None if self.default is MISSING else self.default


def fields_of(made: type) -> Iterator[Field]:
    hints = get_type_hints(made, include_extras=True)
    for each in fields(made):
        annotation = hints[each.name]
        extras = annotation.__metadata__ if hasattr(annotation, "__metadata__") else ()
        found = {type(extra): extra for extra in extras}
        yield Field(
            each.name,
            kind_of(annotation),
            found[About].text if About in found else "",
            found[Named].key if Named in found else each.name,
            each.default,
            found[Typical].values if Typical in found else (),
            Optional in found,
            Omissible in found,
            found.get(Size),
        )
