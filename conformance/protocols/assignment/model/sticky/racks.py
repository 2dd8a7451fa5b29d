"""Rack locality of partitions and members, if it matters (KIP-881, since 3.5.0)."""

from collections import Counter
from typing import Final, final

from kipcheck.conformance.protocols.assignment.model.assignment import Group, Partition

NOWHERE: Final = frozenset[str]()


@final
class Racks:
    """Racks matter if a member is in a rack with replicas, and not every partition has a replica in every rack."""

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
        """Whether the partition has a replica in the member's rack, or the member's rack is unknown."""
        rack = self._at.get(member)
        return rack is None or rack in self._racks[partition]

    def share(self, member: str, partition: Partition) -> bool:
        """Whether the partition has a replica in the member's rack."""
        return self._at.get(member) in self._racks[partition]

    def neighbours(self, partition: Partition) -> int:
        """The number of members in the racks of the partition's replicas."""
        return sum(self._members[rack] for rack in self._racks[partition])
