"""The members of both protocols: of classic groups, and of consumer groups (KIP-848)."""

import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.failover.brokers import SESSION_MS
from kipcheck.conformance.live.failover.members import PARKED_S, REBALANCE_MS, TOPIC, Cluster, Member
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.failover.ops import PARTITIONS, Protocol
from kipcheck.conformance.protocols.group import ops as group
from kipcheck.conformance.protocols.migration.metadata import metadata, partitions_of, printed

CLASSIC, CONSUMER = "classic", "consumer"
JOIN_VERSION, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION, COMMIT_VERSION = 5, 3, 3, 3, 7
"""Those that all releases from 3.3 on have."""
CONSUMER_VERSION, CONSUMER_COMMIT_VERSION = 1, 9
"""Heartbeats whose member ids are the client's, and commits with epochs of members: from 4.0 on."""
JOINS, LEAVES = 0, -1
ASSIGNOR: Final = "range"
SUBSCRIBED: Final = metadata((TOPIC,), ())


def member(name: str, protocol: Protocol, cluster: Cluster) -> Member:
    return ClassicMember(name, cluster) if protocol == CLASSIC else ConsumerMember(name, cluster)


@dataclass(slots=True)
class ClassicMember(Member):
    """An eager one: it gives everything up before it joins."""

    protocol = CLASSIC
    commit_version = COMMIT_VERSION
    removing = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION})

    def epoch_in(self, answer: Any, epoch: int) -> int:
        return answer.generation if isinstance(answer, group.Joined) else epoch

    def forget(self) -> None:
        Member.forget(self)
        self.id = ""

    async def join(self) -> None:
        self.give_up(self.partitions)
        lists = ((ASSIGNOR, SUBSCRIBED),)
        request = group.Join(JOIN_VERSION, self.id, None, CONSUMER, lists, SESSION_MS, REBALANCE_MS)
        found = await self.ask(request, group.Joined, JOIN_VERSION, within_s=PARKED_S, joins=True, to=0)
        if found.error == KafkaError.MEMBER_ID_REQUIRED:
            self.id = found.member
            return
        if found.error:
            return
        self.id, self.epoch = found.member, found.generation
        await self._sync(tuple(id for id, _, _ in found.members) if found.leader == self.id else ())

    async def _sync(self, members: tuple[str, ...]) -> None:
        """``members``: of the leader, those that it assigns partitions to."""
        shares = {id: [*range(PARTITIONS)][at :: len(members)] for at, id in enumerate(sorted(members))}
        assignments = tuple((id, printed(tuple((TOPIC, each) for each in share))) for id, share in shares.items())
        request = group.Sync(SYNC_VERSION, self.id, None, self.epoch, assignments)
        found = await self.ask(request, group.Synced, SYNC_VERSION, within_s=PARKED_S, to=0)
        if not found.error:
            self.joined = True
            self.take(each for _, each in partitions_of(str(found.assignment)))

    async def beat(self) -> None:
        sent_ms = self.cluster.journal.ms()
        request = group.Heartbeat(BEAT_VERSION, self.id, None, self.epoch)
        found = await self.ask(request, group.Beat, BEAT_VERSION, to=0)
        if not found.error:
            self.beaten_ms = sent_ms
        elif found.error == KafkaError.REBALANCE_IN_PROGRESS:
            self.joined = False

    async def send_leave(self) -> None:
        request = group.Leave(LEAVE_VERSION, ((self.id, None),))
        await self.ask(request, group.Left, LEAVE_VERSION, to=0)


@dataclass(slots=True)
class ConsumerMember(Member):
    protocol = CONSUMER
    commit_version = CONSUMER_COMMIT_VERSION
    removing = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH})
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _whole: bool = True
    """Whether the next heartbeat has all fields: it may be the first one that a coordinator gets."""
    _last: int = 0
    """The node of the last heartbeat."""

    def epoch_in(self, answer: Any, epoch: int) -> int:
        return answer.epoch if isinstance(answer, HeartbeatAnswer) else epoch

    async def join(self) -> None:
        self.epoch, self._whole = JOINS, True
        await self.beat()

    async def beat(self) -> None:
        sent_ms, before = self.cluster.journal.ms(), self.epoch
        whole = self._whole or self._last != self.node
        self._last = self.node
        owned = tuple((TOPIC, each) for each in self.partitions)
        request = Heartbeat(
            self.id, self.epoch, rebalance_ms=REBALANCE_MS if whole else -1, topics=(TOPIC,) if whole else None,
            owned=owned if whole else None,
        )  # fmt: skip
        found = await self.ask(request, HeartbeatAnswer, CONSUMER_VERSION, joins=before == JOINS)
        if found.error:
            return
        self._whole = False
        self.epoch = found.epoch
        self.joined = True
        if before == found.epoch:
            self.beaten_ms = sent_ms
        if found.assignment is not None:
            given = tuple(sorted(partition for _, partition in found.assignment))
            self._whole = given != self.partitions  # what it owns now is confirmed
            if self._whole or before != found.epoch:
                self.take(given)

    async def send_leave(self) -> None:
        await self.ask(Heartbeat(self.id, LEAVES), HeartbeatAnswer, CONSUMER_VERSION)
