"""Members of a group on a cluster: each finds its coordinator, joins, beats and commits by itself until it is stopped.

It does what a consumer does: where a request has no answer, or the node does not coordinate the group, it looks for the
coordinator at all nodes and reads the offsets of the group before it goes on. It gives its partitions up before it
joins again, and as soon as an assignment lacks them.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kipcheck.conformance.core.operations.wire_form import Context
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller.requests import name_of
from kipcheck.conformance.live.coordinator import admin
from kipcheck.conformance.live.coordinator.exchange import answer_of
from kipcheck.conformance.live.failover.journal import Journal
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.failover import ops
from kipcheck.conformance.protocols.group import ops as group_ops
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.wire.bodies import api_of

TOPIC: Final = "t"
BEAT_S: Final = 0.5
ANSWERS_S: Final = 3.0
"""For an answer to a request that a coordinator does not park."""
REBALANCE_MS: Final = 6_000
PARKED_S: Final = REBALANCE_MS / 1000 + 5
"""For JoinGroup and SyncGroup, as Kafka's consumer has it: the rebalance timeout and 5 s."""
RETRY_S: Final = 0.2
SEARCH_S: Final = 1.5
"""For a node to name a coordinator."""
LOOKS_MS: Final = 12_000
"""So long it commits nothing where it reads older offsets than it has committed."""
FETCH_VERSION: Final = 7
"""Of OffsetFetch: the last one with one group."""
NO_ANSWER: Final = "no answer"
GONE: Final = (Closed, Garbled, OSError, TimeoutError)
ELSEWHERE: Final = frozenset({
    KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
})  # fmt: skip


class CoordinatorLost(Exception):
    """The node does not answer, or does not coordinate the group."""


class Removed(Exception):
    """The coordinator does not know the member, or its epoch."""


@dataclass(slots=True)
class Cluster:
    """How the members of one group reach the nodes. ``ports``: by node, in the order in which they are asked."""

    group: str
    topic: str
    """The name of the topic on the brokers."""
    ports: Mapping[int, int]
    context: Context
    journal: Journal


@dataclass(slots=True)
class Member(ABC):
    name: str
    cluster: Cluster
    id: str = ""
    epoch: int = -1
    partitions: tuple[int, ...] = ()
    joined: bool = False
    beaten_ms: int = -1
    """When its last heartbeat was sent that was accepted in the epoch that it is in."""
    node: int = 0
    committed: dict[int, int] = field(default_factory=dict)
    """By partition, its last commit that was accepted."""
    read: dict[int, int] = field(default_factory=dict)
    """By partition, the offset that it read last."""
    looks_until_ms: int = 0
    _open: dict[int, Connections] = field(default_factory=dict)
    _task: "asyncio.Task[None] | None" = None

    # Life

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._live())

    def check(self) -> None:
        """Raises what ended it, which is an error of kipcheck's: by itself it goes on for ever."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def crash(self) -> None:
        """Ends without a request."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.give_up(self.partitions)
        for each in self._open.values():
            await each.close()

    async def leave(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.give_up(self.partitions)
        with suppress(CoordinatorLost, Removed):
            if self.id and self.node:
                await self.send_leave()
        await self.crash()

    async def _live(self) -> None:
        while True:
            await self._find()
            with suppress(CoordinatorLost):
                await self.fetch()
                self.looks_until_ms = self.cluster.journal.ms() + LOOKS_MS
                while True:
                    try:
                        await self._round()
                    except Removed:
                        self.forget()
                        await asyncio.sleep(RETRY_S)

    async def _round(self) -> None:
        if not self.joined:
            await self.join()
        else:
            await self.beat()
            if self.joined and self.partitions:
                await (self.fetch() if self._lacks_commits() else self.commit())
        await asyncio.sleep(BEAT_S if self.joined else RETRY_S)

    def _lacks_commits(self) -> bool:
        """Whether the coordinator gives older offsets than this member committed. Later looks show if they are lost."""
        late = any(self.read.get(each, -1) < self.committed.get(each, -1) for each in self.partitions)
        return late and self.cluster.journal.ms() < self.looks_until_ms

    async def _find(self) -> None:
        """Asks all nodes in turn, until one names the coordinator."""
        by_port = {port: number for number, port in self.cluster.ports.items()}
        while True:
            for number in self.cluster.ports:
                try:
                    asked = admin.coordinator_of(self.cluster.group, self.connected(number))
                    _, port = await asyncio.wait_for(asked, SEARCH_S)
                    self.node = by_port[port]
                    return
                except GONE:
                    await self._drop(number)
            await asyncio.sleep(RETRY_S)

    def connected(self, number: int) -> Connections:
        if number not in self._open:
            self._open[number] = Connections(kafka_broker.HOST, self.cluster.ports[number])
        return self._open[number]

    async def _drop(self, number: int) -> None:
        if (found := self._open.pop(number, None)) is not None:
            await found.close()

    # Requests

    async def ask(
        self, request: Any, answer: type, version: int, *, within_s: float = ANSWERS_S, joins: bool = False,
        offset: int | None = None, **others: Any,
    ) -> Any:  # fmt: skip
        """The answer, which is noted. Errors: ``CoordinatorLost``, ``Removed``."""
        journal, node, sent_ms, epoch = self.cluster.journal, self.node, self.cluster.journal.ms(), self.epoch
        api, had, error = api_of(type(request)), self.partitions, NO_ANSWER
        found = None
        try:
            sent = SentRequest(self.name, request, answer)
            asked = answer_of(self.connected(node), sent, version, self.cluster.context, **others)
            found = await asyncio.wait_for(asked, within_s)
            error = name_of(found.error) if found.error else ""
        except GONE as why:
            error = f"{NO_ANSWER}: {why}" if str(why) else NO_ANSWER
            await self._drop(node)
        finally:  # a member that ends meanwhile does not learn what became of it
            at_ms = journal.ms()
            if found is None or error:
                journal.events.append(ops.Refused(self.name, api, node, epoch, had, error, sent_ms, at_ms, offset))
        if found is None or found.error in ELSEWHERE:
            raise CoordinatorLost
        if found.error in self.removing:
            raise Removed
        if found.error:
            return found
        epoch = self.epoch_in(found, epoch)
        journal.events.append(
            ops.Accepted(self.name, self.protocol, api, node, epoch, had, sent_ms, at_ms, offset, joins)
        )
        return found

    async def fetch(self) -> None:
        """Reads all offsets of the group. Errors: ``CoordinatorLost``."""
        journal, sent_ms = self.cluster.journal, self.cluster.journal.ms()
        request = group_ops.Fetch(FETCH_VERSION)
        sent = SentRequest(self.name, request, group_ops.Fetched)
        try:
            asked = answer_of(self.connected(self.node), sent, FETCH_VERSION, self.cluster.context, to=0)
            found = await asyncio.wait_for(asked, ANSWERS_S)
        except GONE:
            await self._drop(self.node)
            raise CoordinatorLost from None
        if found.error:
            error, at_ms = name_of(found.error), journal.ms()
            journal.events.append(
                ops.Refused(self.name, "OffsetFetch", self.node, self.epoch, self.partitions, error, sent_ms, at_ms)
            )
            await asyncio.sleep(RETRY_S)
            raise CoordinatorLost
        offsets = tuple((partition, offset) for _, partition, offset, *_ in found.offsets if offset >= 0)
        self.read = dict(offsets)
        journal.events.append(ops.Fetched(self.name, self.node, offsets, sent_ms, journal.ms()))

    async def commit(self) -> None:
        offset = self.cluster.journal.offset()
        rows = tuple((TOPIC, each, offset, *group_ops.NO_MORE) for each in self.partitions)
        request = group_ops.Commit(self.commit_version, self.id, None, self.epoch, rows)
        found = await self.ask(request, group_ops.Committed, self.commit_version, offset=offset, to=0)
        if not found.error:
            self.committed |= dict.fromkeys(self.partitions, offset)

    # Partitions

    def give_up(self, partitions: Iterable[int]) -> None:
        gone = {*partitions} & {*self.partitions}
        if gone:
            self.partitions = tuple(each for each in self.partitions if each not in gone)
            journal = self.cluster.journal
            journal.events.append(ops.Gave(self.name, tuple(sorted(gone)), journal.ms()))

    def take(self, partitions: Iterable[int]) -> None:
        """A new assignment: what it lacks is given up."""
        wanted, journal = tuple(sorted(partitions)), self.cluster.journal
        self.give_up({*self.partitions} - {*wanted})
        self.partitions = wanted
        journal.events.append(ops.Assigned(self.name, self.node, self.epoch, wanted, journal.ms()))

    def forget(self) -> None:
        """It is no member any more."""
        self.give_up(self.partitions)
        self.joined = False

    # What the protocols differ in

    protocol: ClassVar[str]
    commit_version: ClassVar[int]
    removing: ClassVar[frozenset[int]]
    """Errors after which it joins anew."""

    @abstractmethod
    def epoch_in(self, answer: Any, epoch: int) -> int:
        """That of an answer; without one that of the request."""

    @abstractmethod
    async def join(self) -> None: ...
    @abstractmethod
    async def beat(self) -> None: ...
    @abstractmethod
    async def send_leave(self) -> None: ...
