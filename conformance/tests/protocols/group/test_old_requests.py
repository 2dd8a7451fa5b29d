"""How often default cases have each request at its lowest and its highest version, by the phase of the group."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.group.checks import CHECKS, COORDINATOR
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.messages import Join, Phase, Request
from kipcheck.conformance.protocols.group.model.service import By, Service
from kipcheck.conformance.protocols.group.model.state import Standing, State
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.group.strategies.events import distinct_versions
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.tests.support.releases import OLD

MEASURED = ("group/parked", "group/errors")
"""Checks whose default cases are counted, with seed 0."""
LEAST = 3
"""What they have of each cell."""
AMONG_OTHERS = 30
"""How often a client that is no member joins a stable group with the lowest version."""


def requests(name: str) -> Iterator[tuple[Request, State]]:
    """The requests in default cases of an edition, each with the group before it."""
    machine, subject = coordinator(edition(name)), COORDINATOR.subject(name, "group", None)
    assert machine is not None
    service = Service[State](machine)
    for check in (each for each in CHECKS if each.id in MEASURED):
        for sample in check.samples(subject, 0):
            served = service.initial()
            for event in map(OPERATIONS.event_of, sample.case.steps):
                if isinstance(event, By) and not event.nameless and served.group.standing is Standing.OURS:
                    yield event.request, served.group
                served = service.step(served, event).state


@pytest.mark.parametrize("name", some_by_default([f"apache@{OLD}", "apache"], 1))
def test_default_cases_have_each_request_at_both_ends_of_its_versions_in_each_phase(name: str) -> None:
    machine = coordinator(edition(name))
    assert machine is not None
    ends = {kind: (span[0], span[-1]) for kind, span in distinct_versions(machine.rules.versions).items() if span}
    found: Counter[tuple[str, int, str]] = Counter()
    among_others = 0
    for request, group in requests(name):
        version = getattr(request, "version")  # noqa: B009
        found[type(request).__name__, version, group.phase.name] += 1
        if isinstance(request, Join) and version == ends[Join][0]:
            among_others += group.phase is Phase.STABLE and not request.member
    seldom = {
        cell: found[cell]
        for kind, versions in ends.items()
        for cell in ((kind.__name__, version, phase.name) for version in versions for phase in Phase)
        if found[cell] < LEAST
    }
    assert not seldom
    assert among_others >= AMONG_OTHERS
