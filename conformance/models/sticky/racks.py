"""Which partitions are near to which members, where that counts (KIP-881, from 3.5.0 on)."""

from collections import Counter
from typing import Final, final

from kipcheck.conformance.models.assignment import Group, Partition

NOWHERE: Final = frozenset[str]()


@final
class Racks:
    """They count where somebody is in a rack that has replicas, and not every partition has one in every rack."""

    def __init__(self, group: Group) -> None:
        at = {each.id: each.rack for each in group.members if each.rack}
        self._racks = {
            (each.name, number): racks
            for each in group.topics
            if at and group.subscribers[each.name]
            for number, racks in enumerate(each.racks or (NOWHERE,) * each.partitions)
        }
        everywhere = NOWHERE.union(*self._racks.values())
        self.count = not everywhere.isdisjoint(at.values()) and any(each != everywhere for each in self._racks.values())
        self._at = at if self.count else {}
        self._members = Counter(at.values())

    def are_near(self, member: str, partition: Partition) -> bool:
        """A member of which no rack is known is near to all."""
        rack = self._at.get(member)
        return rack is None or rack in self._racks[partition]

    def share(self, member: str, partition: Partition) -> bool:
        """Are both in a rack that is known?"""
        return self._at.get(member) in self._racks[partition]

    def neighbours(self, partition: Partition) -> int:
        """How many members are near to it, each as often as it has replicas there."""
        return sum(self._members[rack] for rack in self._racks[partition])
