"""Converts upgrade scripts: steps of an operator to events, observed events of the members to answers, and back.

A kind of members declares its own steps and observed events; those of any group are converted here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.once import cached_on_history
from kipcheck.conformance.protocols.upgrade.ops import (
    Move,
)

ACTOR: Final = "operator"
EventJson: TypeAlias = dict[str, Any]
"""An observed event as JSON: ``what``, and its fields."""
Converter: TypeAlias = Callable[[Any], Any]
E = TypeVar("E")
W = TypeVar("W")


class ObservedAt(NamedTuple, Generic[W]):
    """An observed event, and the step that caused it."""

    step: int
    seen: W


class ScriptTrace(NamedTuple, Generic[E, W]):
    """A history up to the last observed event before the first step without an answer."""

    events: tuple[E, ...]
    """The event of each step."""
    observed: tuple[ObservedAt[W], ...]


@dataclass(frozen=True)
class ScriptCodec(Generic[E, W]):
    """The steps and observed events of one kind of members."""

    events: Mapping[str, type[E]]
    """By verb."""
    observed: tuple[type[W], ...]
    records: Mapping[type[Any], type[Any]]
    """For an observed event with ``members``, the class of these."""
    checked: Callable[[E], E]
    """Returns the event. Errors: ValueError for unknown names in it."""
    text_of: Callable[[E], str]
    """The shorthand of an event that has a form of its own."""
    parsed: Callable[[list[str]], E | None]
    """Parses such a form; None for any other."""
    forms: tuple[str, ...]
    """These forms, for messages."""
    prefix: str = ""
    """Of all verbs; the shorthand omits it."""
    makers: Mapping[str, Callable[..., E]] = field(default_factory=dict)
    """Reads the body of a verb, in place of the class."""
    writers: Mapping[str, Converter] = field(default_factory=dict)
    """By field: converts its value to JSON; default: tuples to lists."""
    readers: Mapping[str, Converter] = field(default_factory=dict)

    @cached_property
    def verbs(self) -> Mapping[type[E], str]:
        return {made: verb for verb, made in self.events.items()}

    @cached_property
    def _by_name(self) -> Mapping[str, Callable[..., W]]:
        return {made.__name__.lower(): made for made in self.observed}

    @cached_property
    def _fields(self) -> Mapping[type[Any], Mapping[str, Converter]]:
        """By class: the converter of each field to JSON."""
        forms = (*self.events.values(), *self.observed, *self.records.values())
        return {made: {name: self.writers.get(name, self._plain) for name in _names(made)} for made in forms}

    @cached_property
    def _records(self) -> frozenset[type[Any]]:
        return frozenset(self.records.values())

    def _words(self, *names: str) -> list[str]:
        """The words for events with exactly these fields."""
        return [verb.removeprefix(self.prefix) for verb, made in self.events.items() if (*self._fields[made],) == names]

    @cached_property
    def _bare(self) -> list[str]:
        return self._words()

    @cached_property
    def _of_a_member(self) -> list[str]:
        return self._words("member")

    # Steps

    def step_of(self, event: E) -> Step:
        return step(ACTOR, self.verbs[type(event)], **self._body(event))

    def event_of(self, step: Step) -> E:
        """Errors: LookupError for an unknown verb; TypeError for wrong fields; ValueError for unknown names."""
        if step.verb not in self.events:
            raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(self.events)}")
        made = self.makers.get(step.verb, self.events[step.verb])
        return self.checked(made(**{name: _frozen(value) for name, value in step.body.items()}))

    def shorthand(self, steps: Iterable[Step]) -> str:
        return "; ".join(self._text(self.event_of(each)) for each in steps)

    def parse_shorthand(self, text: str) -> tuple[Step, ...]:
        """Parses shorthand into steps. Errors: ValueError."""
        return tuple(self.step_of(self._parsed(each.split())) for each in text.split(";") if each.strip())

    def _text(self, event: Any) -> str:
        word = self.verbs[type(event)].removeprefix(self.prefix)
        if isinstance(event, Move):
            return f"{word} {event.member} {event.moves}"
        if word in self._bare:
            return word
        return f"{word} {event.member}" if word in self._of_a_member else self.text_of(event)

    def _parsed(self, words: list[str]) -> E:
        match words:
            case [word] if word in self._bare:
                return self.event_of(step(ACTOR, self.prefix + word))
            case ["move", member, *moves] if not moves or (len(moves) == 1 and moves[0].isdigit()):
                body = {"member": member, "moves": int(moves[0]) if moves else 1}
                return self.event_of(step(ACTOR, f"{self.prefix}move", **body))
            case [word, member] if word in self._of_a_member:
                return self.event_of(step(ACTOR, self.prefix + word, member=member))
        if (found := self.parsed(words)) is not None:
            return self.checked(found)
        forms = ", ".join((*self._bare, *self.forms, "move MEMBER [MOVES]"))
        raise ValueError(
            f"invalid step {' '.join(words)!r}: use {forms}, or one of {', '.join(self._of_a_member)} with a MEMBER"
        )

    # Answers

    def answer_of(self, events: Iterable[W]) -> dict[str, Any]:
        """The answer of the testee protocol: all observed events, in order."""
        return {"status": "accepted", "actions": [self.to_json(each) for each in events]}

    def to_json(self, event: W) -> EventJson:
        return {"what": type(event).__name__.lower(), **self._body(event)}

    def from_json(self, data: Mapping[str, Any]) -> W:
        """Errors: LookupError, TypeError, AttributeError or ValueError for a malformed event."""
        made = self._by_name[data["what"]]
        body = self._read(data)
        del body["what"]
        record = self.records.get(made)  # type: ignore[call-overload]
        if record is not None:
            body["members"] = tuple(record(**self._read(each)) for each in data["members"])
        return made(**body)

    @cached_property
    def trace(self) -> Callable[[History], ScriptTrace[E, W]]:
        """Converts a history once for all its invariants."""
        return cached_on_history(self._trace)

    def _trace(self, history: History) -> ScriptTrace[E, W]:
        observed = tuple(ObservedAt(step, self.from_json(each)) for step, each in history.actions())
        answered = observed[-1].step + 1 if observed else 0
        return ScriptTrace(tuple(self.event_of(op.step) for op in history.ops[:answered]), observed)

    def observations(self, history: History) -> tuple[ObservedAt[W], ...]:
        return self.trace(history).observed

    def _read(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.readers.get(name, _frozen)(value) for name, value in data.items()}

    def _body(self, value: Any) -> dict[str, Any]:
        return {name: write(getattr(value, name)) for name, write in self._fields[type(value)].items()}

    def _plain(self, value: Any) -> Any:
        if type(value) in self._records:
            return self._body(value)
        return [self._plain(each) for each in value] if isinstance(value, tuple) else value


def _names(made: Any) -> tuple[str, ...]:
    named: tuple[str, ...] | None = getattr(made, "_fields", None)
    return named or tuple(each.name for each in fields(made))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
