"""A group of processes on a real broker: starts and ends its members, and records what passes and what they print."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator import admin
from kipcheck.conformance.live.members.processes import Event, MemberProcess, Running
from kipcheck.conformance.live.members.traffic import Answered, GroupTraffic, Sent
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker

SESSION_MS: Final = 6_000
"""Long enough that no live member is removed on a busy machine. A group waits so long for a member that was killed."""
HEARTBEAT_MS: Final = 300
REBALANCE_MS: Final = 60_000
SETTINGS: Final = {"group.min.session.timeout.ms": "100", "group.initial.rebalance.delay.ms": "0"}
STREAMS_SETTINGS: Final = {
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.session.timeout.ms": str(SESSION_MS),
    "group.streams.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.streams.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.streams.initial.rebalance.delay.ms": "0",
}
"""Of brokers with streams groups, which state the times of their members."""
CREATED_S: Final = 30.0
Begin: TypeAlias = Callable[[str, Callable[[Event], None]], Awaitable[Running]]
"""Starts a member: of its name, and of what gets its reports. Errors: OSError."""


@dataclass(slots=True)
class Cluster:
    """A broker whose traffic is read. ``groups``: what gets the traffic of a group, by its id."""

    port: int
    groups: dict[str, Callable[[Sent | Answered], None]] = field(default_factory=dict)
    expire: Callable[[str, str], None] | None = None
    """Removes a process from a group, given the id of the group and its name, as the end of its session does; None: it
    cannot."""

    @property
    def bootstrap(self) -> str:
        return f"{kafka_broker.HOST}:{self.port}"

    def take(self, passed: Sent | Answered) -> None:
        group = passed.group if isinstance(passed, Sent) else passed.sent.group
        if group in self.groups:
            self.groups[group](passed)


@asynccontextmanager
async def behind_proxy(broker: kafka_broker.Broker, topics: Mapping[str, int]) -> AsyncIterator[Cluster]:
    """The broker with these topics. Errors: ``Unavailable``, ``Closed``, ``Garbled``."""
    connections = Connections(kafka_broker.HOST, broker.port)
    try:
        versions = await admin.versions_of(connections)
        if not all([await admin.partitions_of(topic, connections, versions) for topic in topics]):
            await admin.create(topics, connections)
        until = time.monotonic() + CREATED_S
        while [await admin.partitions_of(topic, connections, versions) for topic in topics] != [*topics.values()]:
            if time.monotonic() > until:
                raise Unavailable(f"the broker does not create topics within {CREATED_S:.0f} s")
            await asyncio.sleep(0.1)
    finally:
        await connections.close()
    found = Cluster(0)
    traffic = GroupTraffic(found.take)
    proxy = Proxy((kafka_broker.HOST, broker.port), traffic)
    traffic.start_s = time.monotonic() - proxy.now()
    found.port = (await proxy.listen(kafka_broker.HOST, 0))[1]
    try:
        yield found
    finally:
        await proxy.close()


@dataclass(slots=True)
class Group:
    """One group, and what was observed of it."""

    cluster: Cluster
    id: str = field(default_factory=lambda: f"kipcheck-{uuid.uuid4().hex[:12]}")
    observed: list[Event | Sent | Answered] = field(default_factory=list)
    _processes: dict[str, Running] = field(default_factory=dict)
    _started: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster.groups[self.id] = self.observed.append

    def runs(self, member: str) -> bool:
        found = self._processes.get(member)
        return found is not None and not found.ended.done()

    async def start(self, member: str, command: Callable[[str], tuple[Sequence[str], Mapping[str, str]]]) -> None:
        """``command``: of the name of the process, its arguments and its environment. Errors: OSError."""
        await self.begin(member, lambda name, take: MemberProcess.start(name, *command(name), take))

    async def begin(self, member: str, begin: Begin) -> None:
        """Errors: as of ``begin``."""
        self._started[member] = self._started.get(member, 0) + 1
        name = self.name_of(member)
        self._processes[member] = await begin(name, self.observed.append)

    def name_of(self, member: str) -> str:
        """The name of its last process."""
        return f"{member}-{self._started[member]}"

    async def stop(self, member: str) -> None:
        """No effect if it does not run."""
        if self.runs(member):
            await self._processes[member].stop()

    async def kill(self, member: str) -> None:
        """No effect if it does not run."""
        if self.runs(member):
            await self._processes[member].kill()

    async def close(self) -> None:
        """Kills all that runs, and reads what was printed."""
        await asyncio.gather(*(process.kill() for process in self._processes.values()))
        self.cluster.groups.pop(self.id, None)
