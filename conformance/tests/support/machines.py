"""Machines of ours beside released classes: the same conversations, answer by answer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.targets.protocol import BATCH, Session, observed


def machine_answers(
    operations: Operations[Any, Any], machine: Driven[Any, Any, Any], steps: Iterable[Step]
) -> list[dict[str, Any]]:
    """As results of the testee protocol."""
    state, found = machine.initial(), []
    for each in steps:
        state, actions = machine.step(state, operations.event_of(each))
        found.append(operations.answer_of(actions))
    return found


def session_answers(
    session: Session, edition: str, role: Role, talks: Iterable[Sequence[Step]]
) -> list[tuple[Observation, ...]]:
    """In batches, as a run sends them."""
    cases = [Case("test", edition, role, tuple(each)) for each in talks]
    batches = (cases[at : at + BATCH] for at in range(0, len(cases), BATCH))
    return [answers for batch in batches for answers in session.run(batch)]


def differences(
    operations: Operations[Any, Any],
    machine: Driven[Any, Any, Any],
    talks: Sequence[Sequence[Step]],
    answered: Iterable[Sequence[Observation]],
    alike: Callable[[Step, Observation, Observation], bool],
) -> list[str]:
    """Conversations in which a machine of ours parts from what was answered, up to that step."""
    found = []
    for talk, seen in zip(talks, answered, strict=True):
        ours = map(observed, machine_answers(operations, machine, talk))
        for at, (step, owed, theirs) in enumerate(zip(talk, ours, seen, strict=True)):
            if not alike(step, owed, theirs):
                found.append(f"{operations.shorthand(talk[: at + 1])}\n  ours {owed}\n  seen {theirs}")
                break
    return found
