"""What members own before a round, out of what they claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from kipcheck.conformance.models.assignment import NO_GENERATION, Group, Member, Partition
from kipcheck.conformance.models.sticky.deviations import GONE, LISTED, Departures
from kipcheck.conformance.models.sticky.hashing import in_table_order, share_a_cell


def owners(group: Group) -> Mapping[Partition, str]:
    """Partition -> the member whose claim to it counts: of those who may have it, the one that says so in the newest
    generation. Where two say so, neither does (429-16)."""
    found: dict[Partition, str] = {}
    for partition, members in group.claims.items():
        may = [each for each in members if group.may_have(each, partition)]
        newest = max((each.generation for each in may), default=0)
        rightful = [each.id for each in may if each.generation == newest]
        if len(rightful) == 1:
            found[partition] = rightful[0]
    return found


def agreed(group: Group) -> Mapping[Partition, str] | None:
    """Partition -> its owner, where all that is claimed may be had, by one member, all in one generation, and racks
    have no say: from 3.5.0 on Kafka would rather have a partition near than where it was."""
    if group.has_racks or len({each.generation for each in group.members if each.owned}) > 1:
        return None
    found: dict[Partition, str] = {}
    for partition, members in group.claims.items():
        if len(members) > 1 or not group.may_have(members[0], partition):
            return None
        found[partition] = members[0].id
    return found


@final
@dataclass(frozen=True, slots=True)
class Claims:
    """As AbstractStickyAssignor sees them from 3.4.1 on, which does not ask yet who subscribes to what."""

    members: Sequence[Member]
    """In the order in which they are asked."""
    owned: Mapping[str, list[Partition]]
    """Member -> what it claims and no newer claim takes from it. No partition has two owners."""
    contested: frozenset[Partition]
    """Claimed by several in one generation."""
    former: Mapping[Partition, str] = field(default_factory=dict)
    """Partition -> who claims it in an older generation than the newest that anybody knows, the newest of these."""


def claims_of(group: Group, departures: Departures) -> Claims:
    members = {each.id: each for each in group.members}
    asked = [members[id] for id in in_table_order(members)]
    if share_a_cell(members):
        departures.add(LISTED)
    topics = {topic for each in asked for topic in each.subscription if group.sizes.get(topic)}
    owned: dict[str, list[Partition]] = {each.id: [] for each in asked}
    last: dict[Partition, Member] = {}
    contested: set[Partition] = set()
    former: dict[Partition, Member] = {}
    newest = max((each.generation for each in asked), default=NO_GENERATION)
    for member in asked:
        for partition in dict.fromkeys(member.owned):
            topic, number = partition
            if topic not in topics:
                continue
            if not 0 <= number < group.sizes[topic]:
                departures.add(GONE)
                continue
            if member.generation < newest:
                before = former.setdefault(partition, member)
                if member.generation > before.generation:
                    former[partition] = member
            other = last.get(partition)
            if other is not None and member.generation < other.generation:
                continue
            last[partition] = member
            if other is None:
                owned[member.id].append(partition)
                continue
            if partition in owned[other.id]:
                owned[other.id].remove(partition)
            if member.generation == other.generation:
                contested.add(partition)
            else:
                owned[member.id].append(partition)
    return Claims(asked, owned, frozenset(contested), {partition: each.id for partition, each in former.items()})
