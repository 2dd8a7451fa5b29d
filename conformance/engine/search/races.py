"""Plays cases of failures that do not come again alone as races: beside copies of themselves, to state their rate."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Finding, Worker
from kipcheck.conformance.engine.search.live_search import invariant_of
from kipcheck.conformance.targets.protocol import Broken, Unavailable, Unstable

PLAYS: Final = 12
"""The plays of a case, all at once: threads meet otherwise on a machine that is busy, as in the run."""
MOST_RARE: Final = 3
"""A case that fails in more than one of so many plays is a failure; one that fails more rarely is unstable."""


def rated(worker: Worker, finding: Finding) -> Finding:
    """The finding with its rate; without one if its cases do not wait in real time, if the target cannot be used any
    more, if no play is judged, or if a bound in time is broken: copies make a machine late, and so prove nothing."""
    if worker.real_time(finding.unit) is None or invariant_of(finding).unsure is not None:
        return finding
    try:
        failed, judged = _rate(finding, worker.histories([finding.case] * PLAYS))
    except (Broken, Unavailable, Unstable):
        worker.close()
        return finding
    return replace(finding, rate=(failed, judged)) if judged else finding


def _rate(finding: Finding, histories: Iterable[History]) -> tuple[int, int]:
    """In how many plays the finding's invariant is broken in its way, and how many are judged."""
    verdicts = [verdict for history in histories for verdict in judge(history, (invariant_of(finding),))]
    judged = [verdict for verdict in verdicts if verdict.result in (Result.PASS, Result.FAIL)]
    shape = finding.violation.shape
    failed = [verdict for verdict in judged if any(violation.shape == shape for violation in verdict.violations)]
    return len(failed), len(judged)


def is_failure(finding: Finding) -> bool:
    """Whether it fails so often beside others that it is a failure, though it does not fail alone."""
    failed, played = finding.rate or (0, 1)
    return failed * MOST_RARE > played
