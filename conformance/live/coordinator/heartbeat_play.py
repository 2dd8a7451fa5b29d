"""Plays a conversation with the coordinator of a consumer group (KIP-848) or a streams group (KIP-1071) of a running
broker, in real time. Each heartbeat is answered at once."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Inexpressible
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.core.values.kafka_errors import KafkaError, error_name
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.admin import delete, partitions_of
from kipcheck.conformance.live.coordinator.consumer_group_time import Deadlines
from kipcheck.conformance.live.coordinator.exchange import answer_of, exchange
from kipcheck.conformance.live.coordinator.restarts import Reload
from kipcheck.conformance.live.coordinator.settings import (
    BROKER,
    LIMITS,
    REQUEST_S,
    VERSIONS,
    Setting,
)
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.live.coordinator.timed_play import TimedConversation
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumers
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled import log_laws
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, UNAVAILABLE
from kipcheck.conformance.protocols.streams_group import heartbeat as streams
from kipcheck.conformance.protocols.streams_group.clients import StreamsClients
from kipcheck.conformance.protocols.streams_group.model import DEFAULT as STREAMS_DEFAULT

ELAPSE: Final = "-elapse"
"""How the verbs of steps end in which time passes."""
READS_S: Final = 15.0
"""How long a coordinator may take to read its log."""
CREATES_S: Final = 10.0
"""How long the broker may take to create internal topics."""
POLL_INTERVAL_S: Final = 0.05
"""Between two requests whether it has."""
METADATA_DELAY_S: Final = 3.0
"""How much later the coordinator of a group may learn of topics than the broker."""
PAUSE_S: Final = 0.3
"""How much later it usually has."""
NOT_LEARNED: Final = "the coordinator may not have learned yet of the internal topics"


async def serves(
    made: type[consumers.Heartbeat] | type[streams.Heartbeat], group: str, connections: Connections, setting: Setting
) -> bool:
    """Whether the broker has the type of group of a heartbeat. ``group``: one that does not exist.

    Errors: ``Closed``, ``Garbled``.
    """
    low, high = setting.announced(made)
    if low > high:
        return False
    answer = consumers.HeartbeatAnswer if made is consumers.Heartbeat else streams.HeartbeatAnswer
    leaving = SentRequest("kipcheck", made("nobody", LEAVING), answer)
    found = await answer_of(connections, leaving, setting.newest(made), setting.context_by_ids(group))
    return bool(found.error != KafkaError.UNSUPPORTED_VERSION)


async def loaded(group: str, connections: Connections, setting: Setting) -> None:
    """Waits until the coordinator of a group that does not exist has read its log, at most ``READS_S``.

    What it answers after that is a matter of conversations.
    """
    leaving = SentRequest("kipcheck", consumers.Heartbeat("nobody", LEAVING), consumers.HeartbeatAnswer)
    until = now() + READS_S
    while now() < until:
        with suppress(Closed, Garbled):
            version = setting.newest(consumers.Heartbeat)
            found = await answer_of(connections, leaving, version, setting.context_by_ids(group))
            if error_name(found.error) not in UNAVAILABLE:
                return
        await asyncio.sleep(POLL_INTERVAL_S)


@dataclass(slots=True)
class HeartbeatConversation(TimedConversation):
    clients: ConsumerClients | StreamsClients

    def __post_init__(self) -> None:
        given = self.setting
        self._deadlines = Deadlines(self.clients.known.config.session_ms, given.scale.times, given.margin_s)

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step."""
        return await self.played(steps, DEFAULT if isinstance(self.clients, ConsumerClients) else STREAMS_DEFAULT)

    async def step(self, index: int, step: Step, after: Sequence[Step] = ()) -> Observation:
        sent = self.clients.sent(index, step)
        if sent is None:
            if step.verb.endswith(log_laws.RELOAD) and self.setting.reload is not None:
                return await self._reloaded(index, step, self.setting.reload)
            if not step.verb.endswith(ELAPSE):
                return Unsupported(LIMITS[BROKER], BROKER)
            return await self.elapsed(index, step, after, REQUEST_S)
        began = now()
        try:
            observed = await self.ask(step, sent)
        except Inexpressible:
            return Unsupported(LIMITS[VERSIONS], VERSIONS)
        self._doubt = self._doubt or self._deadlines.sent(now())
        self.clients.learn(index, step, observed)
        client = self.clients.known.clients.get(sent.client)
        if client is not None:
            self._deadlines.answered(client, isinstance(observed, Replied), Span(began, now()))
        return observed

    async def _reloaded(self, index: int, step: Step, reload: Reload) -> Observation:
        at = await reload()
        self._doubt = self._doubt or self._deadlines.sent(at.first)
        self._deadlines.renewed(at)
        self.clients.learn(index, step, Replied(()))
        return Replied(())

    async def ask(self, step: Step, sent: SentRequest) -> Observation:
        """What is observed of a request. Errors: ``Inexpressible``."""
        answer = await self._exchange(sent)
        return answer if isinstance(answer, Died) else await self._observed(step, answer)

    async def _exchange(self, sent: SentRequest) -> Any:
        context = self.setting.context_by_ids("" if sent.nameless else self.group)
        return await exchange(self.connections, sent, self.setting.newest(type(sent.request)), context)

    async def _observed(self, step: Step, answer: Any) -> Observation:
        assert isinstance(self.clients, ConsumerClients)
        return self.clients.observed(step, answer)

    async def leave(self) -> None:
        """All members leave."""
        for each in self.clients.farewells():
            await self._exchange(each)


@dataclass(slots=True)
class StreamsConversation(HeartbeatConversation):
    """Waits for the internal topics that the broker creates, and deletes them."""

    _created: set[str] = field(default_factory=set)
    """Their names on the broker."""
    _created_s: float = 0.0
    """When the last of them was observed."""

    async def _observed(self, step: Step, answer: Any) -> Observation:
        assert isinstance(self.clients, StreamsClients)
        owed = self.clients.owed_topics(step, answer)
        return self.clients.observed(step, answer, {} if owed is None else await self._await_topics(owed))

    async def _await_topics(self, owed: Mapping[str, int]) -> dict[str, int]:
        if not owed and now() < self._created_s + METADATA_DELAY_S:
            self._doubt = self._doubt or NOT_LEARNED
        found: dict[str, int] = {}
        until = now() + CREATES_S
        while owed.keys() - found.keys() and now() < until:
            await asyncio.sleep(POLL_INTERVAL_S)
            for topic in owed.keys() - found.keys():
                name = f"{self.group}-{topic}"
                if count := await partitions_of(name, self.connections, self.setting.versions):
                    found[topic] = count
                    self._created.add(name)
        self._created_s = now()
        await asyncio.sleep(PAUSE_S)
        return found

    async def leave(self) -> None:
        await HeartbeatConversation.leave(self)
        with suppress(Closed, Garbled):
            if self._created:
                await delete(self._created, self.connections)
