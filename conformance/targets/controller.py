"""A machine of feature updates behind the operations of the testee protocol."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from conformance.apis.features import answer_of, event_of
from conformance.core.case import Step
from conformance.core.machine import Machine
from conformance.models.features import Action, Event, FeatureController, State

Features: TypeAlias = Machine[State, Event, Action]


class Controller:
    """Holds the state of one case at a time: at each it begins afresh."""

    def __init__(self, machine: Features | None = None) -> None:
        self._machine: Features = machine or FeatureController()
        self._case: object = None
        self._state = self._machine.initial()

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op.get("case") != self._case:
            self._case, self._state = op.get("case"), self._machine.initial()
        body = {key: value for key, value in op.items() if key not in ("op", "case")}
        try:
            event = event_of(Step("", op["op"], body))
        except (LookupError, TypeError) as unknown:
            return {"status": "unsupported", "message": str(unknown)}
        self._state, actions = self._machine.step(self._state, event)
        return answer_of(actions)
