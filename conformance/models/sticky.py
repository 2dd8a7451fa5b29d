"""The assignors sticky and cooperative-sticky: balanced first, then as much as can be stays where it is.

Not move by move what Kafka's AbstractStickyAssignor does, whose search can go in circles: within the same laws this one
comes to an end, for each change that it makes lowers (S, D), which are natural numbers:

    S    the sum, over all members, of the square of how many partitions a member has
    D    how many partitions are not with the member that had them before

``_level`` moves a partition to a member that has at least two fewer, which lowers S: (a - 1)² + (b + 1)² is less than
a² + b² by 2 (a - b - 1). ``_bring_back`` moves one to where it was and lowers D, and never raises S: it either keeps
all sizes, or takes one from a member that has more than the one that gains. So no state comes twice, and there are
finitely many. Where neither finds anything, no member could give one to another that has two fewer, and none was
moved in vain.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conformance.models.assignment import Assignment, Group, Member, Partition, frozen, in_order


def sticky(group: Group) -> Assignment:
    return _Search(group).result()


def cooperative_sticky(group: Group) -> Assignment:
    """As sticky, but what somebody else has still to give up goes to nobody in this round."""
    return {
        member: tuple(each for each in partitions if not is_withheld(group, member, each))
        for member, partitions in sticky(group).items()
    }


def is_withheld(group: Group, member: str, partition: Partition) -> bool:
    """Does another member claim it, and not only in an older generation than this one does?"""
    claims = group.claims.get(partition, ())
    own = max((each.generation for each in claims if each.id == member), default=None)
    others = (each.generation for each in claims if each.id != member)
    return any(own is None or generation >= own for generation in others)


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


class _Move(NamedTuple):
    partition: Partition
    receiver: str


class _Search:
    def __init__(self, group: Group) -> None:
        self.members: dict[str, Member] = {each.id: each for each in in_order(group.members)}
        self.before = owners(group)
        self.held: dict[str, dict[str, set[Partition]]] = {each: {} for each in self.members}
        """Member -> topic -> its partitions."""
        self.size = dict.fromkeys(self.members, 0)
        self.holder: dict[Partition, str] = {}
        for partition in group.wanted:
            if partition in self.before:
                self._put(partition, self.before[partition])
        new = [each for each in group.wanted if each not in self.before]
        for partition in sorted(new, key=lambda each: len(group.subscribers[each[0]])):
            readers = group.subscribers[partition[0]]
            self._put(partition, min(readers, key=lambda reader: self.size[reader.id]).id)
        self._settle()

    def result(self) -> Assignment:
        return frozen(
            {member: sorted(set[Partition]().union(*topics.values())) for member, topics in self.held.items()}
        )

    def _put(self, partition: Partition, member: str) -> None:
        self.holder[partition] = member
        self.held[member].setdefault(partition[0], set()).add(partition)
        self.size[member] += 1

    def _move(self, move: _Move) -> None:
        giver = self.holder[move.partition]
        self.held[giver][move.partition[0]].remove(move.partition)
        self.size[giver] -= 1
        self._put(move.partition, move.receiver)

    def _settle(self) -> None:
        while moves := self._level() or self._bring_back():
            for each in moves:
                self._move(each)

    def _level(self) -> list[_Move]:
        """A partition to who has least, from who has most among those that can give it one."""
        by_size = sorted(self.members, key=self.size.__getitem__)
        for receiver in by_size:
            for giver in reversed(by_size):
                if self.size[giver] < self.size[receiver] + 2:
                    break
                best = min(self._givable(giver, receiver), key=lambda each: self._worth(each, receiver), default=None)
                if best is not None:
                    return [_Move(best, receiver)]
        return []

    def _givable(self, giver: str, receiver: str) -> Iterator[Partition]:
        for topic in self.members[receiver].subscription:
            yield from self.held[giver].get(topic, ())

    def _worth(self, partition: Partition, receiver: str) -> tuple[int, int, Partition]:
        """First what the receiver had before, then what nobody had, last what the giver had; of the topic of which the
        giver has most, so that a topic is spread."""
        before, giver = self.before.get(partition), self.holder[partition]
        rank = 0 if before == receiver else 1 if before is None else 3 if before == giver else 2
        return rank, -len(self.held[giver][partition[0]]), partition

    def _bring_back(self) -> list[_Move]:
        for partition, owner in self.before.items():
            holder = self.holder[partition]
            if holder == owner:
                continue
            back = _Move(partition, owner)
            if self.size[holder] > self.size[owner]:
                return [back]
            for giver in self.members:
                if giver == owner or self.size[giver] > self.size[owner]:
                    for each in self._givable(giver, holder):
                        if each != partition and self.before.get(each) != giver:
                            return [back, _Move(each, holder)]
        return []
