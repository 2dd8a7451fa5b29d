"""Judges a history: the verdict of each invariant."""

from collections.abc import Iterable, Iterator

from kipcheck.conformance.core.history import Died, History, Lost, Unsupported
from kipcheck.conformance.core.verdict import Result, Verdict
from kipcheck.conformance.invariants.registry import Invariant


def judge(history: History, invariants: Iterable[Invariant]) -> Iterator[Verdict]:
    """One verdict for each invariant that a step of the case concerns."""
    for each in invariants:
        read = [op for op in history.ops if each.applies_to(history.case, op.step)]
        if not read:
            continue
        found = tuple(each.search(history))
        seen = {type(op.observation) for op in read}
        result = (
            Result.FAIL
            if found
            else Result.SKIP
            if Unsupported in seen
            else Result.UNKNOWN
            if seen & {Lost, Died}
            else Result.PASS
        )
        yield Verdict(history.case.id, history.target, each.id, result, found)
