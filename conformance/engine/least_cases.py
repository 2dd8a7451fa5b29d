"""Searches for the least cases of many findings: side by side, if several processes can start the target."""

from collections.abc import Iterator, Sequence
from functools import partial

from kipcheck.conformance.engine.pool import pool
from kipcheck.conformance.engine.shrink import shrunk, unshrunk
from kipcheck.conformance.engine.worker import Finding, Worker, process_worker
from kipcheck.conformance.targets.protocol import Broken, Unstable
from kipcheck.conformance.targets.registry import is_shared


def least_cases(worker: Worker, findings: Sequence[Finding], workers: int) -> Iterator[Finding | None]:
    """The least case of each finding, in the order of the findings; None if the case alone does not fail.

    Each search is independent of the others, so the number of processes changes no result.
    """
    if min(workers, len(findings)) > 1 and is_shared(worker.name):
        with pool(min(workers, len(findings)), partial(_in_this_process, worker.name)) as processes:
            yield from (found for _, found in processes.map(findings))
    else:
        yield from (least_case(worker, each) for each in findings)


def least_case(worker: Worker, finding: Finding) -> Finding | None:
    """As ``shrunk``; the finding as it is if the target cannot be used any more in this session."""
    try:
        return shrunk(worker, finding)
    except (Unstable, Broken):
        worker.close()  # the next one has a fresh session, with a budget of restarts of its own
        return unshrunk(finding)


def _in_this_process(target: str, finding: Finding) -> Finding | None:
    return least_case(process_worker(target), finding)
