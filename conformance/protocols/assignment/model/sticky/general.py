"""The general case of AbstractStickyAssignor: members have different subscriptions."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from kipcheck.conformance.protocols.assignment.model.assignment import Group, Partition, java_order
from kipcheck.conformance.protocols.assignment.model.sticky.claims import Claims
from kipcheck.conformance.protocols.assignment.model.sticky.deviations import ENDLESS, FORMER, Deviations
from kipcheck.conformance.protocols.assignment.model.sticky.fix_up import levelled, reverted
from kipcheck.conformance.protocols.assignment.model.sticky.movements import Movements
from kipcheck.conformance.protocols.assignment.model.sticky.racks import Racks

PASSES: Final = 50
"""Number of passes after which a search counts as endless. Of 140,000 generated groups, searches that ended took at
most six passes, and endless ones returned to an earlier state after four."""


def assign_general(group: Group, claims: Claims, racks: Racks, deviations: Deviations) -> Mapping[Partition, str]:
    """Partition -> its member: owned partitions stay, free ones go to the smallest members, and then partitions move
    until the assignment is balanced."""
    general = _GeneralShares(group, claims)
    revoked = general.keep(claims, racks)
    fresh = not general.holders
    readers = {topic: len(members) for topic, members in group.subscribers.items()}
    wanted = sorted(group.wanted, key=lambda each: readers[each[0]])
    free = [each for each in wanted if each not in general.holders]
    if racks.count:
        general.deal(free, racks.are_near)
    general.deal(free, lambda member, partition: True)

    general.narrow(readers)
    before = dict(general.holders)
    try:
        if not revoked:
            general.search([each for each in free if readers[each[0]] > 1])
        changed = general.search([each for each in wanted if readers[each[0]] > 1])
    except _Cycle:
        deviations.add(ENDLESS)
        return levelled(group, before)
    if general.misled:
        deviations.add(FORMER)
    if changed and not fresh and general.spread(general.holders) >= general.spread(before):
        return reverted(group, before, deviations)
    return general.holders


@final
class _GeneralShares:
    def __init__(self, group: Group, claims: Claims) -> None:
        self._sizes = group.sizes
        self._former = claims.former
        self._topics = {
            each.id: [topic for topic in dict.fromkeys(each.subscription) if group.sizes.get(topic)]
            for each in claims.members
        }
        self._ranked = sorted(self._topics, key=java_order)
        self._rank = {member: rank for rank, member in enumerate(self._ranked)}
        self._active = set(self._topics)
        """Members that may gain or lose partitions."""
        self._order = [(0, rank) for rank in range(len(self._ranked))]
        """Sizes and ranks of these members, smallest first."""
        self._size = dict.fromkeys(self._topics, 0)
        self._by_topic: dict[str, dict[str, int]] = {each: {} for each in self._topics}
        """Member -> topic -> number of its partitions."""
        self.holders: dict[Partition, str] = {}
        self._movements = Movements()
        self._is_level: bool | None = None
        """None: it has to be computed again."""
        self.misled = False
        """Whether 3.9.2 would have returned a partition to a member that does not subscribe to its topic."""

    def keep(self, claims: Claims, racks: Racks) -> bool:
        """Keeps owned partitions that the owner subscribes to and is near to. Returns whether there were others."""
        revoked = False
        for member, owned in claims.owned.items():
            for partition in owned:
                if partition[0] in self._topics[member] and racks.are_near(member, partition):
                    self._put(partition, member)
                else:
                    revoked = True
        return revoked

    def deal(self, partitions: Sequence[Partition], may_have: Callable[[str, Partition], bool]) -> None:
        for partition in partitions:
            if partition not in self.holders:
                for _, rank in self._order:
                    member = self._ranked[rank]
                    if partition[0] in self._topics[member] and may_have(member, partition):
                        self._put(partition, member)
                        break

    def _put(self, partition: Partition, member: str) -> None:
        self.holders[partition] = member
        self._count(member, partition[0], 1)

    def _count(self, member: str, topic: str, more: int) -> None:
        rank = self._rank[member]
        del self._order[bisect_left(self._order, (self._size[member], rank))]
        self._size[member] += more
        self._by_topic[member][topic] = self._by_topic[member].get(topic, 0) + more
        insort(self._order, (self._size[member], rank))
        self._is_level = None

    def narrow(self, readers: Mapping[str, int]) -> None:
        """Excludes members that have all partitions they can have, and none that others can have."""
        for member, topics in self._topics.items():
            whole = self._size[member] == sum(self._sizes[topic] for topic in topics)
            if whole and not any(count and readers[topic] > 1 for topic, count in self._by_topic[member].items()):
                self._active.remove(member)
        self._order = [(size, rank) for size, rank in self._order if self._ranked[rank] in self._active]

    def search(self, partitions: Sequence[Partition]) -> bool:
        """Makes passes until one moves nothing. Returns whether any partition moved. Errors: _Circle."""
        seen: set[object] = set()
        while len(seen) < PASSES:
            moved = False
            for partition in partitions:
                if self._settled():
                    break
                moved |= self._improve(partition)
            if not moved:
                return bool(seen)
            state = tuple(self.holders.values()), self._movements.state
            if state in seen:
                break
            seen.add(state)
        raise _Cycle

    def _settled(self) -> bool:
        """Whether no member can give a partition to a member with two fewer."""
        if self._is_level is None:
            self._is_level = self._look()
        return self._is_level

    def _look(self) -> bool:
        if self._order[0][0] + 1 >= self._order[-1][0]:
            return True
        most: dict[str, int] = {}
        for size, rank in self._order:  # ascending, so that the largest size remains
            most |= {topic: size for topic, count in self._by_topic[self._ranked[rank]].items() if count}
        return not any(
            most.get(topic, 0) > size + 1 for size, rank in self._order for topic in self._topics[self._ranked[rank]]
        )

    def _improve(self, partition: Partition) -> bool:
        """Moves a partition to its former claimant, or else to the smallest member, if that has two fewer."""
        topic = partition[0]
        size = self._size[self.holders[partition]]
        former = self._former.get(partition)
        if former is not None and (former not in self._active or size > self._size[former] + 1):
            if topic in self._topics[former]:
                self._move(partition, former)
                return True
            self.misled = True
        least = next(self._ranked[rank] for _, rank in self._order if topic in self._topics[self._ranked[rank]])
        if size > self._size[least] + 1:
            self._move(partition, least)
            return True
        return False

    def _move(self, partition: Partition, receiver: str) -> None:
        partition = self._movements.instead(partition, self.holders[partition], receiver)
        giver = self.holders[partition]
        self._movements.note(partition, giver, receiver)
        self._count(giver, partition[0], -1)
        self._put(partition, receiver)

    def spread(self, holders: Mapping[Partition, str]) -> int:
        """The sum of the size differences over all pairs of members that are not excluded."""
        taken = Counter(holders.values())
        sizes = sorted(taken[member] for member in self._active)
        return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))


class _Cycle(Exception):
    """The search does not end."""
