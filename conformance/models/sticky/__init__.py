"""The assignors sticky and cooperative-sticky, with the outcomes of Kafka 3.9.2 except where a law of the suite forbids
them: all those places are in ``kipcheck.conformance.models.sticky.deviations``.

Whatever a group claims, both come to an end. They give what AbstractStickyAssignor gives, by its rules: who owns what
out of all that is claimed (``claims``), then one way for members that subscribe to the same (``alike``) and another one
for the rest (``mixed``), where racks count in both (``racks``). Then laws are looked after (``mending``).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import final

from kipcheck.conformance.models.assignment import COOPERATIVE, STICKY, Assignment, Group, Partition, frozen
from kipcheck.conformance.models.sticky.claims import Claims, agreed, claims_of, owners
from kipcheck.conformance.models.sticky.constrained import Alike
from kipcheck.conformance.models.sticky.deviations import NOTHING_ASKED, OLDER, Departure, Departures
from kipcheck.conformance.models.sticky.fix_up import mended
from kipcheck.conformance.models.sticky.general import shared
from kipcheck.conformance.models.sticky.racks import Racks

__all__ = ["Decision", "agreed", "cooperative_sticky", "decided", "owners", "sticky"]


@final
@dataclass(frozen=True, slots=True)
class Decision:
    assignment: Assignment
    departures: frozenset[Departure]
    """From what 3.9.2 does. Where there are none, it gives the same."""


def sticky(group: Group) -> Assignment:
    return decided(STICKY, group).assignment


def cooperative_sticky(group: Group) -> Assignment:
    """As sticky, but what somebody else has to give up first goes to nobody in this round."""
    return decided(COOPERATIVE, group).assignment


def decided(assignor: str, group: Group) -> Decision:
    """By ``sticky`` or ``cooperative-sticky``."""
    departures: Departures = set()
    if not group.members:
        return Decision({}, frozenset())
    claims, racks = claims_of(group, departures), Racks(group)
    holders: Mapping[Partition, str]
    moving: Container[Partition] = ()
    if _are_alike(claims, departures):
        alike = Alike(group, claims, racks)
        holders, moving = alike.holders, alike.moving
    else:
        holders = shared(group, claims, racks, departures)
        if assignor == COOPERATIVE:
            moving = {partition for partition, member in holders.items() if _is_new_to(group, partition, member)}
    if assignor == STICKY:
        holders = mended(group, holders, departures)
    given: dict[str, list[Partition]] = {each.id: [] for each in group.members}
    for partition, member in sorted(holders.items()):
        if assignor == COOPERATIVE and partition in moving:
            continue
        if assignor == COOPERATIVE and _is_older(group, partition, member):
            departures.add(OLDER)
            continue
        given[member].append(partition)
    return Decision(frozen(given), frozenset(departures))


def _are_alike(claims: Claims, departures: Departures) -> bool:
    """Do all subscribe to the same?"""
    asked = [frozenset(each.subscription) for each in claims.members]
    if len(set(asked)) == 1:
        return True
    first = next(place for place, topics in enumerate(asked) if topics)
    if len(set(asked[first:])) == 1:
        departures.add(NOTHING_ASKED)
    return False


def _is_new_to(group: Group, partition: Partition, member: str) -> bool:
    """Does the member not claim what others do?"""
    claiming = group.claims.get(partition, ())
    return bool(claiming) and all(each.id != member for each in claiming)


def _is_older(group: Group, partition: Partition, member: str) -> bool:
    """Does the member claim it, and another one in a newer generation?"""
    claiming = group.claims.get(partition, ())
    own = max((each.generation for each in claiming if each.id == member), default=None)
    return own is not None and any(each.generation > own for each in claiming)
