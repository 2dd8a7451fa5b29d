"""Judges a history: the verdict of each invariant."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kipcheck.conformance.core.values.history import Died, History, Lost, Unsupported
from kipcheck.conformance.core.values.verdict import Grade, Result, Verdict
from kipcheck.conformance.protocols.checks import family_of
from kipcheck.conformance.protocols.declare.invariant import Invariant


def judge(history: History, invariants: Iterable[Invariant]) -> Iterator[Verdict]:
    """One verdict for each invariant that a step of the case concerns.

    Those of a role read the steps that can happen; every target survives the others too.
    """
    possible = possible_part(history)
    cannot = [op.step for op in history.ops if isinstance(op.observation, Unsupported)]
    for each in invariants:
        judged = history if each.role is None else possible
        read = [op for op in judged.ops if each.applies_to(history.case, op.step)]
        if not read:
            continue
        found, consequences = each.own_violations(judged)
        unsure = bool(found) and each.unsure is not None and each.unsure(judged)
        if unsure:
            certain = () if each.certain is None else tuple(each.search(each.certain(judged)))
            found = tuple(
                violation for violation in found
                if violation in certain or (each.proven is not None and each.proven(judged, each.id, violation))
            )  # fmt: skip
            unsure = not found
        seen = {type(op.observation) for op in read}
        result = (
            Result.FAIL
            if found
            else Result.UNKNOWN
            if unsure and each.grade is not Grade.INFO
            else Result.SKIP  # a description in doubt is none
            if unsure or any(each.lacks(history.case, step) for step in cannot)
            else Result.UNKNOWN
            if seen & {Lost, Died}
            else Result.SKIP  # what it is about did not occur, or what follows from another violation has no verdict
            if consequences or (each.premise is not None and not each.premise(judged))
            else Result.PASS
        )
        yield Verdict(history.case.id, history.target, each.id, result, found, consequences)


def possible_part(history: History) -> History:
    """The history up to the first step that cannot happen after what the target did, without idle steps.

    Where the steps of a family are apart, also without those that the target cannot take: their requests were not
    sent, and so changed nothing.
    """
    family = family_of(history.case)
    ops, case = history.ops, history.case
    if family.steps_are_apart:
        ops = tuple(op for op in ops if not isinstance(op.observation, Unsupported))
    if len(ops) < len(history.ops):
        case = replace(case, steps=tuple(op.step for op in ops))
    faults = [*family.impossible(case, ops)]
    idle = {each.step for each in faults if each.idle}
    end = min((each.step for each in faults if not each.idle), default=len(ops))
    kept = tuple(op for number, op in enumerate(ops[:end]) if number not in idle)
    return history if len(kept) == len(history.ops) else replace(history, ops=kept)
