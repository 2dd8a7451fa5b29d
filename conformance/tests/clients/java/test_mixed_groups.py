"""Released coordinators of groups with members of both protocols beside ours: drawn conversations get the same errors,
generations and epochs."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import Observation, Refused, Replied
from kipcheck.conformance.engine.converse import converse
from kipcheck.conformance.protocols.consumer_group.checks import RETURNED, TAKEN_OVER
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUPS
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.consumer_group.trace import answered_heartbeats
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules
from kipcheck.conformance.protocols.migration.checks import FORMED, REPLACED, REPLACED_CONSUMER
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.strategies import MIXED_GROUPS
from kipcheck.conformance.protocols.migration.trace import mixed_steps
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.machines import differences, session_answers

RELEASES = ("4.4.0", "4.3.1", "4.2.1", "4.1.2", "4.0.2")
COMPARED = ("received", "generation", "led", "epoch")
"""Not assignments: which member gets which partition is the coordinator's choice."""


class Released(MixedGroup):
    """As the releases are."""

    fails_at_first = True
    assigns_unreleased = True


def conversations(count: int) -> list[tuple[Step, ...]]:
    random, formed = Random("mixed groups"), OPERATIONS.parse_shorthand(FORMED)
    swarm = replace(MIXED_GROUPS.swarm(random), verbs=tuple(MIXED_GROUPS.events), enabled=0.97, near=0.1)
    return [MIXED_GROUPS.draw(random, swarm, formed if number % 2 else ()) for number in range(count)]


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
    machine = Released(Rules.of(release), classic=ClassicRules.of(release))
    found = differences(OPERATIONS, machine, talks, answers, alike)
    # A member keeps its epoch while it revokes, so epochs can differ where other partitions move.
    errors = [each for each in found if "Refused" in each or _received(each, "ours") != _received(each, "seen")]
    assert errors == [], "\n".join(errors)
    assert len(found) < len(talks) / 10, "\n".join(found)


def _received(difference: str, whose: str) -> str:
    """The error of the classic protocol in a difference; empty: it is not about one."""
    line = next(each for each in difference.split("\n") if each.strip().startswith(whose))
    return line.partition("('received', ")[2].partition(")")[0]


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
