"""Plays a conversation with the coordinator of a consumer group (KIP-848) of a running broker, in real time."""

import asyncio
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Op, Refused, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.classic_play import LIMITS, LOST, REQUEST_S, TIME, VERSIONS, Setting
from kipcheck.conformance.live.coordinator.consumer_group_time import Deadlines
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.live.server.answered_errors import name_of
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, REBALANCE_MS, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT, Config
from kipcheck.conformance.protocols.consumer_group.trace import AnsweredHeartbeat, Group
from kipcheck.conformance.protocols.declare.real_time import DOUBT, SETTINGS
from kipcheck.conformance.protocols.declare.trace import payload
from kipcheck.conformance.protocols.reconciled.terms import LEAVING, Partitions
from kipcheck.conformance.protocols.streams_group.model import Config as StreamsConfig

HEARTBEAT: Final = "ConsumerGroupHeartbeat"
KEY: Final = 68
NEWEST: Final = 1
REGEX_SINCE: Final = 1
UNSUPPORTED_VERSION, GROUP_ID_NOT_FOUND = 35, 69
Settings: TypeAlias = Config | StreamsConfig


@dataclass(frozen=True, slots=True)
class ConsumerSetting:
    """What all conversations about consumer groups share."""

    config: Config
    version: int
    """Of the heartbeats."""
    ids: Mapping[str, uuid.UUID]
    """Topic of the conversation -> the id of the one that stands for it."""
    names: Mapping[str, str]
    """The same: its name."""

    def own(self, id: uuid.UUID) -> str:
        return next((name for name, each in self.ids.items() if each == id), str(id))


async def setting_of(
    probed: str, connections: Connections, versions: Mapping[int, tuple[int, int]], config: Config,
    ids: Mapping[str, uuid.UUID], names: Mapping[str, str],
) -> ConsumerSetting | None:  # fmt: skip
    """None: the broker has no consumer groups, or not the topics of the conversations. ``probed``: a group that does
    not exist. Errors: ``Closed``, ``Garbled``."""
    if KEY not in versions or ids.keys() != TOPICS.keys():
        return None
    version = min(versions[KEY][1], NEWEST)
    leaving = {"groupId": probed, "memberId": "nobody", "memberEpoch": LEAVING}
    found = await connections.ask(HEARTBEAT, version, "kipcheck", leaving)
    if found["errorCode"] == UNSUPPORTED_VERSION:
        return None
    return ConsumerSetting(config, version, ids, names)


@dataclass(slots=True)
class ConsumerConversation:
    shared: Setting
    setting: ConsumerSetting
    group: str
    connections: Connections
    waited_s: float = 0.0
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
                return (*self._noted(found), *[LOST] * (len(steps) - index))
            found.append(await self.step(index, step, steps[index + 1 :]))
        return self._noted(found)

    async def step(self, index: int, step: Step, after: Sequence[Step] = ()) -> Observation:
        """What was observed at one step. ``after``: the steps that follow."""
        event = OPERATIONS.event_of(step)
        if isinstance(event, Beat) and event.regex is not None and self.setting.version < REGEX_SINCE:
            return Unsupported(LIMITS[VERSIONS], VERSIONS)
        if isinstance(event, Pass):
            total = self._deadlines.now_ms + event.ms
            if event.ms > self.shared.longest_ms or total > self.shared.most_ms:
                return Unsupported(LIMITS[TIME], TIME)
            seen: Observation = await self._elapse(event.ms, after)
            self._learn(index, step, event, seen)
            self._deadlines.passed(event.ms, self._known.clients)
            return seen
        began = now()
        seen = await self._ask(self._heartbeat(index, step, event))
        self._doubt = self._doubt or self._deadlines.sent(now())
        self._learn(index, step, event, seen)
        client = self._known.clients.get(event.client)
        if client is not None:
            self._deadlines.answered(client, isinstance(seen, Replied), Span(began, now()))
        return seen

    def _heartbeat(self, index: int, step: Step, event: Beat) -> dict[str, Any]:
        """The body of the request."""
        about = AnsweredHeartbeat(Op(index, step, LOST), event, {}, self._known)
        topics, empty = event.topics, event.lacks
        return {
            "groupId": "" if empty == "group" else self.group,
            "memberId": "" if empty == "member" else event.client,
            "memberEpoch": about.epoch,
            "instanceId": "" if empty == "instance" else event.instance,
            "rackId": "" if empty == "rack" else None,
            "rebalanceTimeoutMs": -1 if empty == "timeout" else self.shared.scale.ms(REBALANCE_MS),
            "subscribedTopicNames": None if topics is None else [self.setting.names[each] for each in topics],
            "subscribedTopicRegex": None if event.regex is None else self._regex(event.regex),
            "serverAssignor": event.assignor,
            "topicPartitions": None if about.owned is None else self._by_topic(about.owned),
        }

    def _regex(self, regex: str) -> str:
        """With the names that topics have on the broker."""
        return re.sub("|".join(self.setting.names), lambda found: self.setting.names[found[0]], regex)

    def _by_topic(self, partitions: Partitions) -> list[dict[str, Any]]:
        found: dict[str, list[int]] = {}
        for topic, number in partitions:
            found.setdefault(topic, []).append(number)
        return [{"topicId": self.setting.ids[topic], "partitions": numbers} for topic, numbers in found.items()]

    async def _ask(self, body: Mapping[str, Any]) -> Observation:
        found = await ask(self.connections, HEARTBEAT, self.setting.version, str(body["memberId"]), body)
        if isinstance(found, Died):
            return found
        if found["errorCode"]:
            return Refused(name_of(found["errorCode"]), found["errorMessage"] or "")
        given = found["assignment"]
        assignment = None if given is None else [
            [self.setting.own(topic["topicId"]), number]
            for topic in given["topicPartitions"] for number in topic["partitions"]
        ]  # fmt: skip
        return Replied(
            (("epoch", found["memberEpoch"]), ("assignment", None if assignment is None else sorted(assignment)))
        )

    async def _elapse(self, ms: int, after: Sequence[Step]) -> Observation:
        doubt, waited_s = await elapse(self._deadlines, ms, after, "consumer-elapse")
        self._doubt = self._doubt or doubt
        self.waited_s += waited_s
        return Replied(())

    def _learn(self, index: int, step: Step, event: Beat | Pass, seen: Observation) -> None:
        op = Op(index, step, seen)
        if isinstance(seen, Replied | Refused):
            self._known = AnsweredHeartbeat(op, event, payload(op), self._known).known_after()

    def _noted(self, found: Sequence[Observation]) -> tuple[Observation, ...]:
        return noted(found, self._doubt, self.setting.config, DEFAULT)

    async def leave(self) -> None:
        """All members leave."""
        instances = {each.client: instance for instance, each in self._known.holders.items()}
        for name in self._known.clients:
            body = {
                "groupId": self.group, "memberId": name, "memberEpoch": LEAVING, "instanceId": instances.get(name)
            }  # fmt: skip
            with suppress(Closed, Garbled):
                await self.connections.ask(HEARTBEAT, self.setting.version, "kipcheck", body)


async def ask(
    connections: Connections, api: str, version: int, client: str, body: Mapping[str, Any]
) -> Mapping[str, Any] | Died:
    """The body of the answer, or why there is none."""
    try:
        return await connections.ask(api, version, client, body)
    except Closed as why:
        return Died("crashed", f"{api} v{version}: {why}")
    except Garbled as why:
        return Died("garbled", f"{api} v{version}: {why}")


async def elapse(deadlines: Deadlines, ms: int, after: Sequence[Step], verb: str) -> tuple[str, float]:
    """The doubt in a wait of so many milliseconds, and the seconds that it took. ``after``: the steps behind it;
    ``verb``: of the next wait among them."""
    began = now()
    requests = len([*takewhile(lambda each: each.verb != verb, after)])
    until, doubt = deadlines.wait(ms, began, requests * REQUEST_S)
    await asyncio.sleep(until - began)
    return doubt, now() - began


def noted(found: Sequence[Observation], doubt: str, config: Settings, usual: Settings) -> tuple[Observation, ...]:
    """With the settings of the broker, if they are not the usual ones, and the doubt, at the first answer that has
    fields."""
    notes: list[tuple[str, Any]] = []
    if doubt:
        notes.append((DOUBT, doubt))
    if config != usual:
        notes.append((SETTINGS, asdict(config)))
    for at, each in enumerate(found):
        if isinstance(each, Replied) and notes:
            return (*found[:at], replace(each, payload=(*each.payload, *notes)), *found[at + 1 :])
    return tuple(found)
