"""A session with a running broker as the coordinator of groups: plays conversations side by side, each with a group of
its own. Everything has the name ``kipcheck-RUN-...``, and is deleted at the end.
"""

import asyncio
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import Lost, Observation
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed, Rejected
from kipcheck.conformance.live.coordinator import admin, broker_settings, concurrency as stages, waits
from kipcheck.conformance.live.coordinator.address import Address, is_loopback
from kipcheck.conformance.live.coordinator.classic_play import Conversation
from kipcheck.conformance.live.coordinator.cleanup import UsedGroup, delete_all
from kipcheck.conformance.live.coordinator.ended_brokers import play_one_by_one
from kipcheck.conformance.live.coordinator.heartbeat_play import (
    HeartbeatConversation,
    ShareGroupConversation,
    StreamsConversation,
    loaded,
    serves,
)
from kipcheck.conformance.live.coordinator.measured_settings import measured
from kipcheck.conformance.live.coordinator.mixed_group_play import MixedConversation
from kipcheck.conformance.live.coordinator.restarts import Reload, Restarts
from kipcheck.conformance.live.coordinator.retries import PAUSES_S, proves_nothing
from kipcheck.conformance.live.coordinator.settings import Scale, Setting, Topics
from kipcheck.conformance.live.coordinator.share_play import ShareConversation, serves_share_partitions
from kipcheck.conformance.live.damage.player import Damage
from kipcheck.conformance.protocols.consumer_group import ops as consumer_group
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat as ConsumerHeartbeat
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT as DEFAULT_CONSUMER, Config as ConsumerConfig
from kipcheck.conformance.protocols.damage.ops import OPERATIONS
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.migration import ops as migration
from kipcheck.conformance.protocols.share_group import ops as share_group
from kipcheck.conformance.protocols.share_group.clients import ShareClients
from kipcheck.conformance.protocols.share_group.heartbeat import Heartbeat as ShareHeartbeat
from kipcheck.conformance.protocols.share_group.rules import Config as ShareGroupConfig
from kipcheck.conformance.protocols.share_partition import ops as share_partition
from kipcheck.conformance.protocols.share_partition.clients import ShareConsumers
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT as DEFAULT_SHARE, Config as ShareConfig
from kipcheck.conformance.protocols.streams_group import model as streams_model, ops as streams_group
from kipcheck.conformance.protocols.streams_group.clients import StreamsClients
from kipcheck.conformance.protocols.streams_group.heartbeat import Heartbeat as StreamsHeartbeat
from kipcheck.conformance.targets import protocol

T = TypeVar("T")

MARGIN_S: Final = 0.1
REMOTE_MARGIN_S: Final = 0.25
"""Of a broker with its own settings, whose timeouts are longer."""
LEARNS_S: Final = 0.3
AT_ONCE: Final = 300
"""Conversations of several checks that are played in one go, until the longest of them has ended."""
UNUSABLE: Final = (Closed, Garbled, protocol.Unavailable, OSError)
"""The errors of a process that does not start, or does not answer then."""
CONSUMER_GROUP: Final = consumer_group.OPERATIONS.machine


@contextmanager
def session(
    info: protocol.TargetInfo,
    address: Address,
    rules: Rules,
    times: int,
    settings: Config | None,
    process: stages.Restartable | None = None,
    release: str = NEWEST,
) -> Iterator["BrokerSession"]:
    """``settings``: of a broker that kipcheck started, in the time of conversations; None: the broker is asked.

    ``process``: started again when it has ended. ``release``: whose defaults a broker has that does not answer that.
    """
    with asyncio.Runner() as runner:
        found = BrokerSession(info, address, rules, times, settings, runner, process, release)
        try:
            runner.run(found.begin())
            yield found
        except (Closed, Garbled) as why:
            raise protocol.Unavailable(f"{info.name}: {why}") from None
        finally:
            runner.run(found.end())


@dataclass
class BrokerSession:
    info: protocol.TargetInfo
    address: Address
    rules: Rules
    times: int
    settings: Config | None
    runner: asyncio.Runner
    process: stages.Restartable | None
    release: str = NEWEST
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()
    at_once: int = AT_ONCE
    searches_at_once: int = AT_ONCE
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    played: int = 0
    waited_s: float = 0.0
    doubtful: int = 0
    left_over: list[str] = field(default_factory=list)
    _own_topics: list[str] = field(default_factory=list)
    _used: list[UsedGroup] = field(default_factory=list)
    """The groups that were not empty when their conversations ended."""
    _brokers: dict[tuple[str, int], Connections] = field(default_factory=dict)
    _groups: int = 0
    pids: Callable[[], Sequence[int]] = tuple
    """Of its processes, where kipcheck started them."""
    restarts: Restarts | None = None
    """None: no conversation can have the log read."""
    _setting: Setting | None = None
    _damage: Damage | None = None
    _busy_s: float = 0.0
    _starts: int = 0
    """How often its process was started again."""
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def bootstrap(self) -> Connections:
        return self._connections(self.address.host, self.address.port)

    def _connections(self, host: str, port: int) -> Connections:
        made = Connections(host, port, self.address.security, self.address.timeout_s)
        return self._brokers.setdefault((host, port), made)

    async def begin(self) -> None:
        """Learns what the broker is, and creates topics. Errors: ``Unavailable``, ``Closed``, ``Garbled``."""
        versions = await admin.versions_of(self.bootstrap)
        started = self.settings is not None
        if self.settings is not None:
            config, consumer, streams, share, group_of_shares = (
                self.settings, DEFAULT_CONSUMER, streams_model.DEFAULT, DEFAULT_SHARE,
                ShareGroupConfig(max_size=broker_settings.SHARE_MAX_SIZE),
            )  # fmt: skip
        else:
            described = await admin.described_settings(self.bootstrap, versions)
            config, consumer, streams, share, group_of_shares = admin.settings_of(described, self.release)
            config = await measured(config, described, versions, self.run_id, self._coordinator, self._used)
        topics = await self._topics(versions)
        least = min(DEFAULT.min_session_ms, config.min_session_ms)
        self._setting = Setting(
            self.rules, config, topics, Scale(self.times, least), versions, MARGIN_S if started else REMOTE_MARGIN_S,
            waits.LONGEST_MS, waits.STARTED_MOST_MS if started else waits.MOST_MS,
        )  # fmt: skip
        await self._find_other_groups(consumer, streams, share, group_of_shares)

    def allow_nameless(self) -> None:
        """Lets conversations use the group with the empty name, for those that are played one by one and delete it."""
        assert self._setting is not None
        self._setting = replace(self._setting, nameless=True)

    async def _find_other_groups(
        self,
        config: ConsumerConfig,
        streams: streams_model.Config,
        share: ShareConfig,
        group_of_shares: ShareGroupConfig,
    ) -> None:
        """Claims the machines of consumer groups and streams groups if the broker has them, and topics as their
        conversations need them."""
        assert self._setting is not None
        setting, topics = self._setting, self._setting.topics
        if topics.partitions != {topics.there(each): count for each, count in TOPICS.items()}:
            return
        ids = {each: await admin.id_of(name, self.bootstrap, setting.versions) for each, name in topics.names.items()}
        known = {each: id for each, id in ids.items() if id is not None}
        probed = f"kipcheck-{self.run_id}-0"
        connections = await self._coordinator(probed)
        if known.keys() != TOPICS.keys() or not await serves(ConsumerHeartbeat, probed, connections, setting):
            return
        setting = replace(setting, topics=replace(topics, ids=known), consumers=config)
        found = [CONSUMER_GROUP, migration.OPERATIONS.machine]
        if await serves(StreamsHeartbeat, probed, connections, setting):
            setting = replace(setting, streams=streams)
            found.append(streams_group.OPERATIONS.machine)
        if await serves(ShareHeartbeat, probed, connections, setting):
            setting = replace(setting, share_groups=group_of_shares)
            found.append(share_group.OPERATIONS.machine)
        if serves_share_partitions(setting):
            setting = replace(setting, shares=share)
            found.append(share_partition.OPERATIONS.machine)
        self._setting = setting
        machines = self.info.claims.machines
        claims = replace(self.info.claims, machines=(*machines, *(each for each in found if each not in machines)))
        self.info = replace(self.info, claims=claims)

    async def _topics(self, versions: dict[int, tuple[int, int]]) -> Topics:
        if self.address.topic:
            creates = self.process is not None
            count = await admin.partitions_of(self.address.topic, self.bootstrap, versions, creates)
            if not count:
                raise protocol.Unavailable(f"{self.info.name}: the broker has no topic {self.address.topic}")
            return Topics({"t": self.address.topic}, {self.address.topic: count})
        names = {each: f"kipcheck-{self.run_id}-{each}" for each in TOPICS}
        sizes = {name: TOPICS[each] for each, name in names.items()}
        self._own_topics += sizes
        await admin.create(sizes, self.bootstrap)
        for each, count in sizes.items():
            for _ in range(100):
                if await admin.partitions_of(each, self.bootstrap, versions) == count:
                    break
                await asyncio.sleep(0.1)
        # Coordinators learn of topics a moment later than the broker shows them.
        await asyncio.sleep(LEARNS_S)
        return Topics(names, sizes)

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """Plays the conversations side by side; those that break a law in doubt again, with few beside them."""
        return self.runner.run(self._run(cases))

    def run_plans(self, plans: Sequence[protocol.Plan[T]], /) -> list[T]:
        """Conversations are not played again, whatever is in doubt in them."""
        return self.runner.run(self._run_plans(plans))

    def lasts_s(self, case: Case, /) -> float:
        assert self._setting is not None
        return waits.waits_ms(case, self._setting.most_ms) / 1000 / self.times

    def renew(self) -> bool:
        """Whether the broker still answers: conversations have groups of their own, so there is nothing to forget."""
        return self.runner.run(self._answers())

    async def _answers(self) -> bool:
        try:
            await admin.versions_of(self.bootstrap)
        except (Closed, Garbled, protocol.Unavailable):
            return False
        return True

    def run_again(self, cases: Sequence[Case], pause_s: float) -> list[tuple[Observation, ...]]:
        """Plays conversations that were in doubt, with few beside them, and with a pause before each request."""
        return self.runner.run(self._run_again(cases, pause_s))

    async def _run_again(self, cases: Sequence[Case], pause_s: float) -> list[tuple[Observation, ...]]:
        assert self._setting is not None
        self.doubtful += len(cases)
        self._setting = replace(self._setting, pause_s=pause_s)
        try:
            return await self._survived(cases, stages.Stage(stages.ALONE))
        finally:
            self._setting = replace(self._setting, pause_s=0.0)

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        began = now()
        found = await self._apart(
            cases, stages.Stage(stages.REMOTE_TOGETHER if self.settings is None else stages.TOGETHER)
        )
        if self.process is None and any(each.refused for each in self._brokers.values()):
            await play_one_by_one(cases, found, self._play, self._answers)
        for pause_s in PAUSES_S:
            repeats = any(each.repeated for each in self._brokers.values())
            doubtful = [at for at, case in enumerate(cases) if proves_nothing(self.info.name, case, found[at], repeats)]
            if not doubtful:
                break
            again = await self._run_again([cases[each] for each in doubtful], pause_s)
            for at, observations in zip(doubtful, again, strict=True):
                found[at] = observations
        self._busy_s += now() - began
        return found

    async def _apart(self, cases: Sequence[Case], stage: stages.Stage) -> list[tuple[Observation, ...]]:
        """Damaged requests, which may end the process of the broker, are sent when the conversations have ended."""
        found: dict[int, tuple[Observation, ...]] = {}
        for damaged in (False, True):
            numbers = [at for at, case in enumerate(cases) if _is_damage(case) is damaged]
            part = await self._survived([cases[at] for at in numbers], stage) if numbers else []
            found |= dict(zip(numbers, part, strict=True))
        return [found[at] for at in range(len(cases))]

    async def _run_plans(self, plans: Sequence[protocol.Plan[T]]) -> list[T]:
        began, stage = now(), stages.Stage(stages.TOGETHER)

        async def one(plan: protocol.Plan[T]) -> T:
            try:
                cases = next(plan)
                while True:
                    cases = plan.send(await self._survived(cases, stage))
            except StopIteration as ended:
                found: T = ended.value
                return found

        try:
            return await stages.gathered([one(each) for each in plans])
        finally:
            self._busy_s += now() - began

    async def _survived(self, cases: Sequence[Case], stage: stages.Stage) -> list[tuple[Observation, ...]]:
        """Plays them. If the process of the broker ended, each is played again with a broker of its own, side by side:
        conversations take long, and a process does not."""
        starts = self._starts
        found = await self._together(cases, stage)
        if self.process is None:
            return found
        async with self._starting:
            if why := self.process.why_ended:
                await self._start_again(self.process, why)
                self._starts += 1
        if self._starts == starts:
            return found
        if why and len(cases) == 1:
            return [tuple(stages.with_end(each, why) for each in found[0])]
        room = asyncio.Semaphore(stages.PROCESSES)
        return [*await asyncio.gather(*(self._alone(each, self.process, room) for each in cases))]

    async def _alone(self, case: Case, process: stages.Restartable, room: asyncio.Semaphore) -> tuple[Observation, ...]:
        """With a process of its own. The steps are lost if none can be used, since the case is not to blame."""
        async with room:
            own = process.another()
            try:
                session = type(self)(self.info, self.address, self.rules, self.times, self.settings, self.runner, own)
                session.pids = lambda: own.pids
                try:
                    await session._start(own)
                except UNUSABLE as wrong:
                    return (Lost(f"its process cannot be used after it was started again: {wrong}"),) * len(case.steps)
                (found,) = await session._together([case], stages.Stage(1))
                self.played += session.played
                self.waited_s += session.waited_s
                why = own.why_ended
                await session._close()
                return tuple(stages.with_end(each, why) for each in found) if why else found
            finally:
                await asyncio.to_thread(own.stop)

    async def _start_again(self, process: stages.Restartable, why: str) -> None:
        """Errors: ``Broken`` if the broker, which ended (``why``), cannot be used any more."""
        try:
            await self._start(process)
        except UNUSABLE as wrong:
            raise protocol.Broken(f"{self.info.name}: {why}; started again, it cannot be used: {wrong}") from None

    async def _start(self, process: stages.Restartable) -> None:
        """Errors: those of the last of ``STARTS`` starts."""
        for left in reversed(range(stages.STARTS)):
            await self._close()
            self._brokers, self._used, self._own_topics, self._damage = {}, [], [], None
            try:
                host, port = await asyncio.to_thread(process.start)
                self.address = replace(self.address, host=host, port=port)
                return await self.begin()
            except UNUSABLE:
                if not left:
                    raise

    async def _together(self, cases: Sequence[Case], stage: stages.Stage) -> list[tuple[Observation, ...]]:
        async def one(case: Case) -> tuple[Observation, ...]:
            async with stage.room:
                async with stage.turn:
                    await asyncio.sleep(stages.BEGINS_S)
                return await self._play(case)

        restarting = [] if self.restarts is None else self.restarts.chosen(cases)
        order = [number for number in waits.longest_first(cases) if number not in restarting]
        beside = nullcontext() if self.restarts is None else self.restarts.beside()
        async with beside:
            found = await stages.gathered([one(cases[number]) for number in order])
        played = dict(zip(order, found, strict=True))
        if self.restarts is not None and restarting:
            again = await self.restarts.play([cases[number] for number in restarting], self._play)
            played |= dict(zip(restarting, again, strict=True))
        return [played[number] for number in range(len(cases))]

    async def restarted(self, restart: Callable[[], float]) -> float:
        """Restarts the broker, and waits until coordinators have read their logs. Returns when its process was started.

        Errors: ``Broken``.
        """
        for each in self._brokers.values():
            await each.close()
        started = await asyncio.to_thread(restart)
        if self._setting is not None:
            await loaded(f"kipcheck-{self.run_id}-0", self.bootstrap, self._setting)
        return started

    async def _play(self, case: Case, reload: Reload | None = None) -> tuple[Observation, ...]:
        """The steps are lost if the broker cannot be reached: other conversations may have ended its process."""
        try:
            return await self._conversed(case, reload)
        except (Closed, Garbled) as why:
            return (Lost(f"no coordinator: {why}"),) * len(case.steps)

    async def _conversed(self, case: Case, reload: Reload | None) -> tuple[Observation, ...]:
        """Errors: ``Closed``, ``Garbled``."""
        assert self._setting is not None
        if _is_damage(case):
            return await self._play_damage(case)
        self._groups += 1
        self.played += 1
        group = f"kipcheck-{self.run_id}-{self._groups}"
        connections = await self._coordinator(group)
        conversation = self._conversation(case, replace(self._setting, reload=reload), group, connections)
        try:
            return await conversation.play(case.steps)
        finally:
            self.waited_s += conversation.waited_s
            if not isinstance(conversation, Conversation):
                await conversation.leave()
            used = UsedGroup(group, connections, self._setting.versions, conversation.ids)
            if await used.delete():
                self._used.append(used)

    async def _play_damage(self, case: Case) -> tuple[Observation, ...]:
        assert self._setting is not None
        if self._damage is None:
            group = f"kipcheck-{self.run_id}-damage"
            found = await self._coordinator(group)
            own = Connections(found.host, found.port, found.security, found.answered_s)
            topic = self._setting.topics.names["t"]
            self._damage = Damage(own, self._setting.versions, group, topic, self.pids)
            self._used.append(UsedGroup(group, found, self._setting.versions))
        return await self._damage.play(case.steps)

    def _conversation(
        self, case: Case, setting: Setting, group: str, connections: Connections
    ) -> Conversation | HeartbeatConversation | MixedConversation | ShareConversation:
        verb = case.steps[0].verb
        if verb in share_partition.OPERATIONS.by_verb:
            assert setting.shares is not None, "no case of a machine that is not claimed"
            return ShareConversation(setting, group, connections, ShareConsumers(setting.shares))
        if verb in share_group.OPERATIONS.by_verb:
            assert setting.share_groups is not None, "no case of a machine that is not claimed"
            return ShareGroupConversation(setting, group, connections, ShareClients(setting.share_groups))
        if verb in streams_group.OPERATIONS.by_verb:
            assert setting.streams is not None, "no case of a machine that is not claimed"
            return StreamsConversation(setting, group, connections, StreamsClients(setting.streams))
        mixed = verb in migration.OPERATIONS.by_verb
        if not mixed and verb not in consumer_group.OPERATIONS.by_verb:
            return Conversation(setting, group, connections)
        assert setting.consumers is not None, "no case of a machine that is not claimed"
        if mixed:
            return MixedConversation(setting, group, connections)
        return HeartbeatConversation(setting, group, connections, ConsumerClients(setting.consumers))

    async def _coordinator(self, group: str) -> Connections:
        """Errors: ``Closed``, ``Garbled`` where there is none; ``Unavailable`` if it is elsewhere, unallowed, or
        rejects the TLS or SASL that the first broker took."""
        for wait in (0.1, 0.3, 1.0, 3.0, 0.0):
            try:
                host, port = await admin.coordinator_of(group, self.bootstrap)
                break
            except Garbled:
                if not wait:
                    raise
                await asyncio.sleep(wait)
        if not self.address.allow_remote and not is_loopback(host):
            raise protocol.Unavailable(
                f"the coordinator of {group} is {host}:{port}, not this machine: add --allow-remote"
            )
        found = self._connections(host, port)
        try:
            await found.reach()
        except Rejected as why:
            raise protocol.Unavailable(f"{self.info.name}: the coordinator of {group}: {why}") from None
        return found

    async def end(self) -> None:
        """Deletes groups and topics, and reports what waiting cost and what is left."""
        await self._clean()
        try:
            kept = await admin.delete(self._own_topics, self.bootstrap) if self._own_topics else {}
            self.left_over += [f"topic {name} (error {error})" for name, error in kept.items()]
        except (Closed, Garbled) as why:
            self.left_over += [f"topic {name} ({why})" for name in self._own_topics]
        await self._close()
        if self.played:
            opened = sum(each.opened for each in self._brokers.values())
            print(
                f"{self.info.name}: {self.played} conversations in {self._busy_s:.0f} s, which waited "
                f"{self.waited_s:.0f} s in all, side by side over {opened} connections; "
                f"{self.doubtful} were played again{_repeated(self._brokers.values())}"
                f"{'' if self.restarts is None else self.restarts.cost}",
                file=sys.stderr,
            )
        if self.left_over:
            print(f"{self.info.name}: could not delete {', '.join(self.left_over)}", file=sys.stderr)

    async def _close(self) -> None:
        if self._damage is not None:
            await self._damage.connections.close()
        for each in self._brokers.values():
            await each.close()

    async def _clean(self) -> None:
        """Deletes groups whose last rebalances are over by now. A broker that kipcheck started keeps nothing anyway."""
        if self.settings is None:
            self.left_over += await delete_all(self._used, waits.LONGEST_MS / 1000)


def _is_damage(case: Case) -> bool:
    return all(each.verb in OPERATIONS.verbs for each in case.steps)


def _repeated(brokers: Iterable[Connections]) -> str:
    count = sum(each.repeated for each in brokers)
    return f"; {count} requests were answered twice" if count else ""
