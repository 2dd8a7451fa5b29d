"""Checks all group invariants with coordinators without planted defects, for long. Exit 1 with each violation, if any.

``python -m kipcheck.conformance.benchmarks.group_laws [CONVERSATIONS] [EDITION...]``: conversations for each edition,
by default 1,000; the default editions are those between which coordinators changed.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from random import Random

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.group.strategies.conversations import group_conversations
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter, DraftCoordinatorAdapter
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.in_process import InProcess

EDITIONS = (
    "apache", "apache@4.0.0", "apache@3.9.2", "apache@3.3.1", "apache@2.8.2", "apache@2.6.3", "apache@2.5.1",
    "apache@2.3.1", "apache@2.2.2", "apache@1.1.1", "apache@0.10.0.1", "kip-429",
)  # fmt: skip
BATCH = 50


def histories(edition: str, conversations: int, seed: int = 0) -> Iterator[History]:
    adapter = DraftCoordinatorAdapter() if edition == "kip-429" else CoordinatorAdapter()
    drawn, random = group_conversations(edition), Random(seed)
    with InProcess(adapter).open(edition, Role.COORDINATOR) as session:
        for _ in range(0, conversations, BATCH):
            steps = (drawn.draw(random, drawn.swarm(random)) for _ in range(BATCH))
            yield from converse([Case("group/errors", edition, Role.COORDINATOR, each) for each in steps], session)


def broken(history: History) -> list[str]:
    laws = (each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/"))
    return [
        f"{each.invariant}: {each.violations[0].why}" for each in judge(history, laws) if each.result is Result.FAIL
    ]


def main(arguments: Sequence[str]) -> int:
    conversations = int(arguments[0]) if arguments else 1000
    failed = 0
    print(f"{'edition':16} {'conversations':>13} {'steps':>8} {'broken':>7} {'cpu s':>6}")
    for edition in arguments[1:] or EDITIONS:
        started_at, conversations_run, steps, violations = time.process_time(), 0, 0, 0
        for history in histories(edition, conversations):
            conversations_run, steps = conversations_run + 1, steps + len(history.ops)
            for violation in broken(history):
                violations += 1
                print(f"{edition}: {violation}\n  {OPERATIONS.shorthand(history.case.steps)}", file=sys.stderr)
        failed += violations
        print(
            f"{edition:16} {conversations_run:13} {steps:8} {violations:7} {time.process_time() - started_at:6.1f}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
