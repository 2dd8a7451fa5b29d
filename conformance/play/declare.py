"""What a model declares to be played and explored by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.core.machine import Driven
from kipcheck.conformance.machines.product import Composed


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field may hold."""

    words: str
    fits: Callable[[Any], bool]

    def or_null(self) -> "Kind":
        return Kind(f"{self.words}, or null", lambda value: value is None or self.fits(value))

    def listed(self) -> "Kind":
        return Kind(f"list of {self.words}", lambda value: isinstance(value, list) and all(map(self.fits, value)))


def together(*kinds: Kind) -> Kind:
    """A list of so many values, each of its kind."""
    words = f"[{', '.join(kind.words for kind in kinds)}]"

    def fits(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(kinds)
            and all(kind.fits(each) for kind, each in zip(kinds, value, strict=True))
        )

    return Kind(words, fits)


INTEGER = Kind("integer", lambda value: type(value) is int)
TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    meaning: str
    needed: bool = True
    """False: it may be left out."""


@dataclass(frozen=True, slots=True)
class Verb:
    """An event, as a step of a case tells it."""

    name: str
    actors: tuple[str, ...]
    """Who may do it; where there is but one, an event need not name it."""
    meaning: str
    fields: tuple[Field, ...] = ()
    shorthand: str = ""
    """An example."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A machine that is told events one by one, in the words of cases."""

    name: str
    """Of the machine's own part in a conversation: ``controller``."""
    machine: Driven[Any, Any, Any]
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
    """What is explored, and played where a scope is given: parts that move, and the laws they keep.

    Errors: LookupError where the edition has nothing of such a scope, with what would do."""
    verbs: tuple[Verb, ...] = ()
    """What a conversation is told."""
    moves: tuple[Verb, ...] = ()
    """What parts of the world do by themselves, where it has several."""
    conversation: Callable[[Edition], Conversation] | None = None
    """None: it is the world that is played."""
    dials: Mapping[str, Dial] = field(default_factory=dict)
    unlike: Callable[[Edition], Scope] = lambda edition: {}
    """What is usual for a dial in this edition instead of its default."""

    def played_in(self, edition: Edition) -> None:
        """Errors: LookupError where it is not, with what there is."""
        instead = self.editions(edition)
        if instead is not None:
            raise LookupError(f"{self.name} is not played in {edition}: there is {instead}")

    def scope(self, text: str, edition: Edition) -> dict[str, Value]:
        """``members=3,crashes=1``; other dials stay as they are. Errors: LookupError with what there is."""
        found = {**{name: dial.default for name, dial in self.dials.items()}, **self.unlike(edition)}
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
