"""The assignors sticky and cooperative-sticky, with the results of Kafka 3.9.2 except where a law of the suite forbids
them: ``kipcheck.conformance.protocols.assignment.model.sticky.deviations`` lists all deviations.

Both terminate whatever the members claim. They follow AbstractStickyAssignor: determine the owners from the claims
(``claims``), then assign in the constrained case, where all members have the same subscription, or in the general one
(``constrained``, ``general``), both with racks (``racks``). A final step restores the laws of the suite (``fix_up``).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import final

from kipcheck.conformance.protocols.assignment.model import assignment as model_assignment
from kipcheck.conformance.protocols.assignment.model.sticky import deviations as sticky_deviations
from kipcheck.conformance.protocols.assignment.model.sticky.claims import Claims, agreed, claims_of, owners
from kipcheck.conformance.protocols.assignment.model.sticky.constrained import ConstrainedShares
from kipcheck.conformance.protocols.assignment.model.sticky.fix_up import fixed_up
from kipcheck.conformance.protocols.assignment.model.sticky.general import assign_general
from kipcheck.conformance.protocols.assignment.model.sticky.racks import Racks

__all__ = ["Decision", "agreed", "cooperative_sticky", "decided", "owners", "sticky"]


@final
@dataclass(frozen=True, slots=True)
class Decision:
    assignment: model_assignment.Assignment
    departures: frozenset[sticky_deviations.Deviation]
    """Deviations from 3.9.2. Without any, the assignment equals that of 3.9.2."""


def sticky(group: model_assignment.Group) -> model_assignment.Assignment:
    return decided(model_assignment.STICKY, group).assignment


def cooperative_sticky(group: model_assignment.Group) -> model_assignment.Assignment:
    """Like sticky, but partitions that another member must revoke first stay unassigned in this rebalance."""
    return decided(model_assignment.COOPERATIVE, group).assignment


def decided(assignor: str, group: model_assignment.Group) -> Decision:
    """The decision of ``sticky`` or ``cooperative-sticky``."""
    deviations: sticky_deviations.Deviations = set()
    if not group.members:
        return Decision({}, frozenset())
    claims, racks = claims_of(group, deviations), Racks(group)
    holders: Mapping[model_assignment.Partition, str]
    moving: Container[model_assignment.Partition] = ()
    if _same_subscriptions(claims, deviations):
        constrained = ConstrainedShares(group, claims, racks)
        holders, moving = constrained.holders, constrained.moving
    else:
        holders = assign_general(group, claims, racks, deviations)
        if assignor == model_assignment.COOPERATIVE:
            moving = {partition for partition, member in holders.items() if _is_new_to(group, partition, member)}
    if assignor == model_assignment.STICKY:
        holders = fixed_up(group, holders, deviations)
    given: dict[str, list[model_assignment.Partition]] = {each.id: [] for each in group.members}
    for partition, member in sorted(holders.items()):
        if assignor == model_assignment.COOPERATIVE and partition in moving:
            continue
        if assignor == model_assignment.COOPERATIVE and _is_older(group, partition, member):
            deviations.add(sticky_deviations.OLDER)
            continue
        given[member].append(partition)
    return Decision(model_assignment.frozen(given), frozenset(deviations))


def _same_subscriptions(claims: Claims, deviations: sticky_deviations.Deviations) -> bool:
    """Whether all members subscribe to the same topics."""
    asked = [frozenset(each.subscription) for each in claims.members]
    if len(set(asked)) == 1:
        return True
    first = next(place for place, topics in enumerate(asked) if topics)
    if len(set(asked[first:])) == 1:
        deviations.add(sticky_deviations.NOTHING_ASKED)
    return False


def _is_new_to(group: model_assignment.Group, partition: model_assignment.Partition, member: str) -> bool:
    """Whether other members claim the partition, but not this one."""
    claiming = group.claims.get(partition, ())
    return bool(claiming) and all(each.id != member for each in claiming)


def _is_older(group: model_assignment.Group, partition: model_assignment.Partition, member: str) -> bool:
    """Whether the member claims the partition, and another member claims it in a newer generation."""
    claiming = group.claims.get(partition, ())
    own = max((each.generation for each in claiming if each.id == member), default=None)
    return own is not None and any(each.generation > own for each in claiming)
