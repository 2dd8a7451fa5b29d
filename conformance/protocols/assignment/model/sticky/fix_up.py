"""Repairs assignments that would break a law: balances them, and returns partitions that moved needlessly.

This terminates, because each change lowers the pair (S, D) of natural numbers:

    S    the sum, over all members, of the square of the member's number of partitions
    D    the number of partitions that are not with their former owner

``level`` moves a partition to a member that has at least two fewer, which lowers S: (a - 1)² + (b + 1)² is less than
a² + b² by 2 (a - b - 1). ``return_to_owner`` and ``honor_newest_claim`` move a partition to its owner, which lowers
D; a partition moved in exchange was not with its owner. They never raise S, because they exchange one for one, or
take from a member that has more than the receiver. So no state recurs, and there are finitely many.
"""

from collections.abc import Iterator, Mapping
from typing import final

from kipcheck.conformance.protocols.assignment.model.assignment import Group, Partition, java_order
from kipcheck.conformance.protocols.assignment.model.sticky.claims import agreed, owners
from kipcheck.conformance.protocols.assignment.model.sticky.deviations import NEEDLESS, NEWER, UNEVEN, Deviations


def reverted(group: Group, before: Mapping[Partition, str], deviations: Deviations) -> Mapping[Partition, str]:
    """The assignment before a search without improvement, levelled if necessary."""
    shares = Shares(group, before, owners(group))
    if shares.level():
        deviations.add(UNEVEN)
    return shares.holders


def levelled(group: Group, holders: Mapping[Partition, str]) -> Mapping[Partition, str]:
    shares = Shares(group, holders, owners(group))
    shares.level()
    return shares.holders


def fixed_up(group: Group, holders: Mapping[Partition, str], deviations: Deviations) -> Mapping[Partition, str]:
    """Repairs a sticky assignment; unchanged if it breaks no law. Not needed for cooperative-sticky, where partitions
    to revoke stay unassigned."""
    before = agreed(group)
    are_agreed = before is not None
    if before is None:
        before = {} if group.has_racks else owners(group)
    if all(holders[partition] == owner for partition, owner in before.items()):
        return holders
    shares = Shares(group, holders, before)
    while shares.return_to_owner() if are_agreed else shares.honor_newest_claim():
        deviations.add(NEEDLESS if are_agreed else NEWER)
        shares.level()
    return shares.holders


@final
class Shares:
    def __init__(self, group: Group, holders: Mapping[Partition, str], before: Mapping[Partition, str]) -> None:
        self._group = group
        self._before = before
        """Partition -> its owner."""
        self._members = {each.id: each for each in sorted(group.members, key=lambda member: java_order(member.id))}
        self._by_topic: dict[str, dict[str, set[Partition]]] = {each: {} for each in self._members}
        """Member -> topic -> its partitions."""
        self._size = dict.fromkeys(self._members, 0)
        self.holders: dict[Partition, str] = {}
        for partition, member in holders.items():
            self._put(partition, member)

    def _put(self, partition: Partition, member: str) -> None:
        self.holders[partition] = member
        self._by_topic[member].setdefault(partition[0], set()).add(partition)
        self._size[member] += 1

    def _move(self, partition: Partition, receiver: str) -> None:
        giver = self.holders[partition]
        self._by_topic[giver][partition[0]].remove(partition)
        self._size[giver] -= 1
        self._put(partition, receiver)

    def level(self) -> bool:
        """Moves partitions until no member can give one to a member with two fewer. Returns whether any moved."""
        moved = False
        while (pair := self._uneven()) is not None:
            giver, receiver = pair
            self._move(min(self._givable(giver, receiver), key=lambda each: self._worth(each, receiver)), receiver)
            moved = True
        return moved

    def _uneven(self) -> tuple[str, str] | None:
        """The largest possible giver and the smallest possible receiver; None if the assignment is balanced."""
        by_size = sorted(self._size, key=self._size.__getitem__)
        for receiver in by_size:
            for giver in reversed(by_size):
                if self._size[giver] < self._size[receiver] + 2:
                    break
                if next(self._givable(giver, receiver), None) is not None:
                    return giver, receiver
        return None

    def _is_uneven_with(self, gained: str, lost: str) -> bool:
        """Whether a balanced assignment became unbalanced when ``gained`` got a partition from ``lost``."""
        return any(self._can_give(gained, each) or self._can_give(each, lost) for each in self._size)

    def _can_give(self, giver: str, receiver: str) -> bool:
        """Whether the giver has at least two more, one of them of a topic that the receiver subscribes to."""
        return self._size[giver] >= self._size[receiver] + 2 and next(self._givable(giver, receiver), None) is not None

    def _givable(self, giver: str, receiver: str) -> Iterator[Partition]:
        for topic in self._members[receiver].subscription:
            yield from self._by_topic[giver].get(topic, ())

    def _worth(self, partition: Partition, receiver: str) -> tuple[int, int, Partition]:
        """Sort key: first partitions that the receiver owned before, then those without an owner, last those of the
        giver; among these, of the topic of which the giver has most, to spread topics."""
        owner, giver = self._before.get(partition), self.holders[partition]
        rank = 0 if owner == receiver else 1 if owner is None else 3 if owner == giver else 2
        return rank, -len(self._by_topic[giver][partition[0]]), partition

    def return_to_owner(self) -> bool:
        """Returns one partition to its owner, or undoes an exchange within a topic. Returns whether it found any."""
        ways: dict[tuple[str, str, str], Partition] = {}
        for partition, owner in sorted(self._before.items()):
            holder = self.holders[partition]
            if holder == owner:
                continue
            if self._size[holder] > self._size[owner]:
                self._move(partition, owner)
                if not self._is_uneven_with(owner, holder):
                    return True
                self._move(partition, holder)
            ways[partition[0], owner, holder] = partition
            back = ways.get((partition[0], holder, owner))
            if back is not None:
                self._move(partition, owner)
                self._move(back, holder)
                return True
        return False

    def honor_newest_claim(self) -> bool:
        """Returns one partition from a member with an older claim to its owner, if the owner has fewer partitions, or
        has one to exchange that it did not own. Returns whether it found any."""
        for partition, owner in sorted(self._before.items()):
            holder = self.holders[partition]
            if holder == owner or all(each.id != holder for each in self._group.claims[partition]):
                continue
            if self._size[owner] < self._size[holder]:
                self._move(partition, owner)
                return True
            owned = self._members[owner].owned
            instead = next((each for each in sorted(self._givable(owner, holder)) if each not in owned), None)
            if instead is not None:
                self._move(instead, holder)
                self._move(partition, owner)
                return True
        return False
