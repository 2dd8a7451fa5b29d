"""Invariant of every target, in any role: it survives every input."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import Died, History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.registry import invariant

WORDS = 400
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
                why, (op.index,), "an answer, or a refusal", _seen(op.observation),
                shape=("died", op.step.verb, cause, detail.partition(":")[0] if cause in ("crashed", "memory") else ""),
            )  # fmt: skip


def _seen(died: Died) -> str:
    seen = f"{died.cause}: {died.detail}".rstrip(": ")
    said = died.evidence.strip()[-WORDS:]
    if died.cause == "timeout":  # its stack differs from run to run
        return f"{seen}; its stderr is in the failure's file" if said else seen
    return f"{seen}; its stderr ends in: {said}" if said else seen
