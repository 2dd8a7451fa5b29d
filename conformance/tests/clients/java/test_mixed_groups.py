"""Released coordinators of groups with members of both protocols, and ours, answer drawn conversations alike."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.protocols.consumer_group.checks import RETURNED, TAKEN_OVER
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUPS
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.consumer_group.trace import answered_heartbeats
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules
from kipcheck.conformance.protocols.migration.checks import FORMED, REPLACED, REPLACED_CONSUMER
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.search_model import ReleasedGroup
from kipcheck.conformance.protocols.migration.strategies import MIXED_GROUPS
from kipcheck.conformance.protocols.migration.trace import mixed_steps
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.any_choice import unexplained
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.machines import differences, session_answers

RELEASES = ("4.4.0", "4.3.1", "4.2.1", "4.1.2", "4.0.2")
COMPARED = ("received", "generation", "led", "leads", "epoch", "assignment")


def conversations(count: int) -> list[tuple[Step, ...]]:
    random, formed = Random("mixed groups"), OPERATIONS.parse_shorthand(FORMED)
    swarm = replace(MIXED_GROUPS.swarm(random), verbs=tuple(MIXED_GROUPS.events), enabled=0.97, near=0.1)
    return [MIXED_GROUPS.draw(random, swarm, formed if number % 2 else ()) for number in range(count)]


def alike(ours: Observation, theirs: Observation) -> bool:
    if isinstance(ours, Replied) and isinstance(theirs, Replied):
        one, other = dict(ours.payload), dict(theirs.payload)
        return all(canonical(one.get(each)) == canonical(other.get(each)) for each in COMPARED)
    return isinstance(ours, Refused) and isinstance(theirs, Refused) and ours.error == theirs.error


def canonical(value: object) -> object:
    return [*map(tuple, value)] if isinstance(value, list | tuple) else value


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_and_ours_answer_alike(release: str) -> None:
    """Up to the assignments that it chooses, and the leader of a group that becomes a classic one."""
    talks, edition = conversations(500), f"apache@{release}"
    with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
        answers = session_answers(session, edition, Role.COORDINATOR, talks)
    machine = ReleasedGroup(Rules.of(release), classic=ClassicRules.of(release))
    others = [
        (talk, seen) for talk, seen in zip(talks, answers, strict=True)
        if differences(OPERATIONS, machine, [talk], [seen], lambda step, ours, theirs: alike(ours, theirs))
    ]  # fmt: skip
    assert len(others) < len(talks) / 2
    assert [why for talk, seen in others if (why := unexplained(release, talk, seen, alike))] == []


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 2))
def test_a_takeover_that_changes_nothing_causes_no_rebalance(release: str) -> None:
    edition = f"apache@{release}"
    talks = [*map(CONSUMER_GROUPS.parse_shorthand, (TAKEN_OVER, RETURNED))]
    talks += map(OPERATIONS.parse_shorthand, (REPLACED, REPLACED_CONSUMER))
    cases = [Case("test", edition, Role.COORDINATOR, each) for each in talks]
    with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
        alone, returned, *mixed = converse(cases, session)
    epochs = [(each.before.rest, each.answered_epoch) for talk in (alone, returned)
              for each in answered_heartbeats(talk) if each.replaces]  # fmt: skip
    epochs += [(each.before.rest.epoch, each.joined_epoch) for talk in mixed
               for each in mixed_steps(talk) if each.replaces]  # fmt: skip
    assert len(epochs) == 4
    for rest, given in epochs:
        assert rest is not None and given == rest
