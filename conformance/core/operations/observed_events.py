"""Observed events, declared once: what a machine reports of its members in an answer, one after the other.

Each is a frozen dataclass. Derived here: its JSON (``{"what": "took", ...}``, with its fields) and back, and sentences.
The requests that a machine sends may be among them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, get_type_hints

from kipcheck.conformance.core.operations.field_kinds import Kind, kind_of, record
from kipcheck.conformance.core.operations.templates import Template

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
WHAT: Final = "what"
"""The key of the name of an observed event."""
OBSERVED: Final = "__observed__"
W = TypeVar("W")
C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class Observed:
    """What an observed event declares."""

    what: str
    made: type
    kind: Kind
    describe: Callable[[Any], str]
    """An event as a sentence for reports."""


def observed(
    what: str, sentence: str | Callable[[Any], str], *, omitted: tuple[str, ...] = (), lenient: bool = False
) -> Callable[[C], C]:
    """Declares a frozen dataclass as an observed event.

    ``what``: its name in JSON; ``sentence``: a template, or a function for an event that no template describes.
    ``omitted``, ``lenient``: see ``record``.
    """

    def declare(made: C) -> C:
        setattr(made, OBSERVED, _observed(made, what, sentence, {}, record(made, omitted=omitted, lenient=lenient)))
        return made

    return declare


def sent(
    made: type,
    what: str,
    sentence: str,
    *,
    kinds: Mapping[str, Kind] = NOTHING,
    without: tuple[str, ...] = (),
    prints: Mapping[str, Callable[[Any], str]] = NOTHING,
) -> Observed:
    """A request, as an event of the machine that sends it. ``kinds``: those of some of its fields there.

    ``without``: fields that its JSON has not. ``prints``: fields as text for people.
    """
    kind = record(made, kinds=kinds, without=without, lenient=True)
    return _observed(made, what, sentence, {**kinds, **{name: _printed(each) for name, each in prints.items()}}, kind)


def _printed(text: Callable[[Any], str]) -> Kind:
    return kind_of(str).printed_by(text)


def _observed(
    made: Any, what: str, sentence: str | Callable[[Any], str], other: Mapping[str, Kind], kind: Kind
) -> Observed:
    hints = get_type_hints(made, include_extras=True)
    kinds = {each.name: other.get(each.name) or kind_of(hints[each.name]) for each in fields(made)}
    absent = {each.name: each.default for each in fields(made) if each.default is not MISSING}
    absent |= {name: None for name, each in kinds.items() if each.nullable and name not in absent}
    describe = Template(sentence, kinds, absent).printed if isinstance(sentence, str) else sentence
    return Observed(what, made, kind, describe)


class ObservedEvents(Generic[W]):
    """The observed events of one machine."""

    def __init__(self, *events: type[W] | Observed, key: str = WHAT) -> None:
        """``key``: of the name of an event in JSON."""
        self.declared: tuple[Observed, ...] = tuple(
            each if isinstance(each, Observed) else getattr(each, OBSERVED) for each in events
        )
        self.key = key
        self._readers = {each.what: each.kind.read for each in self.declared}
        self._writers = {each.made: (each.what, each.kind.write or each.kind.plain) for each in self.declared}
        self._sentences = {each.made: each.describe for each in self.declared}

    def to_json(self, event: W) -> dict[str, Any]:
        what, write = self._writers[type(event)]
        return {self.key: what, **write(event)}

    def from_json(self, data: Mapping[str, Any]) -> W:
        """Errors: LookupError for an unknown event; TypeError for unknown, missing or invalid fields."""
        body = {**data}
        read = self._readers.get(body.pop(self.key, None))
        if read is None:
            raise LookupError(self._unknown(data))
        event: W = read(body)
        return event

    def _unknown(self, data: Any) -> str:
        return f"unknown {self.key} {data!r}: use one of {', '.join(self._readers)}"

    def check(self, data: Any) -> str:
        """Of an event in an answer: what is wrong with it, as ``verb_registry`` wants it."""
        name = data.get(self.key) if isinstance(data, Mapping) else None
        if not isinstance(name, str) or name not in self._readers:
            return f": {self._unknown(data)}"
        try:
            self.from_json(data)
        except TypeError as wrong:
            return str(wrong)
        return ""

    def answer_of(self, events: Iterable[W]) -> dict[str, Any]:
        """The answer of the testee protocol: all observed events, in order."""
        return {"status": "accepted", "actions": [self.to_json(each) for each in events]}

    def describe(self, event: W) -> str:
        """A sentence for reports."""
        return self._sentences[type(event)](event)
