"""What becomes of shares that would break a law: they are levelled, and what has moved in vain comes back.

That comes to an end, for each change lowers (S, D), which are natural numbers:

    S    the sum, over all members, of the square of how many partitions a member has
    D    how many partitions are not with the member that owned them before

``level`` moves a partition to a member that has at least two fewer, which lowers S: (a - 1)² + (b + 1)² is less than
a² + b² by 2 (a - b - 1). ``bring_back`` and ``heed_the_newest`` move one to its owner and lower D; what they move in
exchange had not been with its owner. They never raise S, for they exchange one for one, or take from a member that has
more than the one that gains. So no state comes twice, and there are finitely many.
"""

from collections.abc import Iterator, Mapping
from typing import final

from kipcheck.conformance.models.assignment import Group, Partition, java_order
from kipcheck.conformance.models.sticky.claims import agreed, owners
from kipcheck.conformance.models.sticky.deviations import NEEDLESS, NEWER, UNEVEN, Departures


def undone(group: Group, before: Mapping[Partition, str], departures: Departures) -> Mapping[Partition, str]:
    """What there was before a search that has come to nothing."""
    shares = Shares(group, before, owners(group))
    if shares.level():
        departures.add(UNEVEN)
    return shares.holders


def levelled(group: Group, holders: Mapping[Partition, str]) -> Mapping[Partition, str]:
    shares = Shares(group, holders, owners(group))
    shares.level()
    return shares.holders


def mended(group: Group, holders: Mapping[Partition, str], departures: Departures) -> Mapping[Partition, str]:
    """Of sticky, the same where no law is broken. What cooperative members have to give up first breaks none."""
    before = agreed(group)
    are_agreed = before is not None
    if before is None:
        before = {} if group.has_racks else owners(group)
    if all(holders[partition] == owner for partition, owner in before.items()):
        return holders
    shares = Shares(group, holders, before)
    while shares.bring_back() if are_agreed else shares.heed_the_newest():
        departures.add(NEEDLESS if are_agreed else NEWER)
        shares.level()
    return shares.holders


@final
class Shares:
    def __init__(self, group: Group, holders: Mapping[Partition, str], before: Mapping[Partition, str]) -> None:
        self._group = group
        self._before = before
        """Partition -> its owner."""
        self._members = {each.id: each for each in sorted(group.members, key=lambda member: java_order(member.id))}
        self._held: dict[str, dict[str, set[Partition]]] = {each: {} for each in self._members}
        """Member -> topic -> its partitions."""
        self._size = dict.fromkeys(self._members, 0)
        self.holders: dict[Partition, str] = {}
        for partition, member in holders.items():
            self._put(partition, member)

    def _put(self, partition: Partition, member: str) -> None:
        self.holders[partition] = member
        self._held[member].setdefault(partition[0], set()).add(partition)
        self._size[member] += 1

    def _move(self, partition: Partition, receiver: str) -> None:
        giver = self.holders[partition]
        self._held[giver][partition[0]].remove(partition)
        self._size[giver] -= 1
        self._put(partition, receiver)

    def level(self) -> bool:
        """Until nobody could give one to another that has two fewer; whether that took anything."""
        moved = False
        while (pair := self._uneven()) is not None:
            giver, receiver = pair
            self._move(min(self._givable(giver, receiver), key=lambda each: self._worth(each, receiver)), receiver)
            moved = True
        return moved

    def _uneven(self) -> tuple[str, str] | None:
        """Who has most of those that can give one, and who has least of those that can be given one."""
        by_size = sorted(self._size, key=self._size.__getitem__)
        for receiver in by_size:
            for giver in reversed(by_size):
                if self._size[giver] < self._size[receiver] + 2:
                    break
                if next(self._givable(giver, receiver), None) is not None:
                    return giver, receiver
        return None

    def _is_uneven_with(self, gained: str, lost: str) -> bool:
        """The same, where all was in balance before the one gained a partition and the other lost one."""
        return any(self._can_give(gained, each) or self._can_give(each, lost) for each in self._size)

    def _can_give(self, giver: str, receiver: str) -> bool:
        """Has it two more, and something that the other one may have?"""
        return self._size[giver] >= self._size[receiver] + 2 and next(self._givable(giver, receiver), None) is not None

    def _givable(self, giver: str, receiver: str) -> Iterator[Partition]:
        for topic in self._members[receiver].subscription:
            yield from self._held[giver].get(topic, ())

    def _worth(self, partition: Partition, receiver: str) -> tuple[int, int, Partition]:
        """First what the receiver owned before, then what nobody did, last what the giver did; of the topic of which
        the giver has most, so that a topic is spread."""
        owner, giver = self._before.get(partition), self.holders[partition]
        rank = 0 if owner == receiver else 1 if owner is None else 3 if owner == giver else 2
        return rank, -len(self._held[giver][partition[0]]), partition

    def bring_back(self) -> bool:
        """One that could have stayed where it was, or two of a topic that members have exchanged; whether there are."""
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

    def heed_the_newest(self) -> bool:
        """One goes to the owner from whom an older claim has taken it, where that one has fewer, or has something in
        its place that it did not own; whether there is any."""
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
