"""The exit codes of a run."""

from collections.abc import Iterable, Mapping

CONFORMANT, FAILED, USAGE, BROKEN, UNSTABLE, STALE, UNDECIDED, OURS = 0, 1, 2, 3, 4, 5, 6, 70
PRECEDENCE = (OURS, USAGE, BROKEN, FAILED, STALE, UNSTABLE, UNDECIDED, CONFORMANT)
"""If several codes apply, the first of these is used."""
MEANINGS: Mapping[int, str] = {
    CONFORMANT: "conformant",
    FAILED: "an unexpected failure",
    USAGE: "wrong usage, or nothing selected",
    BROKEN: "a target did not start or broke the protocol",
    UNSTABLE: "an unstable target",
    STALE: "stale expectations",
    UNDECIDED: "undecided within the budget",
    OURS: "a bug in kipcheck",
}


def first(codes: Iterable[int]) -> int:
    """The code with the highest precedence; conformant if there is none."""
    present = set(codes)
    return next(each for each in PRECEDENCE if each in present or each == CONFORMANT)
