"""Invariant of every target, in any role: it survives every input."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Died, History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import invariant

SURVIVES = "survives"
MAX_STDERR = 400
"""The number of characters of the end of stderr that are shown."""
ENDS = {
    "crashed": "the target crashed",
    "timeout": "the target hung",
    "memory": "the target exceeded its memory limit",
    "garbled": "the target sent an invalid answer",
}


Look: TypeAlias = tuple[str, ...]
"""What a step has in common with others in which a target dies in the same way."""
Describe: TypeAlias = Callable[[Case, Step], tuple[str, ...]]
INPUTS: dict[Role, Describe] = {}
"""By role: what is special about the input of a step, for a shape. Modules of protocols register it."""
LOOKS: dict[Role, Describe] = {}
"""By role: what else is special about it, and is not part of a shape. Modules of protocols register it."""


@invariant(SURVIVES, "grp-09", role=None)
def survives(history: History) -> Iterator[Violation]:
    """No input crashes the target, hangs it, or costs time or memory out of proportion to its size."""
    for op in history.ops:
        if isinstance(op.observation, Died):
            size = len(op.step.body.get("hex", "")) // 2
            given = f" {size} bytes" if size else ""
            cause, detail = op.observation.cause, op.observation.detail
            why = f"given{given} to {op.step.verb}, {ENDS.get(cause, cause)}" + (f" ({detail})" if detail else "")
            yield Violation(
                why, (op.index,), "an answer, or a refusal", _observed(op.observation),
                shape=("died", op.step.verb, cause, _end(cause, detail), *_input(history.case, op.step)),
            )  # fmt: skip


def look(case: Case, step: Step) -> Look:
    """The verb, and what is special about the input."""
    describe = LOOKS.get(case.role)
    return step.verb, *_input(case, step), *(() if describe is None else describe(case, step))


def _input(case: Case, step: Step) -> tuple[str, ...]:
    describe = INPUTS.get(case.role)
    return () if describe is None else describe(case, step)


def _end(cause: str, detail: str) -> str:
    """How the process ended, for a shape: its signal or code."""
    return detail.partition(":")[0] if cause in ("crashed", "memory") else ""


def _observed(died: Died) -> str:
    observed = f"{died.cause}: {died.detail}".rstrip(": ")
    stderr = died.evidence.strip()[-MAX_STDERR:]
    if died.cause == "timeout":  # its stack differs from run to run
        return f"{observed}; its stderr is in the failure's file" if stderr else observed
    return f"{observed}; its stderr ends in: {stderr}" if stderr else observed
