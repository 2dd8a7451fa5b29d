"""Adapts any machine to the operations of the testee protocol."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Generic

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.machine import A_co, Driven, E, S


class MachineAdapter(Generic[S, E, A_co]):
    """Runs a machine. It keeps the state of one case and starts anew at the next case."""

    def __init__(
        self,
        machine: Driven[S, E, A_co],
        verbs: Collection[str],
        event_of: Callable[[Step], E],
        answer_of: Callable[[Iterable[A_co]], dict[str, Any]],
    ) -> None:
        self.verbs = frozenset(verbs)
        """The operations that are its events. No two machines of a target have one in common."""
        self._machine = machine
        self._event_of = event_of
        self._answer_of = answer_of
        self._case: object = None
        self._state = machine.initial()

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op.get("case") != self._case:
            self._case, self._state = op.get("case"), self._machine.initial()
        try:
            event = self.event(op)
        except (LookupError, TypeError, ValueError) as unknown:
            return {"status": "unsupported", "message": str(unknown)}
        self._state, answer = self.apply(self._state, event)
        return answer

    @property
    def initial(self) -> S:
        """The state at the beginning of a case."""
        return self._machine.initial()

    def event(self, op: Mapping[str, Any]) -> E:
        """Errors: LookupError, TypeError or ValueError for an unknown operation, or one with invalid fields."""
        body = {key: value for key, value in op.items() if key not in ("op", "case", "actor")}
        return self._event_of(Step(op.get("actor", ""), op["op"], body))

    def apply(self, state: S, event: E) -> tuple[S, dict[str, Any]]:
        """The next state, and the answer."""
        following, actions = self._machine.step(state, event)
        return following, self._answer_of(actions)
