"""The exit codes of a run."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kipcheck.conformance.core.ledger import Failure

CONFORMANT, FAILED, USAGE, BROKEN, UNSTABLE, STALE, UNDECIDED, INCONCLUSIVE, OURS = 0, 1, 2, 3, 4, 5, 6, 7, 70
PRECEDENCE = (OURS, USAGE, BROKEN, FAILED, STALE, UNSTABLE, INCONCLUSIVE, UNDECIDED, CONFORMANT)
"""If several codes apply, the first of these is used."""
MEANINGS: Mapping[int, str] = {
    CONFORMANT: "conformant",
    FAILED: "an unexpected failure",
    USAGE: "wrong usage, or nothing selected",
    BROKEN: "a target did not start or broke the protocol",
    UNSTABLE: "an unstable target",
    STALE: "stale expectations",
    UNDECIDED: "undecided within the budget",
    INCONCLUSIVE: "inconclusive: nothing passed, too much was skipped, or a client never read",
    OURS: "a bug in kipcheck",
}
AS_EXPECTED = "as expected"
"""The meaning of ``CONFORMANT`` if failures occurred, all of them known deviations."""


def meaning(code: int, known: int) -> str:
    """``known``: the number of failures that are known deviations."""
    return AS_EXPECTED if code == CONFORMANT and known else MEANINGS[code]


def of_failure(line: "Failure") -> set[int]:
    """The exit code to which a failure leads; none for a known deviation, a note, and a warning without a list."""
    if not line.decides:
        return set()
    return {FAILED if line.changed is None else STALE}


def first(codes: Iterable[int]) -> int:
    """The code with the highest precedence; conformant if there is none."""
    present = set(codes)
    return next(each for each in PRECEDENCE if each in present or each == CONFORMANT)
