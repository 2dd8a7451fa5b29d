"""Invariants of a coordinator of KIP-1071's streams groups.

Each invariant reads requests and their answers, as ``trace.py`` understands them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.streams_group.trace import Group, GroupStep, beats

TASKS: Final = "streams-group/tasks"
EPOCHS: Final = "streams-group/epochs"
DESCRIBE: Final = "streams-group/describe"
RECORDS: Final = "streams-group/records"
HEARTBEAT: Final = "streams-group-heartbeat"
FULL: Final = terms.GROUP_MAX_SIZE_REACHED
impact = partial(any_impact, links=("KIP-1071",))


def sends(case: Case, step: Step) -> bool:
    return step.verb == HEARTBEAT


def asks(case: Case, step: Step) -> bool:
    return step.verb != "streams-group-elapse"


rule = partial(invariant, role=Role.COORDINATOR, unsure=is_in_doubt)
tasks = partial(rule, checks=(TASKS,), after=(HEARTBEAT,), applies_to=sends)
epochs = partial(rule, checks=(EPOCHS,), after=(HEARTBEAT,), applies_to=sends)
records = partial(rule, checks=(RECORDS,))
described = partial(rule, checks=(DESCRIBE,), after=(HEARTBEAT,), applies_to=asks)


def breach(step: GroupStep, why: str, expected: str, *shape: str, at: Iterable[int] = ()) -> Violation:
    observed = f"refused: {step.error}" if step.error else f"epoch {step.answered_epoch}"
    return Violation(why, (*at, step.op.index), expected, observed, shape=shape)


def answered(history: History) -> Iterator[GroupStep]:
    """The accepted heartbeats of clients that do not leave."""
    return (step for step in beats(history) if step.accepted and step.epoch not in terms.LEFT)


def asked(step: GroupStep) -> Group:
    """The group as the coordinator sees it when it answers: with a topology that the member brings."""
    return replace(step.known_after(), created=step.before.created)
