"""What exploration found, told: a counter-example as a history, as events that ``play`` reads, as rows of a diagram."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.core.case import Step
from conformance.core.plain import KIND, plain
from conformance.models.composed import Event, Whole
from conformance.models.packed import Breach
from conformance.playable.alone import Alone
from conformance.playable.declared import Conversation, World
from conformance.playable.games import event_data


def history(world: World, breach: Breach[Any]) -> list[dict[str, Any]]:
    """The events, as ``play`` reads them."""
    if isinstance(world, Alone):
        return [_step_data(world.step_of(each.move)) for each in breach.path]
    return [event_data(world, each) for each in breach.path]


def _step_data(step: Step) -> dict[str, Any]:
    return {"actor": step.actor, "verb": step.verb, "body": dict(step.body)}


def jsonl(events: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in events)


def rows(world: World, breach: Breach[Any], conversation: Conversation | None) -> list[dict[str, Any]]:
    """Who says what to whom, as ``reports.diagram`` draws it; the last event is the guilty one."""
    made = _alone(world, breach.path, conversation) if isinstance(world, Alone) else _together(world, breach.path)
    found = list(made)
    for row in found:
        row["guilty"] = row.pop("event") == len(breach.path) - 1
    return found


def _together(world: World, path: Sequence[Event[Any]]) -> Iterator[dict[str, Any]]:
    """A row for the move itself, and one for each message. A move of which nothing is said shows by its messages."""
    whole = Whole(world)
    state = whole.initial()
    for number, event in enumerate(path):
        state, words = whole.step(state, event)
        first = True
        for word in words:
            says = world.says(word.says)
            if says or word.to is not None or len(words) == 1:
                to = word.by if word.to is None else word.to
                yield {"event": number, "from": world.names[word.by], "to": world.names[to], "says": says,
                       "answer": None, "first": first}  # fmt: skip
                first = False


def _alone(
    world: Alone, path: Sequence[Event[Any]], conversation: Conversation | None
) -> Iterator[dict[str, Any]]:
    state = world.machine.initial()
    for number, event in enumerate(path):
        step = world.step_of(event.move)
        state, actions = world.machine.step(state, event.move)
        says = conversation.shorthand([step]) if conversation else step.verb
        answers = "; ".join(_answer(each) for each in plain(actions, KIND))
        yield {"event": number, "from": step.actor, "to": world.name, "says": says, "answer": answers or None}


def _answer(action: dict[str, Any]) -> str:
    fields = ", ".join(f"{name} {json.dumps(value)}" for name, value in action.items() if name != KIND)
    return f"{action[KIND]} {fields}".rstrip()
