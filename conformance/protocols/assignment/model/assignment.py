"""Defines groups and assignments as values, and the assignors range and roundrobin of Kafka 3.9.2.

The sticky assignors are in ``assignment.model.sticky``. All assignors are total: whatever partitions the
members claim, they return an assignment that keeps every law of ``assignment.invariants.assignments``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from typing import Final, TypeAlias, final

RANGE, ROUNDROBIN, STICKY, COOPERATIVE = "range", "roundrobin", "sticky", "cooperative-sticky"
ASSIGNORS: Final = (RANGE, ROUNDROBIN, STICKY, COOPERATIVE)

Partition: TypeAlias = tuple[str, int]
Assignment: TypeAlias = Mapping[str, tuple[Partition, ...]]
"""Member id -> assigned partitions, with an entry for every member."""
NO_GENERATION: Final = -1


@final
@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    racks: tuple[frozenset[str], ...] | None = None
    """For each partition, the racks of its replicas; None if racks are unknown."""


@final
@dataclass(frozen=True, slots=True)
class Member:
    id: str
    subscription: tuple[str, ...]
    owned: tuple[Partition, ...] = ()
    """The partitions that it claims to own."""
    generation: int = NO_GENERATION
    """The generation in which it was assigned them; -1 if unknown."""
    instance: str | None = None
    rack: str | None = None


@final
@dataclass(frozen=True)
class Group:
    """The input of an assignor. Subscribed topics that are not among ``topics`` do not exist."""

    topics: tuple[Topic, ...]
    members: tuple[Member, ...] = field(default=())

    @property
    def has_racks(self) -> bool:
        """Whether any replica and any member have a known rack."""
        return any(each.racks for each in self.topics) and any(each.rack for each in self.members)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        return {each.name: each.partitions for each in self.topics}

    @cached_property
    def subscribers(self) -> Mapping[str, tuple[Member, ...]]:
        """Existing topic -> its subscribers, in the order of ``in_order``."""
        ordered = in_order(self.members)
        return {name: tuple(each for each in ordered if name in each.subscription) for name in self.sizes}

    @cached_property
    def wanted(self) -> tuple[Partition, ...]:
        """Every partition of a subscribed topic, sorted."""
        return tuple(each for each in partitions_of(self.topics) if self.subscribers[each[0]])

    def may_have(self, member: Member, partition: Partition) -> bool:
        """Whether the partition exists and the member subscribes to its topic."""
        topic, number = partition
        return 0 <= number < self.sizes.get(topic, 0) and topic in member.subscription

    @cached_property
    def claims(self) -> Mapping[Partition, tuple[Member, ...]]:
        """Partition -> the members that claim it, rightly or not, in the order of ``in_order``."""
        found: dict[Partition, list[Member]] = {}
        for member in in_order(self.members):
            for partition in dict.fromkeys(member.owned):
                found.setdefault(partition, []).append(member)
        return {partition: tuple(members) for partition, members in found.items()}


def partition_name(partition: Partition) -> str:
    """``t0-1``, as Kafka writes it."""
    return f"{partition[0]}-{partition[1]}"


def partition_names(partitions: Iterable[Partition]) -> str:
    return ", ".join(map(partition_name, sorted(partitions))) or "nothing"


def partitions_of(topics: Iterable[Topic]) -> list[Partition]:
    return [
        (each.name, number)
        for each in sorted(topics, key=lambda topic: java_order(topic.name))
        for number in range(each.partitions)
    ]


def java_order(text: str) -> bytes:
    """A sort key with the order of ``String.compareTo``: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by instance id, then dynamic ones by member id (KIP-345, AbstractPartitionAssignor)."""
    return sorted(members, key=_order)


def _order(member: Member) -> tuple[bool, bytes]:
    static = member.instance is not None
    return not static, java_order(member.id if member.instance is None else member.instance)


def roundrobin(group: Group) -> Assignment:
    """Assigns all partitions in order, each to the next member that subscribes to its topic."""
    given: dict[str, list[Partition]] = {each.id: [] for each in group.members}
    turns = cycle(in_order(group.members))
    for partition in group.wanted:  # it has a subscriber, so that the loop below ends
        member = next(turns)
        while partition[0] not in member.subscription:
            member = next(turns)
        given[member.id].append(partition)
    return frozen(given)


def range_(group: Group) -> Assignment:
    """Assigns each topic by itself: a run of partitions to each subscriber in order, by rack first if racks matter."""
    shares = [_Share(topic, group.subscribers[topic.name]) for topic in group.topics if topic.partitions]
    if any(each.racks_matter for each in shares):
        for topics_together in _copartitioned(shares):
            if len(topics_together) > 1:
                _match_copartitioned(topics_together)
            elif topics_together[0].racks_matter:
                topics_together[0].give_runs(matching=True)
    given: dict[str, list[Partition]] = {each.id: [] for each in group.members}
    for each in shares:
        each.give_runs(matching=False)
        for member, partitions in each.given.items():
            given[member] += sorted(partitions)
    return frozen(given)


class _Share:
    """The assignment of one topic in progress (RangeAssignor.TopicAssignmentState).

    Each subscriber gets the quotient, and the first that can take more get one of the remainder each. So no two
    subscribers differ by more than one partition, whatever their racks.
    """

    def __init__(self, topic: Topic, members: tuple[Member, ...]) -> None:
        self.topic = topic
        self.members = members
        self.left: dict[int, None] = dict.fromkeys(range(topic.partitions))
        self.given: dict[str, list[Partition]] = {each.id: [] for each in members}
        self.quota, self.extra = divmod(topic.partitions, len(members)) if members else (0, 0)
        known = {each.rack for each in members if each.rack is not None}
        racks = topic.racks or ()
        everywhere = frozenset[str]().union(*racks)
        self.racks_matter = bool(known & everywhere) and any(each != everywhere for each in racks)

    def room(self, member: Member) -> int:
        return max(0, self.quota + (self.extra > 0) - len(self.given[member.id]))

    def matches(self, member: Member, number: int) -> bool:
        """Whether the partition has a replica in the member's rack. A member without a rack matches all partitions."""
        if member.rack is None:
            return True
        racks = self.topic.racks or ()
        return number < len(racks) and member.rack in racks[number]

    def give(self, member: Member, numbers: Iterable[int]) -> None:
        mine = self.given[member.id]
        for number in numbers:
            mine.append((self.topic.name, number))
            del self.left[number]
        if len(mine) > self.quota:
            self.extra -= 1

    def give_runs(self, matching: bool) -> None:
        for member in self.members:
            room = self.room(member)
            numbers = [each for each in self.left if not matching or self.matches(member, each)][:room]
            if numbers:
                self.give(member, numbers)


def _copartitioned(shares: list[_Share]) -> Iterator[list[_Share]]:
    """Groups topics by subscribers and number of partitions: such topics are co-partitioned for joins."""
    found: dict[tuple[tuple[str, ...], int], list[_Share]] = {}
    for each in shares:
        found.setdefault((tuple(member.id for member in each.members), each.topic.partitions), []).append(each)
    yield from found.values()


def _match_copartitioned(topics_together: list[_Share]) -> None:
    """Assigns partitions with the same number to one member whose rack has a replica of each of them."""
    first = topics_together[0]
    for number in range(first.topic.partitions):
        for member in first.members:
            if all(each.room(member) and each.matches(member, number) for each in topics_together):
                for each in topics_together:
                    each.give(member, (number,))
                break


def frozen(given: Mapping[str, Iterable[Partition]]) -> Assignment:
    return {member: tuple(partitions) for member, partitions in given.items()}
