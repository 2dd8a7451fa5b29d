"""Released coordinators of share groups: they keep every requirement, and answer with the epochs and errors of ours."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, invariants_of
from kipcheck.conformance.protocols.share_group.checks import KNOWN
from kipcheck.conformance.protocols.share_group.invariants import MEMBERSHIP
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS
from kipcheck.conformance.protocols.share_group.strategies import SHARE_GROUPS
from kipcheck.conformance.protocols.share_group.target import MACHINE
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.reconciled_coordinators import unlike_the_machine

RELEASES = ("4.4.0", "4.3.1", "4.2.0")


def conversations(count: int) -> list[tuple[Step, ...]]:
    random = Random("share groups")
    swarm = replace(SHARE_GROUPS.swarm(random), verbs=tuple(SHARE_GROUPS.events), enabled=0.95, near=0.1)
    known = [OPERATIONS.parse_shorthand(text) for text in KNOWN.values()]
    return known + [SHARE_GROUPS.draw(random, swarm) for _ in range(count)]


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_keeps_every_requirement(release: str) -> None:
    edition = f"apache@{release}"
    cases = [Case(MEMBERSHIP, edition, Role.COORDINATOR, steps) for steps in conversations(200)]
    with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
        histories = [*converse(cases, session)]
    laws = [INVARIANTS[id] for id in invariants_of(MEMBERSHIP)]
    verdicts = [verdict for history in histories for verdict in judge(history, laws)]
    passed = {verdict.invariant for verdict in verdicts if verdict.result is Result.PASS}
    assert [verdict for verdict in verdicts if verdict.result is Result.FAIL] == []
    assert passed == {*invariants_of(MEMBERSHIP)}


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES[:2], 1))
def test_a_released_coordinator_and_ours_answer_alike(release: str) -> None:
    found = unlike_the_machine(MACHINE, f"java:kafka-group-coordinator:{release}", release, conversations(200))
    assert found == [], "\n".join(found)
