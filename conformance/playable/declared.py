"""What a model declares to be played and explored by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from conformance.core.case import Step
from conformance.core.edition import Edition
from conformance.core.machine import Machine
from conformance.models.composed import Composed


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str
    """In words: ``integer``, ``true or false``, ``list of [name, metadata]``, ``text, or null``."""
    meaning: str


@dataclass(frozen=True, slots=True)
class Verb:
    """An event, as a step of a case tells it."""

    name: str
    actor: str
    """Who does it: a name, or in words which names would do."""
    meaning: str
    fields: tuple[Field, ...] = ()
    shorthand: str = ""
    """An example."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A machine that is told events one by one, in the words of cases."""

    machine: Machine[Any, Any, Any]
    event_of: Callable[[Step], Any]
    """Errors: LookupError, TypeError, ValueError, KeyError where a step is no event."""
    spoken: Callable[[str], Iterable[Step]]
    """The steps of a shorthand. Errors: ValueError for what is none."""


Value: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Dial:
    """A bound of exploration."""

    default: Value
    meaning: str
    values: tuple[Value, ...]
    """All that may be asked for."""


Scope: TypeAlias = Mapping[str, Any]
"""Dial -> value, every dial included."""
World: TypeAlias = Composed[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Playable:
    name: str
    about: str
    editions: Callable[[Edition], str | None]
    """None: it is played in this edition; otherwise which ones there are, in words: ``kip-584 alone``."""
    world: Callable[[Edition, Scope], World]
    """What is explored, and played where a scope is given: parts that move, and the laws they keep."""
    verbs: tuple[Verb, ...] = ()
    """What a conversation is told; none: it is the world that is played."""
    conversation: Callable[[Edition], Conversation] | None = None
    dials: Mapping[str, Dial] = field(default_factory=dict)

    def played_in(self, edition: Edition) -> None:
        """Errors: LookupError where it is not, with what there is."""
        instead = self.editions(edition)
        if instead is not None:
            raise LookupError(f"{self.name} is not played in {edition}: there is {instead}")

    def scope(self, text: str) -> dict[str, Value]:
        """``members=3,crashes=1``; other dials stay as they are. Errors: LookupError with what there is."""
        found = {name: dial.default for name, dial in self.dials.items()}
        for each in filter(None, (part.strip() for part in text.split(","))):
            name, _, wanted = each.partition("=")
            dial = self.dials.get(name)
            if dial is None:
                there = ", ".join(self.dials) or "none"
                raise LookupError(f"{self.name} has no dial {name!r}; there is {there}")
            values = {str(value): value for value in dial.values}
            if wanted not in values:
                raise LookupError(f"{name}={wanted}: {name} is one of {', '.join(values)}")
            found[name] = values[wanted]
        return found

    def scope_text(self, scope: Scope) -> str:
        """As ``scope`` reads it."""
        return ",".join(f"{name}={scope[name]}" for name in self.dials)
