"""Released coordinators of streams groups beside ours: drawn conversations get the same errors, epochs and statuses."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.streams_group.checks import KNOWN
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS
from kipcheck.conformance.protocols.streams_group.strategies import STREAMS_GROUPS
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.reconciled_coordinators import (
    STREAMS_MACHINE,
    is_comparable,
    unlike_the_machine,
)

RELEASES = ("4.4.0", "4.3.1", "4.2.1")


def conversations(count: int) -> list[tuple[Step, ...]]:
    random = Random("streams groups")
    swarm = replace(STREAMS_GROUPS.swarm(random), verbs=tuple(STREAMS_GROUPS.events), enabled=0.95, near=0.1)
    known = [OPERATIONS.parse_shorthand(text) for text in KNOWN.values() if is_comparable(text)]
    return known + [STREAMS_GROUPS.draw(random, swarm) for _ in range(count)]


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_and_ours_answer_alike(release: str) -> None:
    talks = conversations(200)
    found = unlike_the_machine(STREAMS_MACHINE, f"java:kafka-group-coordinator:{release}", release, talks)
    # Members wait for others, or do not, where other tasks move. An endpoint without its topics: docs/coordinators.md.
    errors = [each for each in found if "Refused" in each and not ("TOPICS" in each and "UNKNOWN_SERVER" in each)]
    assert errors == [], "\n".join(errors)
    assert len(found) <= len(talks) / 50, "\n".join(found)
