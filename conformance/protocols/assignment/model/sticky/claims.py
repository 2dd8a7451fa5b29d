"""Determines from the members' claims which partitions they own before a rebalance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from kipcheck.conformance.protocols.assignment.model.assignment import NO_GENERATION, Group, Member, Partition
from kipcheck.conformance.protocols.assignment.model.sticky.deviations import GONE, LISTED, Deviations
from kipcheck.conformance.protocols.assignment.model.sticky.hashing import in_table_order, share_a_cell


def owners(group: Group) -> Mapping[Partition, str]:
    """Partition -> its owner: of the members that may have it, the one with the claim of the newest generation. If two
    members have such a claim, the partition has no owner (429-16)."""
    found: dict[Partition, str] = {}
    for partition, members in group.claims.items():
        may = [each for each in members if group.may_have(each, partition)]
        newest = max((each.generation for each in may), default=0)
        rightful = [each.id for each in may if each.generation == newest]
        if len(rightful) == 1:
            found[partition] = rightful[0]
    return found


def agreed(group: Group) -> Mapping[Partition, str] | None:
    """Partition -> its owner, if all claims are valid, unique and of one generation, and racks do not matter; else
    None. Since 3.5.0 Kafka prefers rack locality to stickiness."""
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
    """Claims as AbstractStickyAssignor evaluates them since 3.4.1, before it checks subscriptions."""

    members: Sequence[Member]
    """Members in the order of evaluation."""
    owned: Mapping[str, list[Partition]]
    """Member -> claimed partitions without a newer claim by another member. No partition has two owners."""
    contested: frozenset[Partition]
    """Partitions claimed by several members in one generation."""
    former: Mapping[Partition, str] = field(default_factory=dict)
    """Partition -> the member with the newest claim that is older than the newest generation of all members."""


def claims_of(group: Group, deviations: Deviations) -> Claims:
    members = {each.id: each for each in group.members}
    asked = [members[id] for id in in_table_order(members)]
    if share_a_cell(members):
        deviations.add(LISTED)
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
                deviations.add(GONE)
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
