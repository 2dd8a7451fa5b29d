"""Plays conversations of ``failover`` with a cluster that kipcheck starts: members run side by side with the steps."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, assert_never

from kipcheck.conformance.core.operations.wire_form import Context, Value
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Lost, Observation, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator import admin
from kipcheck.conformance.live.failover.brokers import Brokers
from kipcheck.conformance.live.failover.journal import Journal
from kipcheck.conformance.live.failover.members import TOPIC, Cluster, CoordinatorLost, Member
from kipcheck.conformance.live.failover.protocols import CONSUMER, ClassicMember, member
from kipcheck.conformance.protocols.failover import ops
from kipcheck.conformance.protocols.group.ops import VALUES
from kipcheck.conformance.protocols.migration.clients import blobs
from kipcheck.conformance.targets.protocol import Broken, observed

LIMIT_S: Final = ops.STABLE_MS / 1000
POLLS_S: Final = 0.1
PROTOCOL: Final = "protocol"
LIMITS: Final = {PROTOCOL: "releases before 4.0 have no consumer groups as they were released"}


@dataclass(slots=True)
class Conversation:
    brokers: Brokers
    group: str
    topic: str
    has_consumers: bool
    """Whether both releases have the protocol of KIP-848."""
    journal: Journal = field(default_factory=Journal)
    _cluster: Cluster = field(init=False)
    _members: dict[str, Member] = field(default_factory=dict)
    _numbers: int = 0

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step; after one that the cluster did not survive, none is played."""
        events = [ops.OPERATIONS.event_of(step) for step in steps]
        if not self.has_consumers and any(isinstance(each, ops.Join) and each.protocol == CONSUMER for each in events):
            return (Unsupported(LIMITS[PROTOCOL], PROTOCOL),) * len(events)
        found: list[Observation] = []
        self._cluster = Cluster(self.group, self.topic, self.brokers.ports, await self._context(), self.journal)
        try:
            for event in events:
                if found and isinstance(found[-1], Lost):
                    found.append(Lost("an earlier step failed"))
                    continue
                try:
                    await self._step(event)
                    found.append(observed(ops.OPERATIONS.answer_of(self.journal.taken())))
                except (Closed, Garbled, Broken) as why:
                    found.append(Lost(str(why)))
        finally:
            await asyncio.gather(*(each.crash() for each in self._members.values()))
        return tuple(found)

    async def _context(self) -> Context:
        first = self.brokers.connected(self.brokers.active[0])
        id = await admin.id_of(self.topic, first, await admin.versions_of(first))
        topics = Value(lambda own: self.topic, lambda name: TOPIC)
        values = {
            "topic": topics,
            "blob": blobs(topics),
            "topic_id": Value(lambda own: id, lambda there: TOPIC),
            "session": Value(int, int),
            "timeout": Value(int, int),
        }
        return Context({**VALUES, **values}, {"group": self.group})

    async def _step(self, event: ops.Event) -> None:
        """Errors: ``Broken``, ``Closed``, ``Garbled``."""
        match event:
            case ops.Join(name, protocol):
                if name not in self._members:
                    self._members[name] = member(name, protocol, self._cluster)
                    self._members[name].start()
            case ops.Leave(name):
                if (gone := self._members.pop(name, None)) is not None:
                    await gone.leave()
            case ops.Crash(name):
                if (gone := self._members.pop(name, None)) is not None:
                    await gone.crash()
            case ops.Pass(ms):
                await asyncio.sleep(ms / 1000)
            case ops.Settle():
                await self._settle()
            case _:
                await self._hit(event)

    # Nodes

    async def _hit(self, event: ops.NodeFault | ops.Resume | ops.Start | ops.Elect | ops.Roll | ops.Raise) -> None:
        brokers = self.brokers
        match event:
            case ops.Kill(which) | ops.Stop(which) | ops.Pause(which):
                if brokers.paused is None and brokers.down is None:
                    await brokers.in_sync()
                    await self._fault(event, await brokers.chosen(which, self.group))
            case ops.Resume():
                if brokers.paused is not None:
                    self._note("resumes", brokers.resume())
            case ops.Start():
                if brokers.down is not None:
                    self._note("starts", await brokers.revive())
            case ops.Elect():
                if brokers.paused is None and brokers.down is None:
                    await brokers.in_sync()
                    self._note("elected", await brokers.elect(self.group))
            case ops.Roll():
                await self._roll()
            case ops.Raise():
                self._note(await brokers.raise_level(), brokers.active[0])
            case _:
                assert_never(event)

    async def _fault(self, event: ops.NodeFault, number: int) -> None:
        match event:
            case ops.Kill():
                self._note("killed", number)
                await self.brokers.kill(number)
            case ops.Stop():
                await self.brokers.stop(number)
                self._note("stopped", number)
            case ops.Pause():
                await self.brokers.pause(number)
                self._note("paused", number)

    async def _roll(self) -> None:
        brokers = self.brokers
        if brokers.paused is not None or brokers.down is not None:
            return
        await brokers.in_sync()
        old = [number for number in ops.NODES if brokers.releases[number] != brokers.newer]
        number = old[0] if old else ops.NODES[self._numbers % len(ops.NODES)]
        self._numbers += 1
        await brokers.stop(number)
        self._note("stopped", number)
        await brokers.revive(brokers.newer)
        self._note("starts", number)

    def _note(self, what: str, number: int) -> None:
        self.journal.events.append(ops.Hit(what, number, self.brokers.releases[number], self.journal.ms()))

    # The group

    async def _settle(self) -> None:
        begun_ms, until, late_s = self.journal.ms(), now() + LIMIT_S, 0.0
        while why := self._unstable(begun_ms):
            if now() > until:
                at_ms = self.journal.ms()
                took_ms, late_ms = at_ms - begun_ms, round(late_s * 1000)
                self.journal.events.append(ops.Restless(why, took_ms, late_ms, at_ms))
                return
            asked_s = now()
            await asyncio.sleep(POLLS_S)
            late_s = max(late_s, now() - asked_s - POLLS_S)
        at_ms = self.journal.ms()
        self.journal.events.append(ops.Rests(len(self._members), at_ms - begun_ms, at_ms))
        await self._read(until)

    def _unstable(self, begun_ms: int) -> str:
        """Why the group is not stable; empty: it is."""
        members = [*self._members.values()]
        for each in members:
            each.check()
        if waiting := [each.name for each in members if not each.joined]:
            return f"{', '.join(waiting)} has no assignment"
        if late := [each.name for each in members if each.beaten_ms < begun_ms]:
            return f"no heartbeat of {', '.join(late)} is accepted"
        if len({each.epoch for each in members}) > 1:
            return "members are in " + ", ".join(f"epoch {each.epoch} ({each.name})" for each in members)
        owned = sorted(number for each in members for number in each.partitions)
        return "" if not members or owned == [*range(ops.PARTITIONS)] else f"partitions {owned} are assigned"

    async def _read(self, until: float) -> None:
        """Reads the offsets of the group as one that is no member does."""
        reader = ClassicMember("reader", self._cluster)
        try:
            while now() < until:
                with suppress(CoordinatorLost, TimeoutError):
                    reader.node = await self.brokers.coordinator(self.group)
                    return await reader.fetch()
                await asyncio.sleep(POLLS_S)
        finally:
            await reader.crash()
