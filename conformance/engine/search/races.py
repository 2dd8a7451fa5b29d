"""Plays cases of failures that do not come again alone as races: beside copies of themselves, to state their rate."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Finding, Shape, Worker
from kipcheck.conformance.engine.search.live_search import invariant_of
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.targets.protocol import Broken, Unavailable, Unstable

PLAYS: Final = 12
"""The plays of a case, all at once: threads meet otherwise on a machine that is busy, as in the run."""
MOST_RARE: Final = 3
"""A case that fails in more than one of so many plays is a failure; one that fails more rarely is unstable."""


class Rate(NamedTuple):
    failed: int
    """Plays in which the invariant is broken."""
    judged: int

    @property
    def is_failure(self) -> bool:
        """Whether it fails so often beside others that it is a failure, though it does not fail alone."""
        return self.failed * MOST_RARE > self.judged


def rated(worker: Worker, finding: Finding) -> Finding:
    """The finding with its rate; without one if its cases do not wait in real time, if the target cannot be used any
    more, if no play is judged, or if a bound in time is broken: copies make a machine late, and so prove nothing."""
    invariant = invariant_of(finding)
    if worker.real_time(finding.unit) is None or invariant.unsure is not None:
        return finding
    try:
        rate = rate_of(worker.histories([finding.case] * PLAYS), invariant, finding.violation.shape)
    except (Broken, Unavailable, Unstable):
        worker.close()
        return finding
    return replace(finding, rate=rate) if rate.judged else finding


def rate_of(histories: Iterable[History], invariant: Invariant, shape: Shape | None = None) -> Rate:
    """``shape``: only breaches in this way count; None: all do."""
    verdicts = [verdict for history in histories for verdict in judge(history, (invariant,))]
    judged = [verdict for verdict in verdicts if verdict.result in (Result.PASS, Result.FAIL)]
    failed = [verdict for verdict in judged if any(shape in (None, each.shape) for each in verdict.violations)]
    return Rate(len(failed), len(judged))
