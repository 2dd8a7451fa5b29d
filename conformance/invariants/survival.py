"""Invariant of every target, in any role: it survives every input."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import Died, History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.registry import invariant

MAX_STDERR = 400
"""The number of characters of the end of stderr that are shown."""
ENDS = {
    "crashed": "the target crashed",
    "timeout": "the target hung",
    "memory": "the target exceeded its memory limit",
    "garbled": "the target sent an invalid answer",
}


@invariant("survives", "grp-09", role=None)
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
                shape=("died", op.step.verb, cause, detail.partition(":")[0] if cause in ("crashed", "memory") else ""),
            )  # fmt: skip


def _observed(died: Died) -> str:
    observed = f"{died.cause}: {died.detail}".rstrip(": ")
    stderr = died.evidence.strip()[-MAX_STDERR:]
    if died.cause == "timeout":  # its stack differs from run to run
        return f"{observed}; its stderr is in the failure's file" if stderr else observed
    return f"{observed}; its stderr ends in: {stderr}" if stderr else observed
