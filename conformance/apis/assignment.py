"""Between the steps of a conversation about an assignment and what they mean."""

from collections.abc import Sequence
from typing import Any

from conformance.core.case import Step
from conformance.core.history import Op, Replied


def is_rejoin(step: Step) -> bool:
    """Does it go on from the assignment of an earlier step?"""
    return step.verb == "assign" and bool(step.body.get("rejoin"))


def rejoined(step: Step, before: Sequence[Op]) -> Step | None:
    """The step with what its members own after the last assignment before it, one generation later.

    A member that was not there then owns nothing. None where there is no assignment to go on from.
    """
    last = next((op for op in reversed(before) if op.step.verb == "assign"), None)
    if last is None or not isinstance(last.observation, Replied):
        return None
    held = {each["id"]: each["partitions"] for each in last.observation["assignment"]}
    generation = max([0, *(each["generation"] for each in last.step["members"])]) + 1
    members: list[dict[str, Any]] = [
        {**each, "owned": held.get(each["id"], []), "generation": generation if each["id"] in held else -1}
        for each in step["members"]
    ]
    body = {key: value for key, value in step.body.items() if key != "rejoin"}
    return Step(step.actor, step.verb, {**body, "members": members})
