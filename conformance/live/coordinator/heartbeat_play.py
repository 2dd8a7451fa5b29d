"""Plays a conversation with the coordinator of a consumer group (KIP-848), a share group (KIP-932) or a streams group
(KIP-1071) of a running broker, in real time. Each heartbeat is answered at once."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Inexpressible
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.core.values.kafka_errors import KafkaError, error_name
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.admin import configure, create, delete, id_of, partitions_of
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
from kipcheck.conformance.live.coordinator.waits import MOST_MS
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumers
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.ops import LATER
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, SETTINGS_OF_GROUPS, UNAVAILABLE
from kipcheck.conformance.protocols.share_group import heartbeat as shares
from kipcheck.conformance.protocols.share_group.clients import ShareClients
from kipcheck.conformance.protocols.share_group.rules import DEFAULT as SHARE_DEFAULT
from kipcheck.conformance.protocols.streams_group import heartbeat as streams
from kipcheck.conformance.protocols.streams_group.clients import StreamsClients
from kipcheck.conformance.protocols.streams_group.model import DEFAULT as STREAMS_DEFAULT
from kipcheck.conformance.targets.protocol import Unavailable

SESSION: Final = "session_ms"
READS_S: Final = 15.0
"""How long a coordinator may take to read its log."""
INITIALIZES_S: Final = 20.0
"""How long the broker may take to prepare the state of share partitions."""
KEEPER: Final = "keeper"
"""The member that waits for it."""
CREATES_S: Final = 10.0
"""How long the broker may take to create internal topics."""
POLL_INTERVAL_S: Final = 0.05
"""Between two requests whether it has."""
METADATA_DELAY_S: Final = 3.0
"""How much later the coordinator of a group may learn of topics than the broker."""
PAUSE_S: Final = 0.3
"""How much later it usually has."""
ANSWERS: Final[Mapping[type, Any]] = {
    consumers.Heartbeat: consumers.HeartbeatAnswer,
    shares.Heartbeat: shares.HeartbeatAnswer,
    streams.Heartbeat: streams.HeartbeatAnswer,
}
USUAL: Final[Mapping[type, Any]] = {
    ConsumerClients: DEFAULT,
    ShareClients: SHARE_DEFAULT,
    StreamsClients: STREAMS_DEFAULT,
}
"""Settings that need no mention, by clients."""
NOT_LEARNED: Final = "the coordinator may not have learned yet of the internal topics"


async def serves(
    made: type[consumers.Heartbeat] | type[shares.Heartbeat] | type[streams.Heartbeat],
    group: str,
    connections: Connections,
    setting: Setting,
) -> bool:
    """Whether the broker has the type of group of a heartbeat. ``group``: one that does not exist.

    Errors: ``Closed``, ``Garbled``.
    """
    low, high = setting.announced(made)
    if low > high:
        return False
    leaving = SentRequest("kipcheck", made("nobody", LEAVING), ANSWERS[made])
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
    clients: ConsumerClients | ShareClients | StreamsClients

    _created: set[str] = field(default_factory=set)
    """The names on the broker of topics of this conversation."""
    _waits_s: float = 0.0
    """After each heartbeat."""

    def __post_init__(self) -> None:
        given = self.setting
        self._deadlines = Deadlines(self.clients.known.config.session_ms, given.scale.times, given.margin_s)

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step. Errors: ``Closed``, ``Garbled`` before the first one."""
        if later := {step.body["topic"] for step in steps if creates(step)}:
            await self._expect(later)
        return await self.played(steps, USUAL[type(self.clients)])

    async def _expect(self, later: Collection[str]) -> None:
        """Names topics that are created later. Time passes as stated: no setting of a broker has how often it resolves
        expressions. Errors: ``Closed``, ``Garbled``."""
        topics, scale = self.setting.topics, self.setting.scale
        if scale.times > 1:
            own = {SETTINGS_OF_GROUPS[SESSION]: str(self._deadlines.session_ms)}
            await configure(self.group, own, self.connections)
        names = {**topics.names, **{each: f"{self.group}-{each}" for each in later}}
        self.setting = replace(
            self.setting, topics=replace(topics, names=names), scale=replace(scale, times=1), most_ms=MOST_MS
        )
        self._deadlines.times, self._waits_s = 1, PAUSE_S

    async def step(self, index: int, step: Step, after: Sequence[Step] = ()) -> Observation:
        sent = self.clients.sent(index, step)
        if sent is None:
            return await self._unsent(index, step, after)
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
        await asyncio.sleep(self._waits_s)
        return observed

    async def _unsent(self, index: int, step: Step, after: Sequence[Step]) -> Observation:
        """What is observed of a step that no client makes."""
        match step.verb.rpartition("-")[2]:
            case "elapse":
                return await self.elapsed(index, step, after, REQUEST_S)
            case "reload" if self.setting.reload is not None:
                return await self._reloaded(index, step, self.setting.reload)
            case "configure" | "create":
                return await self._administered(index, step)
            case _:
                return Unsupported(LIMITS[BROKER], BROKER)

    async def _administered(self, index: int, step: Step) -> Observation:
        try:
            await (self._create(step.body["topic"]) if creates(step) else self._configure(step.body))
        except Closed as why:
            return Died("crashed", f"{step.verb}: {why}")
        except (Garbled, Unavailable):
            return Unsupported(LIMITS[BROKER], BROKER)
        self.clients.learn(index, step, Replied(()))
        return Replied(())

    async def _configure(self, settings: Mapping[str, int]) -> None:
        """Errors: ``Closed``, ``Garbled`` where the broker does not take them."""
        scaled = {
            SETTINGS_OF_GROUPS[name]: str(self.setting.scale.ms(value) if name == SESSION else value)
            for name, value in settings.items()
        }
        await configure(self.group, scaled, self.connections)
        self._deadlines.session_ms = settings.get(SESSION, self._deadlines.session_ms)

    async def _create(self, topic: str) -> None:
        """Errors: ``Closed``, ``Garbled``, ``Unavailable`` where the broker has no new topic."""
        topics, until = self.setting.topics, now() + CREATES_S
        name = topics.names[topic]
        await create({name: LATER[topic]}, self.connections)
        self._created.add(name)
        while (id := await id_of(name, self.connections, self.setting.versions)) is None:
            if now() > until:
                raise Garbled(f"{name} has no id")
            await asyncio.sleep(POLL_INTERVAL_S)
        self.setting = replace(self.setting, topics=replace(topics, ids={**topics.ids, topic: id}))
        await asyncio.sleep(PAUSE_S)

    async def _reloaded(self, index: int, step: Step, reload: Reload) -> Observation:
        at = await reload()
        self._doubt = self._doubt or self._deadlines.sent(at.gone_s)
        self._deadlines.renewed(at.read)
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
        assert not isinstance(self.clients, StreamsClients)
        return self.clients.observed(step, answer)

    async def leave(self) -> None:
        """All members leave, and the topics of the conversation are deleted."""
        for each in self.clients.farewells():
            await self._exchange(each)
        with suppress(Closed, Garbled):
            if self._created:
                await delete(self._created, self.connections)


def creates(step: Step) -> bool:
    """Whether a topic is created."""
    return step.verb.endswith("-create")


@dataclass(slots=True)
class ShareGroupConversation(HeartbeatConversation):
    """Waits until partitions have state: before that, no member is assigned any."""

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        scale = self.setting.scale
        if scale.times > 1:
            # Conversations about share partitions need a longer one, which is that of the broker.
            own = {SETTINGS_OF_GROUPS["share_session_ms"]: str(scale.ms(self._deadlines.session_ms))}
            await configure(self.group, own, self.connections)
        await self._initialize()
        return await HeartbeatConversation.play(self, steps)

    async def _initialize(self) -> None:
        """A member has all partitions, and leaves. Errors: ``Closed``, ``Garbled``."""
        topics, until = tuple(self.setting.topics.ids), now() + INITIALIZES_S
        joining = SentRequest(KEEPER, shares.Heartbeat(KEEPER, 0, topics=topics), shares.HeartbeatAnswer)
        while len((await self._kept(joining)).assignment or ()) < sum(self.setting.topics.partitions.values()):
            if now() > until:
                raise Garbled(f"{self.group} gets no share partitions within {INITIALIZES_S:.0f} s")
            await asyncio.sleep(POLL_INTERVAL_S)
        await self._kept(SentRequest(KEEPER, shares.Heartbeat(KEEPER, LEAVING), shares.HeartbeatAnswer))

    async def _kept(self, sent: SentRequest) -> Any:
        context = self.setting.context_by_ids(self.group)
        return await answer_of(self.connections, sent, self.setting.newest(shares.Heartbeat), context)


@dataclass(slots=True)
class StreamsConversation(HeartbeatConversation):
    """Waits for the internal topics that the broker creates."""

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
