"""Which scripts of a user cannot be played, and why: a step that no broker, network, user or other member takes, or
that the program cannot notice where it stands."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.protocols.client import model, ops
from kipcheck.conformance.protocols.declare.check import Impossible

STOP: Final = ops.OPERATIONS.step_of(ops.Stop())
RULE: Final = "script"


def finished(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with a ``stop`` at their end: a program ends with its script."""
    return steps if any(step.verb == STOP.verb for step in steps) else (*steps, STOP)


def unplayable(case: Case) -> Iterator[Impossible]:
    """Each step that cannot be played, with the reason and what to write in its place."""
    state, ended = model.Scripts().initial(), False
    for at, step in enumerate(case.steps):
        event = ops.OPERATIONS.event_of(step)
        why = "stop ended the program: restart, in place of stop, starts it again" if ended else _why_not(state, event)
        if why:
            yield Impossible(at, RULE, why)
        ended = ended or isinstance(event, ops.Stop)
        state = model.Scripts().step(state, event).state


def _why_not(state: model.State, event: ops.Event) -> str:
    """Why the event cannot happen after others; empty: it can."""
    kind = getattr(event, "kind", None)
    if not model.is_possible(event):
        return _never(event)
    if isinstance(event, ops.Fence) and not state.static:
        return "a member without an instance id cannot be fenced: write static in front"
    if kind in model.CONSUMER_ONLY and not state.consumer:
        return f"a member of a classic group sends no {kind}: write protocol consumer in front"
    if kind in model.CLASSIC_ONLY and state.consumer:
        return f"a member with protocol consumer sends no {kind}: use ConsumerGroupHeartbeat"
    return ""


def _never(event: ops.Event) -> str:
    """Why no broker, network, user or other member does that."""
    match event:
        case ops.Answer(kind, error) if error not in model.ERRORS[kind]:
            return _no_broker(kind, error, model.ERRORS[kind], f"refuse {kind} has others that do not pass")
        case ops.Refuse(kind, error) if error not in model.REFUSALS[kind]:
            return _no_broker(kind, error, model.REFUSALS[kind], f"answer {kind} has others that pass")
        case ops.Others():
            return f"a group has 0 to {model.MOST_OTHERS} other members"
        case ops.Assign():
            return f"partitions are numbered from 0 to {model.MOST_PARTITIONS - 1}"
        case ops.Grow():
            return f"a topic, which has {model.PARTITIONS} partitions, grows to at most {model.MOST_PARTITIONS}"
        case ops.Subscribe():
            return "the program subscribes to 1 or 2 topics"
    if getattr(event, "ms", 0) not in range(model.MOST_MS + 1):
        return f"a time is 0 to {model.MOST_MS} ms"
    return "no broker, network, user or other member does that"


def _no_broker(kind: str, error: str, possible: tuple[str, ...], more: str) -> str:
    return f"no broker answers {kind} with {error}: use {', '.join(possible)}; {more}"
