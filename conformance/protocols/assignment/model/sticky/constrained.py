"""The constrained case of AbstractStickyAssignor: all members have the same subscription."""

from typing import final

from kipcheck.conformance.protocols.assignment.model.assignment import Group, Partition, java_order
from kipcheck.conformance.protocols.assignment.model.sticky.claims import Claims
from kipcheck.conformance.protocols.assignment.model.sticky.racks import Racks


@final
class ConstrainedShares:
    """Each member keeps up to the quota of its owned partitions, or one more; free partitions fill up the others."""

    def __init__(self, group: Group, claims: Claims, racks: Racks) -> None:
        self._racks = racks
        self._claims = claims
        self._quota, self._extra = divmod(len(group.wanted), len(claims.members))
        """The quota of each member, and how many members may still get one more."""
        self._given: dict[str, list[Partition]] = {each.id: [] for each in claims.members}
        self.moving: set[Partition] = set()
        """Partitions that another member must revoke first: cooperative members get them one rebalance later."""
        self._below_quota: list[str] = []
        """Members below the quota."""
        self._at_quota: list[str] = []
        """Members at the quota that may get one more."""
        self._former_owners: dict[Partition, str] = {}
        """Partition -> its owner that could not keep it."""
        kept = self._keep()
        free = [each for each in group.wanted if each not in kept]
        self._below_quota.sort(key=java_order)
        self._at_quota.sort(key=java_order)
        if racks.count:
            free.sort(key=racks.neighbours)
            free = self._deal_near(free)
        self._deal(free)

    @property
    def holders(self) -> dict[Partition, str]:
        return {partition: member for member, given in self._given.items() for partition in given}

    def _keep(self) -> set[Partition]:
        """Lets members keep owned partitions up to their limit, lowest partition numbers first, across topics."""
        kept: set[Partition] = set()
        for member, owned in self._claims.owned.items():
            near = sorted((each for each in owned if self._racks.are_near(member, each)), key=_by_number)
            own = [each for each in near if each not in self._claims.contested]
            room = len(own)
            if room < self._quota:
                self._below_quota.append(member)
            elif room > self._quota and self._extra:
                room = self._quota + 1
                self._one_more_has_enough()
            else:
                room = self._quota
                if self._extra:
                    self._at_quota.append(member)
            self._given[member] += own[:room]
            kept.update(own[:room])
            self._former_owners.update((each, member) for each in owned if each not in kept)
        return kept

    def _one_more_has_enough(self) -> None:
        self._extra -= 1
        if not self._extra:
            self._at_quota.clear()

    def _deal_near(self, free: list[Partition]) -> list[Partition]:
        """Deals partitions by rack: to the next near member below the quota, else to the first near one that may get
        one more. Returns the rest."""
        left: list[Partition] = []
        turn = 0
        for partition in free:
            needy = self._nearest(partition, self._below_quota, turn)
            level = self._nearest(partition, self._at_quota, 0) if needy is None else None
            if needy is not None:
                turn = self._serve(needy, partition)
            elif level is not None:
                self._give(partition, self._at_quota.pop(level))
                self._one_more_has_enough()
            else:
                left.append(partition)
        return left

    def _nearest(self, partition: Partition, members: list[str], turn: int) -> int | None:
        places = (*range(turn, len(members)), *range(turn))
        return next((place for place in places if self._racks.share(members[place], partition)), None)

    def _serve(self, place: int, partition: Partition) -> int:
        """Gives a partition to a member below the quota. Returns the index of the next one."""
        member = self._below_quota[place]
        self._give(partition, member)
        if len(self._given[member]) < self._quota:
            place += 1
        else:
            del self._below_quota[place]
            if self._extra:
                self._at_quota.append(member)
        return place % len(self._below_quota) if self._below_quota else 0

    def _deal(self, free: list[Partition]) -> None:
        """Deals partitions to the members below the quota in turn, then one more to each of those at the quota."""
        turn = 0
        for partition in free:
            if not self._below_quota:
                self._give(partition, self._at_quota.pop(0))
                continue
            turn = self._serve(turn, partition)

    def _give(self, partition: Partition, member: str) -> None:
        self._given[member].append(partition)
        if self._former_owners.get(partition, member) != member or partition in self._claims.contested:
            self.moving.add(partition)


def _by_number(partition: Partition) -> tuple[int, bytes]:
    topic, number = partition
    return number, java_order(topic)
