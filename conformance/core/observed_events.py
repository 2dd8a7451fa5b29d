"""Observed events, declared once: what a machine reports of its members in an answer, one after the other.

Each is a frozen dataclass. Derived here: its JSON (``{"what": "took", ...}``, with its fields) and back, and sentences.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Generic, TypeVar, get_type_hints

from kipcheck.conformance.core.field_kinds import Kind, kind_of, record
from kipcheck.conformance.core.templates import Template

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


def observed(what: str, sentence: str | Callable[[Any], str]) -> Callable[[C], C]:
    """Declares a frozen dataclass as an observed event.

    ``what``: its name in JSON; ``sentence``: a template, or a function for an event that no template describes.
    """

    def declare(made: C) -> C:
        hints = get_type_hints(made, include_extras=True)
        kinds = {each.name: kind_of(hints[each.name]) for each in fields(made)}
        absent = {each.name: each.default for each in fields(made) if each.default is not MISSING}
        absent |= {name: None for name, kind in kinds.items() if kind.nullable and name not in absent}
        describe = Template(sentence, kinds, absent).printed if isinstance(sentence, str) else sentence
        setattr(made, OBSERVED, Observed(what, made, record(made), describe))
        return made

    return declare


class ObservedEvents(Generic[W]):
    """The observed events of one machine."""

    def __init__(self, *events: type[W]) -> None:
        self.declared: tuple[Observed, ...] = tuple(getattr(each, OBSERVED) for each in events)
        self._readers = {each.what: each.kind.read for each in self.declared}
        self._writers = {each.made: (each.what, each.kind.plain) for each in self.declared}
        self._sentences = {each.made: each.describe for each in self.declared}

    def to_json(self, event: W) -> dict[str, Any]:
        what, write = self._writers[type(event)]
        return {WHAT: what, **write(event)}

    def from_json(self, data: Mapping[str, Any]) -> W:
        """Errors: LookupError for an unknown event; TypeError for unknown, missing or invalid fields."""
        body = {**data}
        event: W = self._readers[body.pop(WHAT)](body)
        return event

    def answer_of(self, events: Iterable[W]) -> dict[str, Any]:
        """The answer of the testee protocol: all observed events, in order."""
        return {"status": "accepted", "actions": [self.to_json(each) for each in events]}

    def describe(self, event: W) -> str:
        """A sentence for reports."""
        return self._sentences[type(event)](event)
