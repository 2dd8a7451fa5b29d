"""Plays a conversation with the leader of a share partition (KIP-932) of a running broker, in real time.

It has a topic of its own with one partition, and each client a connection of its own. A member that sends nothing but
its first heartbeats keeps the group: only the partitions of a group with members have state.
"""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Context, Inexpressible, Value
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator import admin
from kipcheck.conformance.live.coordinator.consumer_group_time import Deadlines
from kipcheck.conformance.live.coordinator.exchange import answer_of, exchange
from kipcheck.conformance.live.coordinator.settings import LIMITS, VERSIONS, Setting
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.live.coordinator.timed_play import TimedConversation
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled.terms import LEAVING
from kipcheck.conformance.protocols.share_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.share_partition import ops
from kipcheck.conformance.protocols.share_partition.clients import ShareConsumers
from kipcheck.conformance.protocols.share_partition.messages import WAIT_MS, ShareFetch
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT
from kipcheck.conformance.wire import record_batches

KEEPER: Final = "k"
INITIALIZES_S: Final = 20.0
"""How long the broker may take to prepare the state of a partition."""
POLL_INTERVAL_S: Final = 0.1
NOTICES_S: Final = 0.5
"""How long a broker may take to release what a session had, after it was closed or its connection ended."""
PRODUCE_VERSION: Final = 7
ACKS_ALL: Final = -1


@dataclass
class LockDeadlines(Deadlines):
    """The locks of records."""

    def follow(self, held: Mapping[int, int], locked: bool, at: Span) -> None:
        """``held``: offsets of records that members have, and the time left for each. ``locked``: some are new."""
        known = {timer for timer in self._armed if int(timer[0]) not in held}
        self._drop(known)
        for offset, left_ms in held.items():
            if locked and left_ms == self.session_ms:
                self._armed[str(offset), "lock"] = self._after(left_ms, at)


@dataclass(slots=True)
class ShareConversation(TimedConversation):
    """With the coordinator of the group, which leads the partition."""

    clients: ShareConsumers
    _deadlines: LockDeadlines = field(init=False)
    _own: dict[str, Connections] = field(default_factory=dict)
    _id: uuid.UUID | None = None

    def __post_init__(self) -> None:
        given = self.setting
        self._deadlines = LockDeadlines(self.clients.known.config.lock_ms, given.scale.times, given.margin_s)

    @property
    def topic(self) -> str:
        return f"{self.group}-t"

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step. Errors: ``Closed``, ``Garbled`` before the first one."""
        await self._prepare()
        return await self.played(steps, DEFAULT)

    async def _prepare(self) -> None:
        await admin.create({self.topic: 1}, self.connections)
        until = now() + INITIALIZES_S
        while self._id is None or not await self._is_kept():
            if now() > until:
                raise Garbled(f"{self.group} gets no share partition within {INITIALIZES_S:.0f} s")
            await asyncio.sleep(POLL_INTERVAL_S)
            self._id = self._id or await admin.id_of(self.topic, self.connections, self.setting.versions)

    async def _is_kept(self) -> bool:
        """Whether the keeper has the partition, for which it joins the group."""
        beat = SentRequest(KEEPER, Heartbeat(_member(KEEPER), 0, topics=("t",)), HeartbeatAnswer)
        answer = await answer_of(self.connections, beat, self.setting.newest(Heartbeat), self._context())
        return bool(answer.assignment)

    def _context(self) -> Context:
        return self.setting.context(
            self.group,
            topic=Value(lambda own: self.topic, lambda there: "t"),
            topic_id=Value(lambda own: self._id, lambda there: "t"),
            member=Value(_member, str),
        )

    async def step(self, index: int, step: Step, after: Sequence[Step] = ()) -> Observation:
        event = ops.OPERATIONS.event_of(step)
        if isinstance(event, ops.Pass):
            return await self.elapsed(index, step, after, WAIT_MS / 1000, members=False)
        began = now()
        try:
            observed = await self._observed(index, step, event)
        except Inexpressible:
            return Unsupported(LIMITS[VERSIONS], VERSIONS)
        except (Closed, Garbled) as why:
            return Died("crashed" if isinstance(why, Closed) else "garbled", f"{step.verb}: {why}")
        self._doubt = self._doubt or self._deadlines.sent(now())
        self.clients.learn(index, step, observed)
        held = {at: each.left_ms for at, each in self.clients.known.records.items() if each.fate == "held"}
        locks = isinstance(event, ops.Fetch | ops.Acknowledge)
        self._deadlines.follow(held, locks, Span(began, now()))
        return observed

    async def _observed(self, index: int, step: Step, event: ops.Event) -> Observation:
        """Errors: ``Closed``, ``Garbled``; ``Inexpressible``."""
        match event:
            case ops.Produce(count):
                for _ in range(count):
                    await self._produce()
            case ops.Reset(to):
                await admin.configure(self.group, {"share.auto.offset.reset": to}, self.connections)
            case ops.Disconnect(client):
                await self._disconnect(client)
            case ops.Reload():
                for client in [*self._own]:
                    await self._disconnect(client)
            case ops.Fetch() | ops.Acknowledge():
                return await self._ask(index, step, event)
        return Replied(())

    async def _ask(self, index: int, step: Step, event: ops.Request) -> Observation:
        sent = self.clients.sent(index, step)
        assert sent is not None
        version = self.setting.newest(type(sent.request))
        if isinstance(event, ops.Fetch) and event.strict and version < 2:
            raise Inexpressible("ShareAcquireMode")
        given = self.connections
        own = self._own.setdefault(event.client, Connections(given.host, given.port, given.security, given.answered_s))
        answer = await exchange(own, sent, version, self._context())
        if isinstance(answer, Died):
            return answer
        if sent.request.epoch == LEAVING:
            await asyncio.sleep(NOTICES_S)
        return self.clients.observed(answer)

    async def _disconnect(self, client: str) -> None:
        if (own := self._own.pop(client, None)) is not None:
            await own.close()
            await asyncio.sleep(NOTICES_S)

    async def _produce(self) -> None:
        """Appends a record."""
        records = record_batches.encode(record_batches.batch(0, [b"x"]))
        body: dict[str, Any] = {
            "transactionalId": None, "acks": ACKS_ALL, "timeoutMs": 10_000,
            "topicData": [{"name": self.topic, "partitionData": [{"index": 0, "records": records}]}],
        }  # fmt: skip
        found = await self.connections.ask("Produce", PRODUCE_VERSION, "kipcheck", body)
        if error := found["responses"][0]["partitionResponses"][0]["errorCode"]:
            raise Garbled(f"Produce is answered with error {error}")

    async def leave(self) -> None:
        """Connections end, the keeper leaves, and the topic is deleted."""
        for own in self._own.values():
            await own.close()
        gone = SentRequest(KEEPER, Heartbeat(_member(KEEPER), LEAVING), HeartbeatAnswer)
        with suppress(Closed, Garbled):
            await answer_of(self.connections, gone, self.setting.newest(Heartbeat), self._context())
            await admin.delete([self.topic], self.connections)


def _member(name: str) -> str:
    """A member id: a UUID as Kafka 4.1 requires it, in the form of its class ``Uuid``."""
    return name * 21 + "A"


def serves_share_partitions(setting: Setting) -> bool:
    low, high = setting.announced(ShareFetch)
    return 0 < low <= high
