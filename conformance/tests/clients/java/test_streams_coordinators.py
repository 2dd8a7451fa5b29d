"""Released coordinators of streams groups beside ours: drawn conversations get the same errors, epochs and statuses."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.case import Role, Step
from kipcheck.conformance.core.history import Observation, Refused, Replied
from kipcheck.conformance.protocols.streams_group.checks import KNOWN
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS
from kipcheck.conformance.protocols.streams_group.strategies import STREAMS_GROUPS
from kipcheck.conformance.protocols.streams_group.target import machine_of
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.machines import differences, session_answers

RELEASES = ("4.4.0", "4.3.1", "4.2.1")
COMPARED = ("epoch", "statuses", "state", "assignment_epoch", "topology", "topology_epoch")
"""Not tasks: which member gets which task is the coordinator's choice."""


def conversations(count: int) -> list[tuple[Step, ...]]:
    random = Random("streams groups")
    swarm = replace(STREAMS_GROUPS.swarm(random), verbs=tuple(STREAMS_GROUPS.events), enabled=0.95, near=0.1)
    known = [OPERATIONS.parse_shorthand(text) for text in KNOWN.values()]
    return known + [STREAMS_GROUPS.draw(random, swarm) for _ in range(count)]


def alike(step: Step, ours: Observation, theirs: Observation) -> bool:
    if isinstance(ours, Replied) and isinstance(theirs, Replied):
        one, other = dict(ours.payload), dict(theirs.payload)
        return all(one.get(each) == other.get(each) for each in COMPARED)
    return isinstance(ours, Refused) and isinstance(theirs, Refused) and ours.error == theirs.error


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_and_ours_answer_alike(release: str) -> None:
    talks, edition = conversations(200), f"apache@{release}"
    with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
        answers = session_answers(session, edition, Role.COORDINATOR, talks)
    found = differences(OPERATIONS, machine_of(release), talks, answers, alike)
    assert found == [], "\n".join(found)
