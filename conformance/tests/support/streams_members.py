"""A group of Streams members, played by hand with their machines."""

from collections.abc import Mapping
from dataclasses import replace

from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.streams.model.group_model import process_of
from kipcheck.conformance.protocols.streams.model.leader import written
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    AssignmentResult,
    Binary,
    Joining,
    Memory,
    Settings,
    Share,
    Store,
    SubscriptionInfo,
    Subtopology,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.model.tasks import order
from kipcheck.conformance.protocols.streams.ops import STATELESS, TOPICS

NEWEST = edition("apache@4.3.1")
STATEFUL = Topology((Subtopology(0, ("t",), stores=(Store("s"),)),))
CHAINED = Topology(
    (Subtopology(0, ("t",), ("r",)), Subtopology(1, ("r",), ("q",)), Subtopology(2, ("q",), stores=(Store("s"),)))
)


class Group:
    """Members by name, as ``a=2.0.1``, ``a=2.4.1<2.3`` or ``a=2.0.1@i`` (a thread of instance i)."""

    def __init__(
        self,
        text: str,
        where: Edition = NEWEST,
        fitted: bool = True,
        topology: Topology = STATELESS,
        ends: bool = False,
    ) -> None:
        self.where, self.fitted, self.topology, self.ends = where, fitted, topology, ends
        self.topics: tuple[Topic, ...] = TOPICS
        self.members: dict[str, Binary] = {}
        self.memories: dict[str, Memory] = {}
        self.owned: dict[str, tuple[Partition, ...]] = {}
        self.told: dict[str, SubscriptionInfo] = {}
        self.shares: Mapping[str, Share] = {}
        for each in text.split():
            self.start(*each.split("="))

    def start(self, name: str, text: str) -> None:
        release, _, instance = text.partition("@")
        release, _, upgrade_from = release.partition("<")
        process = process_of(instance or name)
        end_point = f"{name}:9092" if self.ends else None
        settings = Settings(release, self.topology, process, upgrade_from or None, end_point)
        self.members[name] = binary(settings, self.where, self.fitted)
        self.memories[name] = self.members[name].initial()
        self.owned[name] = ()

    def subscribe(self, name: str) -> SubscriptionInfo:
        self.memories[name], info = self.members[name].subscribe(self.memories[name], ("t",))
        assert isinstance(info, SubscriptionInfo)
        self.told[name] = info
        return info

    def lead(self, leader: str) -> dict[str, AssignmentInfo]:
        """All subscribe, and one of them assigns."""
        joining = tuple(
            Joining(each, ("t",), self.subscribe(each), self.owned[each] if self.cooperative(each) else ())
            for each in self.members
        )
        self.memories[leader], self.shares = self.members[leader].lead(self.memories[leader], self.topics, joining)
        sent: dict[str, AssignmentInfo] = {}
        for name, share in self.shares.items():
            assert isinstance(share.data, AssignmentInfo)
            sent[name] = share.data
        return sent

    def cooperative(self, name: str) -> bool:
        return COOPERATIVE in self.members[name].supports

    def receive(self, name: str) -> AssignmentResult:
        share = self.shares[name]
        assignment_result = self.members[name].assigned(self.memories[name], share)
        self.memories[name], self.owned[name] = assignment_result.memory, share.partitions
        return assignment_result

    def rebalance(self, leader: str) -> dict[str, AssignmentResult]:
        self.lead(leader)
        return {each: self.receive(each) for each in self.members}

    def rounds(self, leader: str, most: int = 6) -> int:
        """Rebalances until nobody asks for another one."""
        for number in range(1, most):
            assignment_result = self.rebalance(leader)
            gave_up = any(self.waits(each) for each in self.members)
            if not gave_up and all(each.rejoin.when == "never" for each in assignment_result.values()):
                return number
        raise AssertionError(f"not at rest after {most} rounds")

    def waits(self, name: str) -> bool:
        share = self.shares[name]
        return isinstance(share.data, AssignmentInfo) and share.data.next_ms == 0

    @property
    def used(self) -> list[int]:
        return [each.used for each in self.memories.values()]

    @property
    def active(self) -> list[TaskId]:
        return sorted((task for each in self.memories.values() for task in each.active), key=order)


ALL = [TaskId(0, number) for number in range(3)]


def assignment_result(release: str, used: int, info: AssignmentInfo, fitted: bool = True) -> AssignmentResult:
    """By a member that runs 0_7 and is given 0_0."""
    member = binary(Settings(release, STATELESS, process_of("a")), NEWEST, fitted)
    memory = Memory(used, active=(TaskId(0, 7),))
    return member.assigned(memory, Share((("t", 0),), written(replace(info, active=(TaskId(0, 0),)))))


NEW, OLD = (TaskId(0, 0),), (TaskId(0, 7),)
