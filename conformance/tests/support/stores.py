"""Answers of stores with timestamps, of the reference machine and of released jars."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.ops import OPERATIONS

OLD: Final = "open plain; put 61=31 at 5; close; open timestamped"
"""A store with timestamps over one value without."""


def machine_answers(release: str, steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Of the reference machine, as results of the testee protocol."""
    machine = store_of(release)
    state, found = machine.initial(), []
    for each in steps:
        state, actions = machine.step(state, OPERATIONS.event_of(each))
        found.append(OPERATIONS.answer_of(actions))
    return found


def converted(answer: Mapping[str, Any]) -> str:
    """What an answer says of the contents, in a line."""
    if "rows" in answer:
        return ", ".join(f"{each['key']} {each['value']} {each['timestamp']}" for each in answer["rows"])
    if "value" in answer:
        return f"{answer['value']} {answer['timestamp']}"
    return str(answer.get("class", answer.get("count", "")))
