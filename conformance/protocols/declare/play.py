"""Declarations by which ``play`` and ``explore`` find a model: its events, their fields, and its scope."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.machines.product import ProductMachine


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a field: its description, and a predicate for valid values."""

    words: str
    fits: Callable[[Any], bool]

    def or_null(self) -> "Kind":
        return Kind(f"{self.words}, or null", lambda value: value is None or self.fits(value))

    def listed(self) -> "Kind":
        return Kind(f"list of {self.words}", lambda value: isinstance(value, list) and all(map(self.fits, value)))


TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    meaning: str
    needed: bool = True
    """False: the field is optional."""


@dataclass(frozen=True, slots=True)
class Verb:
    """An event, in the form of a step of a case."""

    name: str
    actors: tuple[str, ...]
    """The actors of this event. If there is only one, the event may omit it."""
    meaning: str
    fields: tuple[Field, ...] = ()
    shorthand: str = ""
    """An example."""


def verbs(operations: Operations[Any, Any]) -> tuple[Verb, ...]:
    """The events of a machine with declared operations."""
    return tuple(
        Verb(
            each.verb,
            each.actors,
            each.meaning,
            tuple(
                Field(one.name, Kind(one.kind.words, one.kind.fits), one.meaning, not (one.optional or one.omissible))
                for one in each.fields
            ),
            each.examples,
        )
        for each in operations.declared
    )


@dataclass(frozen=True, slots=True)
class Conversation:
    """A machine that takes events one by one, as steps of a case."""

    name: str
    """The machine's role in the conversation: ``controller``."""
    machine: Driven[Any, Any, Any]
    event_of: Callable[[Step], Any]
    """Errors: LookupError, TypeError, ValueError or KeyError for a step that is not a valid event."""
    spoken: Callable[[str], Iterable[Step]]
    """Parses shorthand into steps. Errors: ValueError."""


Value: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of exploration."""

    default: Value
    meaning: str
    values: tuple[Value, ...]
    """All valid values."""


Scope: TypeAlias = Mapping[str, Any]
"""Name of a bound -> its value, for every bound of the model."""
Product: TypeAlias = ProductMachine[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Playable:
    name: str
    about: str
    editions: Callable[[Edition], str | None]
    """None if the model supports this edition; otherwise the supported editions, as text: ``kip-584``."""
    world: Callable[[Edition, Scope], Product]
    """Builds the product machine that ``explore`` searches, and that ``play --scope`` plays: components and laws.

    Errors: LookupError if the edition does not support this scope, naming a value that it supports."""
    verbs: tuple[Verb, ...] = ()
    """Events of the conversation."""
    moves: tuple[Verb, ...] = ()
    """Moves of the components of the product machine."""
    conversation: Callable[[Edition], Conversation] | None = None
    """None: ``play`` plays the product machine."""
    dials: Mapping[str, Bound] = field(default_factory=dict)
    unlike: Callable[[Edition], Scope] = lambda edition: {}
    """Bounds whose default differs in this edition."""

    def require_edition(self, edition: Edition) -> None:
        """Errors: LookupError if the model does not support this edition, naming the supported ones."""
        instead = self.editions(edition)
        if instead is not None:
            raise LookupError(f"model {self.name} does not support edition {edition}: use {instead}")

    def scope(self, text: str, edition: Edition) -> dict[str, Value]:
        """Parses ``members=3,crashes=1``; other bounds keep their defaults.

        Errors: LookupError, naming the valid bounds or values.
        """
        found = {**{name: dial.default for name, dial in self.dials.items()}, **self.unlike(edition)}
        for each in filter(None, (part.strip() for part in text.split(","))):
            name, _, wanted = each.partition("=")
            dial = self.dials.get(name)
            if dial is None:
                there = f"use one of {', '.join(self.dials)}" if self.dials else "it has no bounds"
                raise LookupError(f"unknown bound {name!r} of model {self.name}: {there}")
            values = {str(value): value for value in dial.values}
            if wanted not in values:
                raise LookupError(f"invalid bound {name}={wanted}: {name} must be one of {', '.join(values)}")
            found[name] = values[wanted]
        return found

    def scope_text(self, scope: Scope) -> str:
        """The scope as text that ``scope`` parses."""
        return ",".join(f"{name}={scope[name]}" for name in self.dials)
