"""Upgrade scripts that can happen, and the steps of others that cannot."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias

from kipcheck.conformance.checks.conversations import Subject, Value
from kipcheck.conformance.checks.declare import Conversation, Impossibilities, Impossible
from kipcheck.conformance.core.case import Case, Step, steps_from
from kipcheck.conformance.core.history import Op, Replied
from kipcheck.conformance.models.possible_scripts import impossible_events, possible_events

EventOf: TypeAlias = Callable[[Step], Any]
"""Errors: LookupError, TypeError and ValueError for steps that are no events."""


def possible_script(
    event_of: EventOf, step_of: Callable[[Any], Step]
) -> Callable[[Subject, Value, Random], Iterable[Conversation]]:
    """The script of a value, drawn, mutated or reduced: where a step cannot happen, the group comes to rest."""

    def about(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
        steps = steps_from(value)
        events = [event_of(each) for each in steps]
        possible = zip(steps, events, possible_events(events), strict=True)
        yield Conversation(tuple(step if new is event else step_of(new) for step, event, new in possible))

    return about


def can_happen(event_of: EventOf, steps: Sequence[Step]) -> bool:
    return not any(impossible_events(map(event_of, steps)))


def impossible_in(event_of: EventOf) -> Impossibilities:
    def impossible(case: Case, answers: Sequence[Op]) -> Iterator[Impossible]:
        """The steps that no operator can take. Without observed events such a step is idle."""
        for at, rule, why in impossible_events(map(event_of, case.steps)):
            idle = at < len(answers) and _is_idle(answers[at])
            yield Impossible(at, rule.id, f"{rule.sentence} {why}", idle)

    return impossible


def _is_idle(op: Op) -> bool:
    return isinstance(op.observation, Replied) and not dict(op.observation.payload).get("actions", ())
