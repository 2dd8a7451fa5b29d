"""Renders a counter-example of an exploration: as events that ``play`` reads, and as rows of a sequence diagram."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.plain import KIND, plain
from kipcheck.conformance.explore.games import event_data, move_text
from kipcheck.conformance.machines.product import Event, SimpleProduct
from kipcheck.conformance.machines.search import Breach
from kipcheck.conformance.protocols.declare.play import Product
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine


def history(world: Product, breach: Breach[Any]) -> list[dict[str, Any]]:
    """The events of the counter-example, in the JSON form that ``play`` reads."""
    if isinstance(world, SingleMachine):
        return [_step_data(world.step_of(each.move)) for each in breach.path]
    return [event_data(world, each) for each in breach.path]


def _step_data(step: Step) -> dict[str, Any]:
    return {"actor": step.actor, "verb": step.verb, "body": dict(step.body)}


def jsonl(events: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in events)


def rows(world: Product, breach: Breach[Any]) -> list[dict[str, Any]]:
    """One row per message, as ``kipcheck.reports.diagram`` draws it; rows of the last event are marked guilty."""
    made = _machine_rows(world, breach.path) if isinstance(world, SingleMachine) else _product_rows(world, breach.path)
    found = list(made)
    for row in found:
        row["guilty"] = row.pop("event") == len(breach.path) - 1
    return found


def _product_rows(world: Product, path: Sequence[Event[Any]]) -> Iterator[dict[str, Any]]:
    """A row for each move and message that has a text. An event without any text gets one row, with its move."""
    whole = SimpleProduct(world)
    state = whole.initial()
    for number, event in enumerate(path):
        state, words = whole.step(state, event)
        said = [(each, world.describe(each.says)) for each in words]
        shown = [(each, says) for each, says in said if says] or [(words[0], move_text(world, event.move))]
        for place, (each, says) in enumerate(shown):
            by, to = world.names[each.by], world.names[each.by if each.to is None else each.to]
            yield {"event": number, "from": by, "to": to, "says": says, "answer": None, "first": not place}


def _machine_rows(world: SingleMachine, path: Sequence[Event[Any]]) -> Iterator[dict[str, Any]]:
    state = world.machine.initial()
    for number, event in enumerate(path):
        state, actions = world.machine.step(state, event.move)
        answers = "; ".join(_answer(each) for each in plain(actions, KIND))
        by = world.step_of(event.move).actor
        yield {"event": number, "from": by, "to": world.name, "says": world.describe(event.move),
               "answer": answers or None, "first": True}  # fmt: skip


def _answer(action: dict[str, Any]) -> str:
    fields = ", ".join(f"{name} {json.dumps(value)}" for name, value in action.items() if name != KIND)
    return f"{action[KIND]} {fields}".rstrip()
