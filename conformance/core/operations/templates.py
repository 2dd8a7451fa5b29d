"""Templates: the text of a value with fields, which can be printed, and parsed where it is shorthand.

``up {broker} {low}-{high}``: literal text and fields. ``[ on {topics}]`` is left out where its fields are absent.
``{name:note}``: the note depends on the kind of the field (``field_kinds``): the text of a flag that is set, other
words for the values of an enum, a separator.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm

PART: Final = re.compile(r"(?P<open>\[)|(?P<close>\])|\{(?P<name>\w+)(?::(?P<note>[^}]*))?\}|(?P<literal>[^][{}]+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A field in a template."""

    name: str
    form: TextForm


Part: TypeAlias = "str | Place"


@dataclass(frozen=True)
class Section:
    parts: tuple[Part, ...]
    optional: bool

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return tuple(each for each in self.parts if isinstance(each, Place))

    @property
    def usage(self) -> str:
        return "".join(each if isinstance(each, str) else each.form.usage or each.name.upper() for each in self.parts)

    @property
    def pattern(self) -> str:
        whole = "".join(
            re.escape(each) if isinstance(each, str) else f"(?P<{each.name}>{each.form.pattern})" for each in self.parts
        )
        return f"(?:{whole})?" if self.optional else whole


class Template:
    """Errors: ValueError for a template that cannot be read; KeyError for a field that does not exist."""

    def __init__(self, text: str, kinds: Mapping[str, Kind], absent: Mapping[str, Any]) -> None:
        """``absent``: for each field that a text may leave out, its value there."""
        self.text = text
        self.sections = tuple(_sections(text, kinds))
        self._absent = absent
        self.fields = frozenset(each.name for section in self.sections for each in section.places)
        needed = {each.name for section in self.sections if not section.optional for each in section.places}
        for missing in self.fields - needed - absent.keys():
            raise ValueError(f"{text!r} leaves out {missing}, which has no default")
        self._needed = tuple(name for name in needed if kinds[name].nullable)

    def suits(self, value: Any) -> bool:
        """Whether all fields are there that the text cannot leave out."""
        return not self._needed or all(getattr(value, name) is not None for name in self._needed)

    def printed(self, value: Any) -> str:
        text = ""
        for section in self.sections:
            if section.optional:
                for place in section.places:
                    if getattr(value, place.name) != self._absent[place.name]:
                        break
                else:
                    continue
            for each in section.parts:
                text += each if type(each) is str else each.form.print(getattr(value, each.name))  # type: ignore[union-attr]
        return text

    def parsed(self, text: str) -> dict[str, Any] | None:
        """The fields of a text; None for another text."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        parsers = self._parsers
        given = {name: parsers[name](each) for name, each in found.groupdict().items() if each is not None}
        return {**self._absent, **given}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(each.pattern for each in self.sections))

    @cached_property
    def _parsers(self) -> Mapping[str, Callable[[str], Any]]:
        return {each.name: each.form.parse for section in self.sections for each in section.places}

    @property
    def usage(self) -> str:
        """For people: ``up BROKER LOW-HIGH``."""
        texts = (f"[{each.usage}]" if each.optional else each.usage for each in self.sections)
        return "".join(texts)


class Suits(Protocol):
    def suits(self, value: Any, /) -> bool: ...


F = TypeVar("F", bound=Suits)


def first_suiting(templates: Sequence[F], value: Any) -> F:
    """The last one if none suits."""
    for each in templates:
        if each.suits(value):
            return each
    return templates[-1]


def _sections(text: str, kinds: Mapping[str, Kind]) -> Iterator[Section]:
    if "".join(each[0] for each in PART.finditer(text)) != text:
        raise ValueError(f"invalid template {text!r}")
    parts: list[Part] = []
    optional = False
    for each in PART.finditer(text):
        if each["open"] or each["close"]:
            if parts:
                yield Section(tuple(parts), optional)
            parts, optional = [], bool(each["open"])
        elif each["name"]:
            parts.append(Place(each["name"], kinds[each["name"]].text(each["note"] or "")))
        else:
            parts.append(each["literal"])
    if parts:
        yield Section(tuple(parts), False)
