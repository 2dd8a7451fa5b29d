"""The trace of an upgrade script: what was observed in each of its steps, as its invariants read it."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History

E = TypeVar("E")
W = TypeVar("W")


class ObservedAt(NamedTuple, Generic[W]):
    """An observed event, and the step that caused it."""

    step: int
    seen: W


class ScriptTrace(NamedTuple, Generic[E, W]):
    """A history up to the last observed event before the first step without an answer."""

    events: tuple[E | None, ...]
    """The event of each step of the case; None for a step that is left out of the history, since it had no effect."""
    observed: tuple[ObservedAt[W], ...]


def script_trace(operations: Operations[E, W]) -> Callable[[History], ScriptTrace[E, W]]:
    """Reads a history once for all its invariants."""
    observed_events = operations.observed
    assert observed_events is not None

    def trace(history: History) -> ScriptTrace[E, W]:
        observed = tuple(ObservedAt(step, observed_events.from_json(each)) for step, each in history.actions())
        answered = observed[-1].step + 1 if observed else 0
        events = {op.index: operations.event_of(op.step) for op in history.ops if op.index < answered}
        return ScriptTrace(tuple(map(events.get, range(answered))), observed)

    return cached_on_history(trace)
