"""Judges a history: the verdict of each invariant."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kipcheck.conformance.checks import family_of
from kipcheck.conformance.core.history import Died, History, Lost, Unsupported
from kipcheck.conformance.core.verdict import Result, Verdict
from kipcheck.conformance.invariants.registry import Invariant


def judge(history: History, invariants: Iterable[Invariant]) -> Iterator[Verdict]:
    """One verdict for each invariant that a step of the case concerns.

    Those of a role read the steps that can happen; every target survives the others too.
    """
    possible = possible_part(history)
    for each in invariants:
        judged = history if each.role is None else possible
        read = [op for op in judged.ops if each.applies_to(history.case, op.step)]
        if not read:
            continue
        found = tuple(each.search(judged))
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


def possible_part(history: History) -> History:
    """The history up to the first step that cannot happen after what the target did, without idle steps."""
    family = family_of(history.case)
    faults = [] if family is None else [*family.impossible(history.case, history.ops)]
    if not faults:
        return history
    idle = {each.step for each in faults if each.idle}
    end = min((each.step for each in faults if not each.idle), default=len(history.ops))
    return replace(history, ops=tuple(each for each in history.ops[:end] if each.index not in idle))
