"""The checks of upgrade scripts of any members: their family, scripts that can happen, and failures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random
from typing import Any

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role, Step, steps_from
from kipcheck.conformance.core.values.history import Op, Replied
from kipcheck.conformance.protocols.declare.check import Conversation, Family, Impossible
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, Wording, listed, machine_family
from kipcheck.conformance.protocols.upgrade.model.possible_scripts import impossible_events, possible_events
from kipcheck.strategies.events import Conversations


def script_family(
    operations: Operations[Any, Any],
    group: str,
    name: str,
    editions: Callable[[str], Iterable[str]],
    conversations: Callable[[str], Conversations[Any, Any]],
) -> Family[Subject]:
    """The family of the machine ``name``; ``group`` names it in diagrams."""
    seen = operations.observed
    assert seen is not None

    def events(reply: Replied) -> list[str]:
        return [seen.describe(seen.from_json(each)) for each in _actions(reply)]

    wording = Wording(group, lambda step: step.actor, lambda step: operations.shorthand([step]), listed, events)
    return machine_family(
        Role.OPERATOR_TOOL, name, editions, conversations, wording.sequence, partial(impossible_steps, operations)
    )


def possible_script(
    operations: Operations[Any, Any],
) -> Callable[[Subject, Value, Random], Iterable[Conversation]]:
    """The script of a value, drawn, mutated or reduced: where a step cannot happen, the group comes to rest."""

    def about(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
        steps = steps_from(value)
        events = [operations.event_of(each) for each in steps]
        possible = zip(steps, events, possible_events(events), strict=True)
        yield Conversation(tuple(step if new is event else operations.step_of(new) for step, event, new in possible))

    return about


def can_happen(operations: Operations[Any, Any], steps: Sequence[Step]) -> bool:
    return not any(impossible_events(map(operations.event_of, steps)))


def impossible_steps(operations: Operations[Any, Any], case: Case, answers: Sequence[Op]) -> Iterator[Impossible]:
    """The steps that no operator can take. Without observed events such a step is idle."""
    for at, rule, why in impossible_events(map(operations.event_of, case.steps)):
        idle = at < len(answers) and _is_idle(answers[at])
        yield Impossible(at, rule.id, f"{rule.sentence} {why}", idle)


def _is_idle(op: Op) -> bool:
    return isinstance(op.observation, Replied) and not _actions(op.observation)


def _actions(reply: Replied) -> Any:
    return dict(reply.payload).get("actions", ())


# Scripts by hand


def value_of(subject: Subject, steps: Iterable[Step]) -> Value:
    return Case("", subject.edition, Role.OPERATOR_TOOL, tuple(steps)).data


def with_failures(operations: Operations[Any, Any], text: str, crash: str) -> Iterator[str]:
    """The script as written, and with a failure after each step.

    The member of the step (if it has none, the first, which leads) crashes and restarts, as ``crash`` says with ``{0}``
    for its name; or the connection of the first or second member breaks while a request is pending. A failure that
    cannot happen there is left out.
    """
    words = text.split("; ")
    steps = [operations.parse_shorthand(each) for each in words]  # once: all processes import these checks
    yield text
    for at in range(1, len(words)):
        member = words[at - 1].split()[1] if " " in words[at - 1] else "a"
        for fault in (crash.format(member), "move a; lose a", "move b; lose b"):
            failed = [*steps[:at], operations.parse_shorthand(fault), *steps[at:]]
            if can_happen(operations, [*chain.from_iterable(failed)]):
                yield "; ".join((*words[:at], fault, *words[at:]))
