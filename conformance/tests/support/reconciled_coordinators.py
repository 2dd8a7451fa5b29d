"""Compares answers of coordinators and of leaders of share partitions with those of the machine."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.rules import Rules
from kipcheck.conformance.protocols.streams_group.target import MACHINE
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.machines import differences, session_answers

STREAMS_MACHINE = replace(MACHINE, of_release=lambda release: StreamsGroup(Rules.of(release)))
"""With what releases do otherwise than they should."""
COMPARED = (
    "epoch", "statuses", "created", "state", "assignment_epoch", "topology", "topology_epoch", "acquired", "refused",
)  # fmt: skip
"""Not tasks or partitions: which member gets which is the coordinator's choice."""


def alike(step: Step, ours: Observation, theirs: Observation) -> bool:
    if isinstance(ours, Replied) and isinstance(theirs, Replied):
        one, other = dict(ours.payload), dict(theirs.payload)
        return all(one.get(each) == other.get(each) for each in COMPARED)
    return isinstance(ours, Refused) and isinstance(theirs, Refused) and ours.error == theirs.error


def is_comparable(text: str) -> bool:
    """Whether a conversation of a streams group shows the same, whichever tasks an assignor moves. Where the number of
    standby tasks is set, a member that has some gives them up first, and one without has the next epoch at once."""
    return "configure" not in text


def unlike_the_machine(
    machine: ReleasedMachine[Any], target: str, release: str, talks: Sequence[Iterable[Step]]
) -> list[str]:
    """The conversations in which a target of a release answers otherwise than the machine of that release.

    Errors: ``Unavailable``.
    """
    edition, found = f"apache@{release}", [tuple(each) for each in talks]
    with registry.target(target).open(edition, Role.COORDINATOR) as session:
        answers = session_answers(session, edition, Role.COORDINATOR, found)
    return differences(machine.operations, machine.of_release(release), found, answers, alike)
