"""Plays a conversation of clients of both protocols with the coordinator of one group of a running broker."""

import asyncio
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.classic_play import AFTER_S, LIMITS, LOST, PARKS_S, PATIENCE_S, TIME, Setting
from kipcheck.conformance.live.coordinator.consumer_group_play import ConsumerConversation, ConsumerSetting, ask, noted
from kipcheck.conformance.live.server.answered_errors import name_of
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.ops import (
    OPERATIONS as CONSUMER_OPERATIONS,
    REBALANCE_MS,
    Beat,
    Pass,
)
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.migration.metadata import dealt
from kipcheck.conformance.protocols.migration.model import RESETS
from kipcheck.conformance.protocols.migration.ops import (
    BUSY,
    GIVING_IDS,
    NONE,
    NOTHING,
    OPERATIONS,
    PARKED,
    SESSION_MS,
    VERSION,
    Classic,
    ClassicBeat,
    ClassicJoin,
    ClassicLeave,
    ClassicRemove,
    ClassicSync,
    Receive,
    Received,
)
from kipcheck.conformance.protocols.reconciled.terms import Partitions

LATEST_S: Final = 0.8
"""How much longer than stated a conversation may take, so that no timer expires before its step."""


@dataclass(slots=True, eq=False)
class _Client:
    """One that uses the classic protocol."""

    id: str = ""
    instance: str | None = None
    """In its last JoinGroup."""
    generation: int = 0
    given: Partitions = ()
    request: Classic | None = None
    """That is not answered yet."""
    answer: Mapping[str, Any] | None = None
    """To it, while it is not received."""
    failed: Died | None = None
    task: "asyncio.Task[None] | None" = None


@dataclass(slots=True)
class MixedConversation:
    shared: Setting
    setting: ConsumerSetting
    group: str
    connections: Connections
    waited_s: float = 0.0
    _consumers: ConsumerConversation = field(init=False)
    _clients: dict[str, _Client] = field(default_factory=dict)
    _stated_ms: int = 0

    def __post_init__(self) -> None:
        self._consumers = ConsumerConversation(self.shared, self.setting, self.group, self.connections)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of members that use the classic protocol."""
        return tuple(each.id for each in self._clients.values() if each.id)

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step."""
        began, found = now(), list[Observation]()
        try:
            for index, step in enumerate(steps):
                broken = bool(found) and isinstance(found[-1], Died)
                found.append(LOST if broken or LOST in found[-1:] else await self._step(index, step))
        finally:
            for each in self._clients.values():
                if each.task is not None:
                    each.task.cancel()
            tasks = [each.task for each in self._clients.values() if each.task is not None]
            await asyncio.gather(*tasks, return_exceptions=True)
        late = now() - began - self._stated_ms / 1000 / self.shared.scale.times
        doubt = f"the conversation took {late:.1f} s too long" if late >= LATEST_S else ""
        return noted(found, doubt, self.setting.config, DEFAULT)

    async def _step(self, index: int, step: Step) -> Observation:
        event = OPERATIONS.event_of(step)
        match event:
            case Pass(ms):
                return await self._elapse(index, event, ms)
            case Beat():
                return await self._consumers.step(index, CONSUMER_OPERATIONS.step_of(event))
            case _:
                return await self._classic(event)

    async def _elapse(self, index: int, event: Pass, ms: int) -> Observation:
        self._stated_ms += ms
        if ms > self.shared.longest_ms or self._stated_ms > self.shared.most_ms:
            self._stated_ms -= ms
            return Unsupported(LIMITS[TIME], TIME)
        until = now() + ms / 1000 / self.shared.scale.times + self.shared.margin_s
        seen = await self._consumers.step(index, CONSUMER_OPERATIONS.step_of(event))
        self.waited_s += max(until - now(), 0)
        await asyncio.sleep(until - now())
        return seen

    # Requests of the classic protocol

    async def _classic(self, event: Classic) -> Observation:
        client = self._clients.setdefault(event.client, _Client())
        if isinstance(event, Receive):
            if client.request is None:
                return _observed(Received(event.client, NOTHING))
        elif client.request is not None:
            return _observed(Received(event.client, BUSY))
        else:
            client.request, client.answer = event, None
            client.task = asyncio.ensure_future(self._exchange(event, client))
            await asyncio.wait([client.task], timeout=PARKS_S)
        await self._handled(client)
        if client.failed is not None:
            return client.failed
        return _observed(Received(event.client, PARKED) if client.answer is None else self._received(event, client))

    async def _handled(self, client: _Client) -> None:
        """Waits until the coordinator has handled the request, as it handles those of a group one after the other.

        The LeaveGroup of a client that is no member changes nothing, and is answered when all is written that was
        appended before it.
        """
        assert client.task is not None
        if not client.task.done():
            began = now()
            body = {"groupId": self.group, "members": [{"memberId": "?", "groupInstanceId": None}]}
            with suppress(Closed, Garbled):
                await self.connections.ask("LeaveGroup", VERSION, "kipcheck", body)
            await asyncio.wait([client.task], timeout=max(AFTER_S, 2 * (now() - began)))
        if isinstance(client.request, ClassicBeat | ClassicLeave | ClassicRemove):
            await asyncio.wait([client.task], timeout=PATIENCE_S)

    async def _exchange(self, event: Classic, client: _Client) -> None:
        version = VERSION
        if isinstance(event, ClassicJoin):
            client.instance, version = event.instance, event.sent_version
        api, body = self._request(event, client)
        found = await ask(self.connections, api, version, event.client, body)
        if isinstance(found, Died):
            client.failed = found
        else:
            client.answer = found

    def _request(self, event: Classic, client: _Client) -> tuple[str, dict[str, Any]]:
        id, group = client.id or "?", self.group
        one: dict[str, str | None] = {"memberId": id, "groupInstanceId": client.instance}
        stated = {"groupId": group, **one}
        match event:
            case ClassicJoin():
                owned = client.given if event.owned == "told" else ()
                blob = struct.pack(">hi", 1, len(event.topics))
                blob += b"".join(_text(self.setting.names[each]) for each in event.topics) + struct.pack(">i", -1)
                blob += self._partitions(owned)
                return "JoinGroup", {
                    **stated, "memberId": client.id, "protocolType": "consumer",
                    "sessionTimeoutMs": self.shared.scale.ms(SESSION_MS),
                    "rebalanceTimeoutMs": self.shared.scale.ms(REBALANCE_MS),
                    "protocols": [{"name": name, "metadata": blob} for name in event.protocols],
                }  # fmt: skip
            case ClassicSync():
                shares = []
                for name, given in dealt(event):
                    blob = struct.pack(">h", 0) + self._partitions(given) + struct.pack(">i", -1)
                    known = self._clients.get(name)
                    shares.append({"memberId": "?" if known is None else known.id, "assignment": blob})
                generation = client.generation - event.behind
                return "SyncGroup", {**stated, "generationId": generation, "assignments": shares}
            case ClassicBeat():
                return "Heartbeat", {**stated, "generationId": client.generation - event.behind}
            case ClassicRemove():
                removed = {"memberId": "", "groupInstanceId": event.instance}
                return "LeaveGroup", {"groupId": group, "members": [removed]}
            case _:
                return "LeaveGroup", {"groupId": group, "members": [one]}

    def _partitions(self, partitions: Partitions) -> bytes:
        by_topic: dict[str, list[int]] = {}
        for topic, number in partitions:
            by_topic.setdefault(self.setting.names[topic], []).append(number)
        rows = (
            _text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
            for name, numbers in by_topic.items()
        )
        return struct.pack(">i", len(by_topic)) + b"".join(rows)

    def _received(self, event: Classic, client: _Client) -> Received:
        """The answer, which the client learns."""
        request, answer = client.request, client.answer
        assert request is not None and answer is not None
        client.request = client.answer = client.task = None
        error = name_of(answer["errorCode"]) if answer["errorCode"] else NONE
        found = Received(event.client, error)
        if error in RESETS:
            client.id, client.given = "", ()
        match request:
            case ClassicLeave() | ClassicRemove():
                client.id, client.given = "", ()
                own = answer["members"][0]["errorCode"] if answer["members"] else 0
                return replace(found, error=name_of(own)) if error == NONE and own else found
            case ClassicJoin() if error in GIVING_IDS:
                client.id = answer["memberId"]
            case ClassicJoin() if error == NONE:
                client.id, client.generation = answer["memberId"], answer["generationId"]
                leader = answer["leader"]
                return replace(found, generation=client.generation, led=leader != "", leads=leader == client.id)
            case ClassicSync() if error == NONE:
                client.given = self._assigned(answer["assignment"] or b"")
                return replace(found, assignment=client.given)
        return found

    def _assigned(self, data: bytes) -> Partitions:
        """The partitions in an assignment of a consumer. Empty for no bytes."""
        own = {name: topic for topic, name in self.setting.names.items() if topic in TOPICS}
        found: list[tuple[str, int]] = []
        at = 2
        (topics,) = struct.unpack_from(">i", data, at) if len(data) > at else (0,)
        at += 4
        for _ in range(topics):
            (size,) = struct.unpack_from(">h", data, at)
            name = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
            (count,) = struct.unpack_from(">i", data, at)
            found += ((own.get(name, name), each) for each in struct.unpack_from(f">{count}i", data, at + 4))
            at += 4 + 4 * count
        return tuple(sorted(found))

    async def leave(self) -> None:
        """The consumers leave."""
        await self._consumers.leave()


def _observed(received: Received) -> Replied:
    answer = dict(OPERATIONS.answer_of([received]))
    del answer["status"]
    return Replied(tuple(answer.items()))


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data
