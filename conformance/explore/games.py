"""Interactive sessions with a model: applies events, given as JSON or shorthand, and returns actions and state."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.plain import KIND, kind_of, plain
from kipcheck.conformance.machines.product import Event, SimpleProduct
from kipcheck.conformance.protocols.declare.play import Conversation, Playable, Product, Scope, Verb

MAX_SHOWN_MOVES = 12
"""How many enabled moves an error message lists at most."""


class RejectedEvent(ValueError):
    """An event that is malformed or not enabled. The message names the event and the alternatives."""


class InteractiveSession(Protocol):
    def apply(self, text: str) -> dict[str, Any]:
        """Applies one event, and returns the model's actions and its new state. Errors: Unplayable."""
        ...


def open_session(model: Playable, edition: Edition, scope: Scope | None) -> InteractiveSession:
    """A session with the model's conversation; with its product machine if it has none or a scope is given."""
    if model.conversation is not None and scope is None:
        return ConversationSession(model.verbs, model.conversation(edition))
    return ProductSession(model.world(edition, model.scope("", edition) if scope is None else scope))


def events(line: str) -> Iterator[str]:
    """Splits a line into events: one in JSON, or several in shorthand, separated by semicolons."""
    text = line.strip()
    if text.startswith("{"):
        yield text
    else:
        yield from (each.strip() for each in text.split(";") if each.strip())


def _data(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as wrong:
        raise RejectedEvent(f"invalid JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise RejectedEvent("an event must be a JSON object")
    unknown = sorted(found.keys() - {"actor", "verb", "body"})
    if unknown:
        raise RejectedEvent(f'unknown key {unknown[0]!r}: an event has "actor", "verb" and "body"')
    if not isinstance(found.get("verb"), str):
        raise RejectedEvent('an event must have a "verb", which is a string')
    if not isinstance(found.get("body", {}), dict):
        raise RejectedEvent('the "body" of an event must be an object')
    return found


class ConversationSession:
    """A session with a single machine, whose events are steps of a case."""

    def __init__(self, verbs: tuple[Verb, ...], conversation: Conversation) -> None:
        self._verbs = {each.name: each for each in verbs}
        self._conversation = conversation
        self._state = conversation.machine.initial()

    def apply(self, text: str) -> dict[str, Any]:
        for step in self._steps(text):
            try:
                event = self._conversation.event_of(step)
            except (LookupError, TypeError, ValueError) as wrong:
                raise RejectedEvent(_reason(wrong)) from None
            self._state, actions = self._conversation.machine.step(self._state, event)
        return {"actions": plain(actions, KIND), "state": plain(self._state)}

    def _steps(self, text: str) -> Iterator[Step]:
        if text.startswith("{"):
            yield self._step(_data(text))
            return
        try:
            yield from self._conversation.spoken(text)
        except (LookupError, TypeError, ValueError) as wrong:
            why = _reason(wrong)
            raise RejectedEvent(why if why.startswith("invalid event") else f"invalid event {text!r}: {why}") from None

    def _step(self, data: Mapping[str, Any]) -> Step:
        verb = self._verbs.get(data["verb"])
        if verb is None:
            raise RejectedEvent(f"unknown event {data['verb']!r}: use one of {', '.join(self._verbs)}")
        actor = data.get("actor", verb.actors[0] if len(verb.actors) == 1 else None)
        if actor not in verb.actors:
            raise RejectedEvent(f"the actor of {verb.name} must be {' or '.join(verb.actors)}, not {json.dumps(actor)}")
        body = data.get("body", {})
        fields = {each.name: each for each in verb.fields}
        for name, value in body.items():
            if name not in fields:
                raise RejectedEvent(f"{verb.name} has no field {name!r}; its fields are {', '.join(fields) or 'none'}")
            if not fields[name].kind.fits(value):
                wanted = fields[name].kind.words
                raise RejectedEvent(f"invalid {name} of {verb.name}: expected {wanted}, got {json.dumps(value)}")
        for name, field in fields.items():
            if field.needed and name not in body:
                raise RejectedEvent(f"{verb.name} requires the field {name} ({field.kind.words}): {field.meaning}")
        return Step(actor, verb.name, body)


class ProductSession:
    """A session with a product machine: an event is an enabled move of one of its components."""

    def __init__(self, world: Product) -> None:
        self._product = SimpleProduct(world)
        self._state = self._product.initial()

    def apply(self, text: str) -> dict[str, Any]:
        event = self._found(text)
        self._state, words = self._product.step(self._state, event)
        names = self._product.made.names
        actions = [
            {"from": names[each.by], "to": names[each.to], "says": to_json(each.says)}
            for each in words
            if each.to is not None
        ]
        return {"actions": actions, "state": dict(zip(names, map(plain, self._state), strict=True))}

    def _found(self, text: str) -> Event[Any]:
        world = self._product.made
        enabled_now = [*self._product.enabled(self._state)]
        if text.startswith("{"):
            wanted = _data(text)
            wanted = {key: value for key, value in wanted.items() if key != "body" or value}
            found = [each for each in enabled_now if event_data(world, each) == wanted]
        else:
            found = [each for each in enabled_now if event_text(world, each) == " ".join(text.split())]
        if not found:
            names = [event_text(world, each) for each in enabled_now]
            more = f" and {len(names) - MAX_SHOWN_MOVES} more" if len(names) > MAX_SHOWN_MOVES else ""
            raise RejectedEvent(
                f"this move is not enabled; enabled moves: {'; '.join(names[:MAX_SHOWN_MOVES]) or 'none'}{more}"
            )
        return found[0]


def to_json(value: object) -> dict[str, Any]:
    """A move or a message as JSON: its kind is the verb, its fields are the body."""
    if isinstance(value, str):
        return {"verb": value}
    body = plain(value)
    return {"verb": kind_of(value), "body": body} if body else {"verb": kind_of(value)}


def event_data(world: Product, event: Event[Any]) -> dict[str, Any]:
    """A move of a product machine, in the JSON form that ``play`` reads."""
    return {"actor": world.names[event.part], **to_json(event.move)}


def event_text(world: Product, event: Event[Any]) -> str:
    """A move of a product machine in shorthand: the component's name, and the text of the move."""
    return f"{world.names[event.part]} {move_text(world, event.move)}"


def move_text(world: Product, move: Any) -> str:
    """The text of a move: the product machine's own, else its kind (except ``does``) and its fields."""
    kind = kind_of(move)
    return world.describe(move) or " ".join((*[kind] * (kind != "does"), *_values(plain(move))))


def _values(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for each in data.values():
            yield from _values(each)
    elif isinstance(data, list):
        for each in data:
            yield from _values(each)
    elif data not in (None, False, ""):
        yield str(data)


def _reason(wrong: Exception) -> str:
    return str(wrong.args[0]) if wrong.args else type(wrong).__name__
