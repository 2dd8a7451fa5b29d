"""A cluster of three released brokers, each of which is a controller too, whose nodes fail and change their release."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kipcheck.conformance.live.awaited import POLLS_S, awaited
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.forms import form_of
from kipcheck.conformance.live.coordinator import admin
from kipcheck.conformance.protocols.failover.ops import NODES
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops.kraft import UPGRADE, TypedUpdate
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.toolchains import kafka_broker, kafka_nodes

SESSION_MS: Final = 6_000
"""Of members with the coordinator, and of brokers with the controller."""
HEARTBEAT_MS: Final = 500
OFFSETS: Final = "__consumer_offsets"
OFFSETS_PARTITIONS: Final = 3
SETTINGS: Final[Mapping[str, str]] = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "1000",
    "auto.leader.rebalance.enable": "false",
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
JAVA: Final = ("-Xmx256m",)
REGISTERS_MS: Final = 180_000
"""A node that was killed registers again only when its session has ended."""
ANSWERS_S: Final = 2.0
SETTLES_S: Final = 90.0
"""How long replicas may take to be in sync, and the quorum to have a leader, on a busy machine."""
ELECT_LEADERS, REASSIGN = 43, 45
UNREACHABLE: Final = (Closed, Garbled, OSError, TimeoutError)
T = TypeVar("T")


@dataclass(slots=True)
class Brokers:
    """``newer``, ``older``: the releases of a roll; equal for a cluster of one release."""

    newer: str
    older: str
    releases: dict[int, str] = field(default_factory=dict)
    """By node, those that it runs, or ran last."""
    paused: int | None = None
    down: int | None = None
    raised: bool = False
    _stack: ExitStack = field(default_factory=ExitStack)
    _nodes: kafka_nodes.Nodes | None = None
    _open: dict[int, Connections] = field(default_factory=dict)

    @property
    def nodes(self) -> kafka_nodes.Nodes:
        assert self._nodes is not None, "no cluster was started"
        return self._nodes

    @property
    def ports(self) -> dict[int, int]:
        return {number: self.nodes.nodes[number].port for number in NODES}

    @property
    def active(self) -> list[int]:
        return [number for number in NODES if number not in (self.paused, self.down)]

    @property
    def is_new(self) -> bool:
        """Whether a conversation can begin as on a new cluster."""
        runs = self._nodes is not None and self.active == [*NODES]
        return runs and not self.raised and set(self.releases.values()) == {self.older}

    async def start(self, topics: Mapping[str, int]) -> None:
        """A new cluster with these topics. Errors: ``Broken``, ``Unavailable``, ``Closed``, ``Garbled``."""
        try:
            await self._start(topics)
        except Broken:
            await self._start(topics)  # another program may have taken a port meanwhile

    async def _start(self, topics: Mapping[str, int]) -> None:
        await self.close()
        rules = Rules.of(self.older)
        form = form_of(rules, rules.newest, rules.defaults())
        roles = dict.fromkeys(NODES, kafka_nodes.BOTH)
        made = kafka_nodes.cluster(form.level, roles, settings=SETTINGS, java=JAVA)
        self._nodes = self._stack.enter_context(made)
        self.releases = dict.fromkeys(NODES, self.older)

        def started() -> None:
            for number in NODES:
                self.nodes.start(number, self.older, REGISTERS_MS)
            for number in NODES:
                self.nodes.wait(number)

        await asyncio.to_thread(started)
        versions = await admin.versions_of(self.connected(NODES[0]))
        await self._until(self._all_registered, "not all nodes have registered")
        await admin.create(topics, self.connected(NODES[0]))

        async def created() -> bool | None:
            sizes = [await admin.partitions_of(each, self.connected(NODES[0]), versions) for each in topics]
            return True if sizes == [*topics.values()] else None

        await self._until(created, "the cluster does not create topics")
        await self.in_sync()

    def connected(self, number: int) -> Connections:
        if number not in self._open:
            port = self.nodes.nodes[number].port
            self._open[number] = Connections(kafka_broker.HOST, port, answered_s=requests.TIMEOUT_MS / 1000)
        return self._open[number]

    async def _metadata(self, topics: list[dict[str, Any]] | None) -> dict[str, Any]:
        """As the first node that answers has it. Errors: ``Closed`` if none does."""
        for number in self.active:
            with suppress(*UNREACHABLE):
                asked = {"topics": topics, "allowAutoTopicCreation": False}
                return await asyncio.wait_for(self.connected(number).ask("Metadata", 5, "kipcheck", asked), ANSWERS_S)
        raise Closed("no node answers")

    async def _all_registered(self) -> bool | None:
        found = await self._metadata([])
        return True if len(found["brokers"]) == len(NODES) else None

    async def partitions(self) -> list[dict[str, Any]]:
        """Those of the topic of offsets, which a look for a coordinator creates. Errors: ``Closed``."""
        found = await self._metadata([{"name": OFFSETS}])
        rows = [row for each in found["topics"] if not each["errorCode"] for row in each["partitions"]]
        return sorted(rows, key=lambda row: int(row["partitionIndex"]))

    async def in_sync(self) -> None:
        """Waits until every replica of the topic of offsets on a node that runs is in sync, and has a leader: then no
        single fault costs data, or stops the topic for long. Errors: ``Broken``."""

        async def are() -> bool | None:
            with suppress(*UNREACHABLE):
                await self.coordinator("kipcheck-ready", 1)
            rows = await self.partitions()
            wanted = {*self.active}
            right = [each["leaderId"] in wanted and {*each["isrNodes"]} >= wanted for each in rows]
            return True if len(right) == OFFSETS_PARTITIONS and all(right) else None

        await self._until(are, f"the replicas of {OFFSETS} are not in sync")

    async def coordinator(self, group: str, tries: int = 100) -> int:
        """The node that the first one that answers names. Errors: ``Closed`` if none does."""
        by_port = {port: number for number, port in self.ports.items()}
        for _ in range(tries):
            for number in self.active:
                with suppress(*UNREACHABLE):
                    asked = admin.coordinator_of(group, self.connected(number))
                    _, port = await asyncio.wait_for(asked, ANSWERS_S)
                    return by_port[port]
                await self._forget(number)
            await asyncio.sleep(POLLS_S)
        raise Closed(f"no node names a coordinator of {group}")

    # Faults

    async def chosen(self, which: str, group: str) -> int:
        found = await self.coordinator(group)
        return found if which == "coordinator" else next(each for each in self.active if each != found)

    async def kill(self, number: int) -> None:
        await self._forget(number)
        await asyncio.to_thread(self.nodes.kill, number)
        self.down = number

    async def stop(self, number: int) -> None:
        await self._forget(number)
        await asyncio.to_thread(self.nodes.stop, number)
        self.down = number

    async def pause(self, number: int) -> None:
        await self._forget(number)
        self.nodes.pause(number)
        self.paused = number

    def resume(self) -> int:
        number, self.paused = self.paused, None
        assert number is not None
        self.nodes.resume(number)
        return number

    async def revive(self, release: str | None = None) -> int:
        """Starts the node that is down. Errors: ``Broken``."""
        number = self.down
        assert number is not None
        self.releases[number] = release or self.releases[number]

        def started() -> None:
            self.nodes.start(number, self.releases[number], REGISTERS_MS)
            self.nodes.wait(number)

        await asyncio.to_thread(started)
        self.down = None
        return number

    async def elect(self, group: str) -> int:
        """Makes another node the preferred leader of the group's partition, and elects it. Errors: ``Broken``."""
        partition = admin.partition_of(group, OFFSETS_PARTITIONS)
        row = (await self.partitions())[partition]
        leader = row["leaderId"]
        follower = next(each for each in self.active if each != leader)
        replicas = [follower, *(each for each in row["replicaNodes"] if each != follower)]
        await self._reassigned(partition, replicas)

        async def leads() -> bool | None:
            found = (await self.partitions())[partition]
            if found["leaderId"] == follower:
                return True
            if found["replicaNodes"] == replicas:
                body = struct.pack(">i", 1) + admin.text(OFFSETS) + struct.pack(">iii", 1, partition, 15_000)
                with suppress(*UNREACHABLE):
                    await self.connected(self.active[0]).ask_plain(ELECT_LEADERS, 0, body)
            return None

        await self._until(leads, f"node {follower} is not elected")
        return follower

    async def _reassigned(self, partition: int, replicas: list[int]) -> None:
        """AlterPartitionReassignments 0, in its compact form. Errors: ``Closed``, ``Garbled``."""
        name = OFFSETS.encode()
        numbers = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", each) for each in replicas)
        rows = b"\x02" + struct.pack(">i", partition) + numbers + b"\x00"
        body = struct.pack(">i", 15_000) + b"\x02" + bytes([len(name) + 1]) + name + rows + b"\x00\x00"
        await self.connected(self.active[0]).ask_flexible(REASSIGN, 0, body)

    async def raise_level(self) -> str:
        """What became of it: the level, or the error of the controller. Errors: ``Closed``, ``Garbled``."""
        level = Rules.of(self.newer).newest
        wanted = [TypedUpdate(METADATA, level, UPGRADE)]
        found = await requests.update(self.connected(self.active[0]), 1, wanted, validate_only=False)
        wrong = [each for each in (found.error, *(row.error for row in found.results)) if each != NONE]
        if wrong:
            return f"metadata.version stays: {wrong[0]}"
        self.raised = self.newer != self.older
        return f"metadata.version {level}"

    async def _until(self, ask: Callable[[], Awaitable[T | None]], why: str) -> T:
        """The first answer that is not None, of nodes that may not answer at first. Errors: as ``awaited``."""

        async def answered() -> T | None:
            with suppress(*UNREACHABLE):
                return await ask()
            return None

        return await awaited(answered, why, SETTLES_S)

    async def _forget(self, number: int) -> None:
        if (found := self._open.pop(number, None)) is not None:
            await found.close()

    async def close(self) -> None:
        for number in [*self._open]:
            await self._forget(number)
        for number in sorted(self.nodes.running) if self._nodes is not None else ():
            with suppress(ProcessLookupError):  # it has ended by itself
                self.nodes.kill(number)  # a paused one would not end
        self._stack.close()
        self._nodes, self.paused, self.down, self.raised = None, None, None, False
