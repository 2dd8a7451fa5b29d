"""Who reads which partition: groups as values, and the assignors range and roundrobin as Kafka 3.9.2 has them.

The sticky ones are in ``kipcheck.conformance.models.sticky``. All are total: whatever a group claims, they answer, and
keep every law of ``kipcheck.conformance.invariants.assignment``.
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
"""Member -> what it gets, every member present."""
NO_GENERATION: Final = -1


@final
@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    racks: tuple[frozenset[str], ...] | None = None
    """Of each partition, those of its replicas; None where nothing is known of racks."""


@final
@dataclass(frozen=True, slots=True)
class Member:
    id: str
    subscription: tuple[str, ...]
    owned: tuple[Partition, ...] = ()
    """What it claims to own."""
    generation: int = NO_GENERATION
    """In which it was given what it owns; -1: it does not say."""
    instance: str | None = None
    rack: str | None = None


@final
@dataclass(frozen=True)
class Group:
    """What a leader decides about. A topic of a subscription that is not among ``topics`` does not exist."""

    topics: tuple[Topic, ...]
    members: tuple[Member, ...] = field(default=())

    @property
    def has_racks(self) -> bool:
        """Is anything known of racks that could have a say?"""
        return any(each.racks for each in self.topics) and any(each.rack for each in self.members)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Topic -> number of partitions."""
        return {each.name: each.partitions for each in self.topics}

    @cached_property
    def subscribers(self) -> Mapping[str, tuple[Member, ...]]:
        """Of each topic that exists, in the order of assignors."""
        ordered = in_order(self.members)
        return {name: tuple(each for each in ordered if name in each.subscription) for name in self.sizes}

    @cached_property
    def wanted(self) -> tuple[Partition, ...]:
        """Every partition that somebody subscribes to, sorted."""
        return tuple(each for each in partitions_of(self.topics) if self.subscribers[each[0]])

    def may_have(self, member: Member, partition: Partition) -> bool:
        """Does the partition exist, and does the member subscribe to it?"""
        topic, number = partition
        return 0 <= number < self.sizes.get(topic, 0) and topic in member.subscription

    @cached_property
    def claims(self) -> Mapping[Partition, tuple[Member, ...]]:
        """Whoever says that it owns a partition, in the order of assignors, be it so or not."""
        found: dict[Partition, list[Member]] = {}
        for member in in_order(self.members):
            for partition in dict.fromkeys(member.owned):
                found.setdefault(partition, []).append(member)
        return {partition: tuple(members) for partition, members in found.items()}


def named(partition: Partition) -> str:
    """``t0-1``, as Kafka writes it."""
    return f"{partition[0]}-{partition[1]}"


def listed(partitions: Iterable[Partition]) -> str:
    return ", ".join(map(named, sorted(partitions))) or "nothing"


def partitions_of(topics: Iterable[Topic]) -> list[Partition]:
    return [
        (each.name, number)
        for each in sorted(topics, key=lambda topic: java_order(topic.name))
        for number in range(each.partitions)
    ]


def java_order(text: str) -> bytes:
    """As ``String.compareTo`` has it: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by instance id, then the others by member id (KIP-345, AbstractPartitionAssignor)."""
    return sorted(members, key=_order)


def _order(member: Member) -> tuple[bool, bytes]:
    static = member.instance is not None
    return not static, java_order(member.id if member.instance is None else member.instance)


def roundrobin(group: Group) -> Assignment:
    """All partitions in their order, one after the other to the next member that subscribes to them."""
    given: dict[str, list[Partition]] = {each.id: [] for each in group.members}
    turns = cycle(in_order(group.members))
    for partition in group.wanted:  # somebody subscribes to it, so that every walk ends
        member = next(turns)
        while partition[0] not in member.subscription:
            member = next(turns)
        given[member.id].append(partition)
    return frozen(given)


def range_(group: Group) -> Assignment:
    """Of each topic by itself, a run of partitions to each subscriber in order; racks come first where they matter."""
    shares = [_Share(topic, group.subscribers[topic.name]) for topic in group.topics if topic.partitions]
    if any(each.racks_matter for each in shares):
        for alike in _alike(shares):
            if len(alike) > 1:
                _match_alike(alike)
            elif alike[0].racks_matter:
                alike[0].give_runs(matching=True)
    given: dict[str, list[Partition]] = {each.id: [] for each in group.members}
    for each in shares:
        each.give_runs(matching=False)
        for member, partitions in each.given.items():
            given[member] += sorted(partitions)
    return frozen(given)


class _Share:
    """Of one topic: who may still get how much (RangeAssignor.TopicAssignmentState).

    Everybody gets the quotient, and whoever is first to want more gets one of the remainder, so that whatever racks
    do, no two subscribers differ by more than one.
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
        """Has the partition a replica where the member is? A member that is nowhere matches all."""
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


def _alike(shares: list[_Share]) -> Iterator[list[_Share]]:
    """Topics with the same subscribers and as many partitions: what is joined from them has to meet in one member."""
    found: dict[tuple[tuple[str, ...], int], list[_Share]] = {}
    for each in shares:
        found.setdefault((tuple(member.id for member in each.members), each.topic.partitions), []).append(each)
    yield from found.values()


def _match_alike(alike: list[_Share]) -> None:
    """Partitions of one number go to one member, whose rack has a replica of each of them."""
    first = alike[0]
    for number in range(first.topic.partitions):
        for member in first.members:
            if all(each.room(member) and each.matches(member, number) for each in alike):
                for each in alike:
                    each.give(member, (number,))
                break


def frozen(given: Mapping[str, Iterable[Partition]]) -> Assignment:
    return {member: tuple(partitions) for member, partitions in given.items()}
