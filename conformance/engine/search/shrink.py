"""Reduces failing cases: a smaller value, then fewer steps, as long as the same invariant fails in the same way.

The same way is a violation with the same shape, wherever it stands among the violations of the smaller case.
"""

import math
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.worker import Finding, Worker
from kipcheck.conformance.engine.search import live_search
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.registry import is_live
from kipcheck.strategies.parse import belongs
from kipcheck.strategies.reduce import reduce

TRIES: Final = 300
"""The most smaller values that are tried for one failure."""
DEADLY_TRIES: Final = 24
"""The same where each failing try costs a process, and perhaps the whole time limit of a case."""


def unshrunk(finding: Finding) -> Finding:
    """The finding as it is, if there is no time to shrink it."""
    return replace(finding, shape=finding.violation.shape, cut=True, whole=is_live(finding.unit.target))


def shrunk(worker: Worker, finding: Finding, limit_s: float | None = None) -> Finding | None:
    """The finding with the smallest case found that fails in the same way; None if the case alone does not fail.

    ``limit_s``: no smaller case is tried after this time; None: that of targets in real time, else none.
    """
    check, unit = CHECKS[finding.unit.check], finding.unit
    if is_live(unit.target):
        return live_search.alone(worker, finding, live_search.LIMIT_S if limit_s is None else limit_s)
    until_s = math.inf if limit_s is None else time.monotonic() + limit_s
    subject = check.family.subject(unit.edition, unit.subject, unit.version)
    invariant = next(each for each in all_invariants(check.role) if each.id == finding.invariant)
    rerun = _alone(worker, finding, invariant)
    if remembers := rerun is None:
        worker.renew()  # state in the target may hide it: try again with a fresh session
        rerun = _alone(worker, finding, invariant)
    if rerun is None:
        return None
    history, violation = rerun
    expected_shape = violation.shape
    best = replace(finding, history=history, violation=violation, shape=expected_shape)
    if not check.shrinks or remembers:
        return best
    tried: set[str] = set()
    passed: set[str] = set()
    """The ids of cases that did not fail: several values may give one case."""
    most = DEADLY_TRIES if expected_shape[:1] == ("died",) else TRIES

    def fails(value: Any) -> bool:
        nonlocal best
        if repr(value) in tried or len(tried) == most or time.monotonic() > until_s:
            return False
        tried.add(repr(value))
        cases = [
            case
            for case in check.cases(subject, value, unit.seed, finding.number, finding.kind)
            if case.id not in passed
        ]
        for observed, found in worker.violations(cases, invariant, expected_shape):
            best = replace(best, history=observed, value=value, violation=found)
            return True
        passed.update(case.id for case in cases)
        return False

    if check.again is not None:
        fails(finding.value)  # minimises the place within the value itself
    if belongs(node := check.declaration(subject), finding.value):  # a check's first values may not
        reduce(node, finding.value, fails)
    best = _with_fewest_steps(worker, best, invariant, until_s)
    remains = check.family.remains(subject, best.value, expected_shape)
    if time.monotonic() > until_s:
        return replace(best, cut=True, whole=not remains)
    return replace(best, shape=(*expected_shape, *remains))


def _alone(worker: Worker, finding: Finding, invariant: Invariant) -> tuple[History, Violation] | None:
    """The violation when the case is run alone: of the same shape, else the first of another one; None: none."""
    for history, found in worker.every_violation([finding.case], invariant):
        return history, next((each for each in found if each.shape == finding.violation.shape), found[0])
    return None


def _with_fewest_steps(worker: Worker, best: Finding, invariant: Invariant, until_s: float) -> Finding:
    """Removes the steps after the failure, then repeatedly every step that the failure does not need."""
    found_with = best
    best = _without(worker, best, invariant, range(max(best.violation.at) + 1, len(best.case.steps)))
    while True:
        before = best
        for left_out in reversed(range(len(before.case.steps))):
            if time.monotonic() > until_s:
                break
            best = _without(worker, best, invariant, [left_out])
        if best is before:
            break
    if best is not found_with:
        worker.renew()  # it may fail only because of state that longer cases left in the target
        if worker.violation(best.case, invariant, best.violation.shape) is None:
            return found_with
    return best


def _without(worker: Worker, best: Finding, invariant: Invariant, left_out: Collection[int]) -> Finding:
    """The finding without these steps, if it then still fails in the same way."""
    steps = tuple(step for number, step in enumerate(best.case.steps) if number not in left_out)
    if not 0 < len(steps) < len(best.case.steps):
        return best
    case = replace(best.case, steps=steps)
    found = worker.violation(case, invariant, best.violation.shape)
    if found is None:
        return best
    return replace(best, history=found[0], violation=found[1])
