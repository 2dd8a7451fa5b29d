"""Plays a conversation of clients of both protocols with the coordinator of one group of a running broker."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Value
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.classic_play import AFTER_S, PARKS_S, PATIENCE_S
from kipcheck.conformance.live.coordinator.exchange import exchange
from kipcheck.conformance.live.coordinator.heartbeat_play import HeartbeatConversation
from kipcheck.conformance.live.coordinator.settings import LIMITS, LOST, TIME, Setting, noted
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_OPERATIONS, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.ops import Join, Leave, Left, Sync
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.clients import ClassicClients, blobs
from kipcheck.conformance.protocols.reconciled import log_ops

LATEST_S: Final = 0.8
"""How much longer than stated a conversation may take, so that no timer expires before its step."""


@dataclass(slots=True)
class MixedConversation:
    setting: Setting
    group: str
    connections: Connections
    waited_s: float = 0.0
    _consumers: HeartbeatConversation = field(init=False)
    _clients: ClassicClients = field(default_factory=ClassicClients)
    _asked: dict[str, "tuple[SentRequest, asyncio.Task[None]]"] = field(default_factory=dict)
    """The last request of each client, and what waits for its answer."""
    _failed: Died | None = None
    _stated_ms: int = 0

    def __post_init__(self) -> None:
        assert self.setting.consumers is not None
        clients = ConsumerClients(self.setting.consumers)
        self._consumers = HeartbeatConversation(self.setting, self.group, self.connections, clients)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of members that use the classic protocol."""
        return self._clients.ids

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step."""
        began, found = now(), list[Observation]()
        try:
            for index, step in enumerate(steps):
                broken = bool(found) and isinstance(found[-1], Died)
                found.append(LOST if broken or LOST in found[-1:] else await self._step(index, step))
        finally:
            tasks = [task for _, task in self._asked.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        late = now() - began - self._stated_ms / 1000 / self.setting.scale.times
        doubt = f"the conversation took {late:.1f} s too long" if late >= LATEST_S else ""
        return noted(found, doubt, self._consumers.clients.known.config, DEFAULT)

    async def _step(self, index: int, step: Step) -> Observation:
        event = ops.OPERATIONS.event_of(step)
        match event:
            case Pass(ms):
                return await self._elapse(index, event, ms)
            case log_ops.Commit() if event.client in ops.CLIENTS:
                return await self._consumers.ask(step, self._clients.commit(event))
            case Beat() | log_ops.Reload() | log_ops.Commit() | log_ops.Fetch():
                return await self._consumers.step(index, CONSUMER_OPERATIONS.step_of(event))
            case _:
                return await self._classic(event)

    async def _elapse(self, index: int, event: Pass, ms: int) -> Observation:
        if self.setting.is_too_long(ms, self._stated_ms):
            return Unsupported(LIMITS[TIME], TIME)
        self._stated_ms += ms
        until = now() + ms / 1000 / self.setting.scale.times + self.setting.margin_s
        seen = await self._consumers.step(index, CONSUMER_OPERATIONS.step_of(event))
        self.waited_s += max(until - now(), 0)
        await asyncio.sleep(until - now())
        return seen

    # Requests of the classic protocol

    async def _classic(self, event: ops.Classic) -> Observation:
        sent = self._clients.sent(event)
        if sent is not None:
            task = asyncio.ensure_future(self._exchange(sent))
            self._asked[event.client] = sent, task
            await asyncio.wait([task], timeout=PARKS_S)
        elif not isinstance(event, ops.Receive):
            return _observed(ops.Received(event.client, ops.BUSY))
        if event.client in self._asked:
            await self._handled(*self._asked[event.client])
        return self._failed or _observed(self._clients.received(event.client))

    async def _handled(self, sent: SentRequest, task: "asyncio.Task[None]") -> None:
        """Waits until the coordinator has handled the request, as it handles those of a group one after the other.

        The LeaveGroup of a client that is no member changes nothing, and is answered when all is written that was
        appended before it.
        """
        if not task.done():
            began = now()
            await self._ask(SentRequest("kipcheck", Leave(ops.VERSION, (("?", None),)), Left))
            await asyncio.wait([task], timeout=max(AFTER_S, 2 * (now() - began)))
        if not isinstance(sent.request, Join | Sync):
            await asyncio.wait([task], timeout=PATIENCE_S)

    async def _exchange(self, sent: SentRequest) -> None:
        found = await self._ask(sent)
        if isinstance(found, Died):
            self._failed = found
        else:
            self._clients.answered(found)

    async def _ask(self, sent: SentRequest) -> Any:
        topics = Value(self.setting.topics.there, self.setting.topics.own)
        context, request = self.setting.context(self.group, blob=blobs(topics)), sent.request
        return await exchange(self.connections, sent, request.version, context, to=request.request)

    async def leave(self) -> None:
        """The consumers leave."""
        await self._consumers.leave()


def _observed(received: ops.Received) -> Replied:
    answer = dict(ops.OPERATIONS.answer_of([received]))
    del answer["status"]
    return Replied(tuple(answer.items()))
