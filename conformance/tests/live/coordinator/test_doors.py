"""A conversation has the same answers through messages as without them: the player's door is a machine here."""

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, cast
from uuid import UUID

import pytest

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.field_annotations import fields_of
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator import admin, heartbeat_play
from kipcheck.conformance.live.coordinator.consumer_group_time import EARLY, Deadlines
from kipcheck.conformance.live.coordinator.heartbeat_play import (
    KEEPER,
    HeartbeatConversation,
    ShareGroupConversation,
)
from kipcheck.conformance.live.coordinator.settings import Scale, Setting, Topics
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.heartbeat import Heartbeat, HeartbeatAnswer
from kipcheck.conformance.protocols.consumer_group.model import TOPICS, ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Answered, Beat
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.consumer_group.target import MACHINE
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.group.model import answers
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.reconciled.terms import Rejected, Says
from kipcheck.conformance.protocols.share_group import heartbeat as shares
from kipcheck.conformance.protocols.share_group.clients import ShareClients
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS as SHARES
from kipcheck.conformance.protocols.share_group.rules import DEFAULT as SHARE_DEFAULT
from kipcheck.conformance.wire.bodies import body_of, layout_of, read_body

GROUP: Final = "g"
IDS: Final = {name: UUID(int=number) for number, name in enumerate(TOPICS, 1)}
SETTING: Final = Setting(
    Rules.of("4.3.1"), answers.DEFAULT, Topics({name: name for name in TOPICS}, TOPICS, IDS), Scale(1, 0), {68: (0, 1)},
    0.0, 0, 0, consumers=DEFAULT,
)  # fmt: skip
CONVERSATIONS: Final = 150


class MachineDoor:
    """A coordinator in this process, which reads and writes messages."""

    def __init__(self) -> None:
        self.machine: ConsumerGroup = MACHINE.of(APACHE)
        self.state = self.machine.initial()

    async def ask(self, api: str, version: int, client: str, body: Mapping[str, Any]) -> dict[str, Any]:
        data = layout_of(Heartbeat, version).encode(body)
        context, decoded = SETTING.context_by_ids(GROUP), layout_of(Heartbeat, version).decode(data)
        request = read_body(Heartbeat, version, decoded, context)
        group = wire_form.named(Heartbeat, layout_of(Heartbeat, version), decoded)["group"]
        empty = {"group": group, "member": request.member, "instance": request.instance, "rack": request.rack}
        lacks = next((name for name, value in empty.items() if value == ""), None)
        beat = Beat(
            request.member, Says.STAY, 0, request.topics, None, request.instance or None, request.regex,
            request.assignor, cast(Any, lacks or ("timeout" if request.rebalance_ms < 0 else None)),
        )  # fmt: skip
        self.state, (answer,) = self.machine.heartbeat(self.state, beat, request.epoch, request.owned)
        return body_of(self.answered(answer), version, context)

    def answered(self, answer: Answered | Rejected) -> HeartbeatAnswer:
        if isinstance(answer, Rejected):
            return HeartbeatAnswer(KafkaError[answer.error])
        return HeartbeatAnswer(0, None, answer.client, answer.epoch, 0, answer.assignment)


def drawn(random: Random) -> tuple[Step, ...]:
    """Heartbeats of three clients, most of which join first."""
    names = [each for each in fields_of(Beat) if each.typical]
    beats = []
    for number in range(12):
        values = {
            each.name: random.choice(each.typical if number > 3 and random.random() < 0.3 else each.typical[:1])
            for each in names
        }
        beat = replace(Beat("a", Says.STAY), **{**values, "says": Says(values["says"]), "behind": 0})
        beat = replace(beat, client=random.choice("abc"))
        beats.append(replace(beat, says=Says.JOIN, topics=("t",), owned="none") if number < 3 else beat)
    return tuple(map(OPERATIONS.step_of, beats))


def without_messages(steps: tuple[Step, ...]) -> list[tuple[str, Any]]:
    adapter = adapter_of(OPERATIONS, MACHINE.of(APACHE))
    found = [adapter.answer({"op": step.verb, "case": 1, **step.body}) for step in steps]
    return [
        ("refused", each["class"]) if each["status"] == "rejected" else ("replied", (each["epoch"], each["assignment"]))
        for each in found
    ]


def shown(observation: Observation) -> tuple[str, Any]:
    if isinstance(observation, Refused):
        return "refused", observation.error
    assert isinstance(observation, Replied)
    answer = dict(observation.payload)
    return "replied", (answer["epoch"], answer["assignment"])


def test_heartbeats_have_the_same_answers_through_messages() -> None:
    accepted = refused = 0
    for number in range(CONVERSATIONS):
        steps = drawn(Random(number))
        door = cast(Connections, MachineDoor())
        conversation = HeartbeatConversation(SETTING, GROUP, door, ConsumerClients(DEFAULT))
        observed = [shown(each) for each in asyncio.run(conversation.play(steps))]
        assert observed == without_messages(steps), OPERATIONS.shorthand(steps)
        accepted += sum(kind == "replied" for kind, _ in observed)
        refused += sum(kind == "refused" for kind, _ in observed)
    assert accepted > 500 and refused > 100


class AdministeredDoor(MachineDoor):
    """One that also takes settings of groups, and topics."""

    def __init__(self, refuses: bool = False) -> None:
        super().__init__()
        self.refuses = refuses
        self.plain: list[tuple[int, bytes]] = []

    async def ask_plain(self, key: int, version: int, body: bytes) -> bytes:
        self.plain.append((key, body))
        error = struct.pack(">h", int(KafkaError.INVALID_CONFIG) if self.refuses else 0) + admin.text(None)
        if key == admin.ALTER_CONFIGS:
            return struct.pack(">ii", 0, 1) + error
        if key == admin.CREATE_TOPICS:
            return struct.pack(">ii", 0, 1) + admin.text(f"{GROUP}-v") + error
        return struct.pack(">ii", 0, 0)

    async def ask(self, api: str, version: int, client: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if api != "Metadata":
            return await super().ask(api, version, client, body)
        return {"topics": [{"name": f"{GROUP}-v", "topicId": UUID(int=9), "errorCode": 0}]}


def conversed(text: str, door: MachineDoor, times: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Observation, ...]:
    monkeypatch.setattr(admin, "APPLIES_S", 0.0)
    monkeypatch.setattr(heartbeat_play, "PAUSE_S", 0.0)
    versions = {**SETTING.versions, admin.METADATA: (0, 12)}
    setting = replace(SETTING, scale=Scale(times, 0), versions=versions, longest_ms=60_000, most_ms=290_000)
    conversation = HeartbeatConversation(setting, GROUP, cast(Connections, door), ConsumerClients(DEFAULT))

    async def all_of_it() -> tuple[Observation, ...]:
        found = await conversation.play(OPERATIONS.parse_shorthand(text))
        await conversation.leave()
        return found

    return asyncio.run(all_of_it())


def test_a_session_timeout_of_a_group_is_set_in_the_time_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    door = AdministeredDoor()
    found = conversed("join a on t none; configure session 60000; beat a told", door, 5, monkeypatch)
    assert [type(each) for each in found] == [Replied] * 3
    (altered,) = [body for key, body in door.plain if key == admin.ALTER_CONFIGS]
    assert admin.text("consumer.session.timeout.ms") + b"\0" + admin.text("12000") in altered


def test_what_a_broker_does_not_take_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "join a on t none; configure session 60000; create v; beat a told"
    found = conversed(text, AdministeredDoor(refuses=True), 1, monkeypatch)
    assert [type(each) for each in found] == [Replied, Unsupported, Unsupported, Replied]


def test_a_later_topic_is_one_of_the_conversation_in_which_time_passes_as_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = AdministeredDoor()
    found = conversed("join a none like t|v; create v; pass 50; beat a told", door, 5, monkeypatch)
    assert [type(each) for each in found] == [Replied] * 4
    keys = [key for key, _ in door.plain]
    assert keys == [admin.ALTER_CONFIGS, admin.CREATE_TOPICS, admin.DELETE_TOPICS]
    assert admin.text("45000") in door.plain[0][1] and admin.text(f"{GROUP}-v") in door.plain[1][1]


class ShareDoor(AdministeredDoor):
    """Prepares the state of share partitions between the first heartbeat and the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.members: list[tuple[str, int]] = []

    async def ask(self, api: str, version: int, client: str, body: Mapping[str, Any]) -> dict[str, Any]:
        assert api == "ShareGroupHeartbeat"
        request = read_body(shares.Heartbeat, version, body, SETTING.context_by_ids(GROUP))
        self.members.append((request.member, request.epoch))
        given = tuple((topic, each) for topic, size in TOPICS.items() for each in range(size))
        answer = shares.HeartbeatAnswer(0, None, request.member, 1, 0, given if len(self.members) > 1 else ())
        return body_of(answer, version, SETTING.context_by_ids(GROUP))


def test_a_conversation_with_a_share_group_begins_when_partitions_have_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "APPLIES_S", 0.0)
    door, clients = ShareDoor(), ShareClients(SHARE_DEFAULT)
    setting = replace(SETTING, scale=Scale(5, 0), versions={76: (1, 1)}, longest_ms=60_000, most_ms=290_000)
    conversation = ShareGroupConversation(setting, GROUP, cast(Connections, door), clients)
    (found,) = asyncio.run(conversation.play(SHARES.parse_shorthand("join a on t")))
    assert isinstance(found, Replied)
    assert door.members == [(KEEPER, 0), (KEEPER, 0), (KEEPER, -1), ("a", 0)]
    ((key, altered),) = door.plain
    assert key == admin.ALTER_CONFIGS and admin.text("share.session.timeout.ms") + b"\0" + admin.text("9000") in altered


def test_sessions_are_as_long_as_the_group_states_from_the_next_heartbeat_and_a_reload_on() -> None:
    @dataclass(frozen=True)
    class Member:
        name: str = "a"
        member: bool = True
        expired: bool = False
        unrevoked: tuple[object, ...] = ()
        revoking_ms: int = 0

    deadlines = Deadlines(45_000, 1, 0.0)
    deadlines.answered(Member(), True, Span(0.0, 0.1))
    deadlines.session_ms = 60_000
    assert deadlines.sent(46.0) == EARLY
    deadlines.renewed(Span(1.0, 2.0))
    assert not deadlines.sent(60.0) and deadlines.sent(61.0) == EARLY
