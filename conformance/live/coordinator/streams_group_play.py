"""Plays a conversation with the coordinator of a streams group (KIP-1071) of a running broker, in real time."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Op, Refused, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator import consumer_group_play as consumer
from kipcheck.conformance.live.coordinator.admin import delete, partitions_of
from kipcheck.conformance.live.coordinator.classic_play import LIMITS, LOST, TIME, Setting
from kipcheck.conformance.live.coordinator.consumer_group_play import UNSUPPORTED_VERSION, ConsumerSetting, noted
from kipcheck.conformance.live.coordinator.consumer_group_time import Deadlines
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.live.server.answered_errors import name_of
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.reconciled.terms import LEAVING
from kipcheck.conformance.protocols.streams_group.model import DEFAULT, MISSING_INTERNAL_TOPICS, Config
from kipcheck.conformance.protocols.streams_group.ops import (
    OPERATIONS,
    REBALANCE_MS,
    Beat,
    Consume,
    Describe,
    Event,
    Pass,
    Tasks,
)
from kipcheck.conformance.protocols.streams_group.topology import (
    CHANGELOG,
    REPARTITIONED,
    STATEFUL,
    WRONG,
    internal_topics,
    repartitions,
    source,
)
from kipcheck.conformance.protocols.streams_group.trace import Group, GroupStep

HEARTBEAT: Final = "StreamsGroupHeartbeat"
DESCRIBE: Final = "StreamsGroupDescribe"
KEYS: Final = {HEARTBEAT: 88, DESCRIBE: 89}
NEWEST: Final = 1
CREATES_S: Final = 10.0
"""How long the broker may take to create internal topics."""
ASKS_S: Final = 0.05
"""Between two questions whether it has."""
LEARNS_S: Final = 3.0
"""How much later the coordinator of a group may learn of topics than the broker."""
PAUSE_S: Final = 0.3
"""How much later it usually has."""
NOT_LEARNED: Final = "the coordinator may not have learned yet of the internal topics"
CONSUMER: Final = "consumer"
"""The member id of the one that does not run the application."""
STATUSES: Final = (
    "STALE_TOPOLOGY", "MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS", "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION", "ASSIGNMENT_DELAYED", "MISSING_CLIENT_TAGS",
)  # fmt: skip
"""``StreamsGroupHeartbeatResponse.Status``, by code."""


@dataclass(frozen=True, slots=True)
class StreamsSetting:
    """What all conversations about streams groups share."""

    config: Config
    versions: Mapping[str, int]
    """By API."""
    consumers: ConsumerSetting

    def topic(self, own: str) -> str:
        """The name on the broker of a topic of the conversation, which may not exist."""
        return self.consumers.names.get(own, f"{self.consumers.names['t']}-missing-{own}")


async def setting_of(
    probed: str, connections: Connections, versions: Mapping[int, tuple[int, int]], config: Config,
    consumers: ConsumerSetting | None,
) -> StreamsSetting | None:  # fmt: skip
    """None: the broker has no streams groups, or not the topics of the conversations. ``probed``: a group that does
    not exist. Errors: ``Closed``, ``Garbled``."""
    if consumers is None or not {*KEYS.values()} <= versions.keys():
        return None
    used = {api: min(versions[key][1], NEWEST) for api, key in KEYS.items()}
    leaving = {"groupId": probed, "memberId": "nobody", "memberEpoch": LEAVING, "endpointInformationEpoch": 0}
    found = await connections.ask(HEARTBEAT, used[HEARTBEAT], "kipcheck", leaving)
    return None if found["errorCode"] == UNSUPPORTED_VERSION else StreamsSetting(config, used, consumers)


@dataclass(slots=True)
class StreamsConversation:
    shared: Setting
    setting: StreamsSetting
    group: str
    connections: Connections
    waited_s: float = 0.0
    _created: set[str] = field(default_factory=set)
    """The internal topics that the broker has created, by their names there."""
    _created_s: float = 0.0
    """When the last of them was seen."""
    _known: Group = field(init=False)
    _deadlines: Deadlines = field(init=False)
    _doubt: str = ""

    def __post_init__(self) -> None:
        config = self.setting.config
        self._known = Group(config=config)
        self._deadlines = Deadlines(config.session_ms, self.shared.scale.times, self.shared.margin_s)

    @property
    def ids(self) -> tuple[str, ...]:
        """Those that ``leave`` has not removed."""
        return ()

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step."""
        found: list[Observation] = []
        for index, step in enumerate(steps):
            if found and isinstance(found[-1], Died):
                found += [LOST] * (len(steps) - index)
                break
            found.append(await self._step(index, step, steps[index + 1 :]))
        return noted(found, self._doubt, self.setting.config, DEFAULT)

    async def _step(self, index: int, step: Step, after: Sequence[Step]) -> Observation:
        event = OPERATIONS.event_of(step)
        if isinstance(event, Pass):
            total = self._deadlines.now_ms + event.ms
            if event.ms > self.shared.longest_ms or total > self.shared.most_ms:
                return Unsupported(LIMITS[TIME], TIME)
        began = now()
        seen = await self._observed(index, step, event, after)
        if isinstance(seen, Replied | Refused):
            op = Op(index, step, seen)
            self._known = GroupStep(op, event, payload(op), self._known).known_after()
        if isinstance(event, Pass):
            self._deadlines.passed(event.ms, self._known.clients)
        client = self._known.clients.get(event.client) if isinstance(event, Beat) else None
        if client is not None:
            self._deadlines.answered(client, isinstance(seen, Replied), Span(began, now()))
        return seen

    async def _observed(self, index: int, step: Step, event: Event, after: Sequence[Step]) -> Observation:
        match event:
            case Pass(ms):
                return await self._elapse(ms, after)
            case Beat():
                about = GroupStep(Op(index, step, LOST), event, {}, self._known)
                seen = await self._ask(HEARTBEAT, event.client, self._heartbeat(about))
                if isinstance(seen, Replied):
                    seen = await self._with_topics(event, seen)
            case Describe():
                seen = await self._ask(DESCRIBE, "kipcheck", {"groupIds": [self.group]})
            case Consume():
                seen = await self._ask(consumer.HEARTBEAT, CONSUMER, self._consumer(0))
        self._doubt = self._doubt or self._deadlines.sent(now())
        return seen

    # Requests

    def _heartbeat(self, about: GroupStep) -> dict[str, Any]:
        """The body of the request."""
        event, flaw, (owned, standby) = about.beat, about.beat.flaw, about.owned
        return {
            "groupId": "" if flaw == "group" else self.group,
            "memberId": "" if flaw == "member" else event.client,
            "memberEpoch": about.epoch,
            "endpointInformationEpoch": 0,
            "instanceId": "" if flaw == "instance" else event.instance,
            "rackId": "" if flaw == "rack" else None,
            "rebalanceTimeoutMs": -1 if flaw == "timeout" else self.shared.scale.ms(REBALANCE_MS),
            "topology": None if event.topology is None else self._topology(event),
            "activeTasks": None if owned is None else _by_subtopology(owned),
            "standbyTasks": None if flaw == "standby" or standby is None else _by_subtopology(standby),
            "warmupTasks": None if owned is None else [],
            "processId": event.client,
            "userEndpoint": None,
            "clientTags": None,
            "taskOffsets": None,
            "taskEndOffsets": None,
            "shutdownApplication": False,
        }

    def _topology(self, event: Beat) -> dict[str, Any]:
        names = event.topology or ()
        subtopologies = []
        for each in names:
            reads = each == REPARTITIONED and repartitions(names)
            changelog = self._internal(CHANGELOG) if each != WRONG else self.setting.topic("u")
            stores = [_internal_topic(changelog)] if each in STATEFUL else []
            flawed = [{**_internal_topic("changelog"), "partitions": 1}]
            subtopologies.append(
                {
                    "subtopologyId": each,
                    "sourceTopics": [] if reads else [self.setting.topic(source(each))],
                    "sourceTopicRegex": ["x.*"] if event.flaw == "regex" else [],
                    "stateChangelogTopics": flawed if event.flaw == "changelog" else stores,
                    "repartitionSinkTopics": [self._internal(REPARTITIONED)]
                    if repartitions(names) and not reads
                    else [],
                    "repartitionSourceTopics": [_internal_topic(self._internal(REPARTITIONED))] if reads else [],
                    "copartitionGroups": [],
                }
            )
        return {"epoch": event.topology_epoch, "subtopologies": subtopologies}

    def _internal(self, topic: str) -> str:
        """The name on the broker of an internal topic."""
        return f"{self.group}-{topic}"

    def _consumer(self, epoch: int) -> dict[str, Any]:
        return {
            "groupId": self.group, "memberId": CONSUMER, "memberEpoch": epoch, "instanceId": None, "rackId": None,
            "rebalanceTimeoutMs": self.shared.scale.ms(REBALANCE_MS), "subscribedTopicRegex": None,
            "subscribedTopicNames": [self.setting.topic("t")], "serverAssignor": None, "topicPartitions": [],
        }  # fmt: skip

    # Answers

    async def _ask(self, api: str, client: str, body: Mapping[str, Any]) -> Observation:
        version = self.setting.versions.get(api, self.setting.consumers.version)
        found = await consumer.ask(self.connections, api, version, client, body)
        if isinstance(found, Died):
            return found
        found = found["groups"][0] if api == DESCRIBE else found
        if found["errorCode"]:
            return Refused(name_of(found["errorCode"]), found["errorMessage"] or "")
        if api == HEARTBEAT:
            return _answered(found)
        return self._described(found) if api == DESCRIBE else Replied(())

    async def _with_topics(self, event: Beat, seen: Replied) -> Replied:
        """The answer, with the internal topics that the broker creates then."""
        answer = dict(seen.payload)
        if MISSING_INTERNAL_TOPICS not in answer["statuses"]:
            return seen
        topology = self._known.topology if self._known.form == "streams" else event.topology or ()
        owed = {*internal_topics(topology)} - self._known.created
        if not owed and now() < self._created_s + LEARNS_S:
            self._doubt = self._doubt or NOT_LEARNED
        found: dict[str, int] = {}
        until = now() + CREATES_S
        while owed - found.keys() and now() < until:
            await asyncio.sleep(ASKS_S)
            for topic in owed - found.keys():
                name = self._internal(topic)
                if count := await partitions_of(name, self.connections, self.shared.versions):
                    found[topic] = count
                    self._created.add(name)
        self._created_s = now()
        await asyncio.sleep(PAUSE_S)
        return Replied(tuple({**answer, "created": sorted(map(list, found.items()))}.items()))

    def _described(self, found: Mapping[str, Any]) -> Replied:
        members = [
            {
                "client": each["memberId"],
                "epoch": each["memberEpoch"],
                "topology_epoch": each["topologyEpoch"],
                "tasks": _rows(each["assignment"]["activeTasks"]),
                "target": _rows(each["targetAssignment"]["activeTasks"]),
                "standby": _rows(each["assignment"]["standbyTasks"]),
                "standby_target": _rows(each["targetAssignment"]["standbyTasks"]),
            }
            for each in found["members"]
        ]
        topology = found["topology"] or {"epoch": -1, "subtopologies": []}
        names = [each["subtopologyId"] for each in topology["subtopologies"] or ()]
        return Replied(
            (
                ("state", found["groupState"]),
                ("epoch", found["groupEpoch"]),
                ("assignment_epoch", found["assignmentEpoch"]),
                ("topology_epoch", topology["epoch"]),
                ("topology", sorted(names)),
                ("members", sorted(members, key=lambda each: str(each["client"]))),
            )
        )

    async def _elapse(self, ms: int, after: Sequence[Step]) -> Observation:
        doubt, waited_s = await consumer.elapse(self._deadlines, ms, after, "streams-group-elapse")
        self._doubt = self._doubt or doubt
        self.waited_s += waited_s
        return Replied(())

    async def leave(self) -> None:
        """All members leave, and the internal topics are deleted."""
        leaving = {"groupId": self.group, "memberEpoch": LEAVING, "endpointInformationEpoch": 0}
        with suppress(Closed, Garbled):
            for each in self._known.members:
                version = self.setting.versions[HEARTBEAT]
                await self.connections.ask(HEARTBEAT, version, "kipcheck", {**leaving, "memberId": each.name})
            if self._known.form == "consumer":
                version = self.setting.consumers.version
                await self.connections.ask(consumer.HEARTBEAT, version, "kipcheck", self._consumer(LEAVING))
            if self._created:
                await delete(self._created, self.connections)


def _answered(found: Mapping[str, Any]) -> Replied:
    kinds = {"tasks": "activeTasks", "standby": "standbyTasks", "warmup": "warmupTasks"}
    tasks = {kind: None if found[name] is None else _rows(found[name]) for kind, name in kinds.items()}
    codes = [each["statusCode"] for each in found["status"] or ()]
    statuses = sorted(STATUSES[each] if 0 <= each < len(STATUSES) else f"status {each}" for each in codes)
    return Replied((("epoch", found["memberEpoch"]), *tasks.items(), ("statuses", statuses), ("created", [])))


def _internal_topic(name: str) -> dict[str, Any]:
    return {"name": name, "partitions": 0, "replicationFactor": 0, "topicConfigs": []}


def _by_subtopology(tasks: Tasks) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for subtopology, number in tasks:
        found.setdefault(subtopology, []).append(number)
    return [{"subtopologyId": each, "partitions": numbers} for each, numbers in found.items()]


def _rows(tasks: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    return sorted([each["subtopologyId"], number] for each in tasks for number in each["partitions"])
