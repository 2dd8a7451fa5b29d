"""What binds every target, whatever it plays."""

from collections.abc import Iterator

from kipcheck.conformance.core.history import Died, History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.registry import invariant

WORDS = 400
"""So much of the end of stderr is told."""
ENDS = {
    "crashed": "it went down",
    "timeout": "it hung",
    "memory": "it asked for more memory than it may have",
    "garbled": "it spoke garbage",
}


@invariant("survives", "grp-09", role=None)
def survives(history: History) -> Iterator[Violation]:
    """No input brings the target down, hangs it, or costs time or memory out of proportion to its size."""
    for op in history.ops:
        if isinstance(op.observation, Died):
            size = len(op.step.body.get("hex", "")) // 2
            given = f" {size} bytes" if size else ""
            cause, detail = op.observation.cause, op.observation.detail
            why = f"given{given} to {op.step.verb}, {ENDS.get(cause, cause)}" + (f" ({detail})" if detail else "")
            yield Violation(
                why, (op.index,), "an answer, be it a refusal", _seen(op.observation),
                shape=("died", op.step.verb, cause, detail.partition(":")[0] if cause in ("crashed", "memory") else ""),
            )  # fmt: skip


def _seen(died: Died) -> str:
    seen = f"{died.cause}: {died.detail}".rstrip(": ")
    said = died.evidence.strip()[-WORDS:]
    if died.cause == "timeout":  # where it was when it was stopped is another place each time
        return f"{seen}; what it told of that is in the failure's file" if said else seen
    return f"{seen}; its stderr ends in: {said}" if said else seen
