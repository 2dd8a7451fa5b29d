"""What is kept of members is bounded, whatever they send, and says the same of them."""

import gc
from types import FunctionType, ModuleType
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.recording import embedded
from kipcheck.conformance.live.watch import coordinator, watcher as watchers
from kipcheck.conformance.live.watch.track import MOST_EVENTS, outstanding, unanswered
from kipcheck.conformance.live.watch.watcher import Connection, Watcher
from kipcheck.conformance.protocols.client.events import AnswerSeen, Closed, Event, RequestSeen
from kipcheck.conformance.tests.live.watch.test_captures import JOIN, JOINED
from kipcheck.conformance.tests.support.captures import exchange
from kipcheck.conformance.wire.schema import Layout, MessageSpec

ASSIGNMENT = bytes.fromhex("00000000000100017400000001" + "00000000" + "00000000")


class Member:
    """One member of a group over one connection."""

    def __init__(self, watcher: Watcher, at_s: float = 0.0, id: str = "m", group: str = "g") -> None:
        self.watcher, self.at_s, self.id, self.group, self.sent = watcher, at_s, id, group, 0
        self.connection: Connection = watcher.opened(at_s, "127.0.0.1", 5)

    def ask(self, api: str, version: int, body: dict[str, Any], reported: dict[str, Any], pause_s: float = 0.1) -> None:
        self.sent += 1
        asked, answered = exchange(api, version, self.sent, body, reported)
        self.at_s += pause_s
        found = self.watcher.asked(self.connection, self.at_s, asked.data[4:])
        assert self.watcher.answered(self.connection, self.sent) is found
        self.watcher.answer(self.connection, self.at_s + 0.01, found, answered.data[4:])
        self.at_s += 0.01
        self.watcher.tick(self.at_s)

    def join(self, generation: int = 1, fresh: bool = True) -> None:
        asked = {**JOIN, "groupId": self.group}
        if fresh:
            self.ask("JoinGroup", 5, asked, {**JOINED, "errorCode": 79, "memberId": self.id})
        reported = {**JOINED, "memberId": self.id, "generationId": generation}
        self.ask("JoinGroup", 5, {**asked, "memberId": self.id}, reported)
        self.ask("SyncGroup", 3, {**self.named(generation), "assignments": []}, {"assignment": ASSIGNMENT})

    def named(self, generation: int) -> dict[str, Any]:
        return {"groupId": self.group, "memberId": self.id, "generationId": generation}

    def beat(self, generation: int, error: int = 0) -> None:
        self.ask("Heartbeat", 3, self.named(generation), {"errorCode": error}, 1.0)


def laws(watcher: Watcher) -> list[str]:
    return [each.law.id for each in watcher.reported]


def test_heartbeats_without_end_are_kept_once() -> None:
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.join()
    for _ in range(2000):
        member.beat(1)
    (track,) = {id(each): each for each in watcher._tracks.values()}.values()
    assert len(track.events) < 20
    member.beat(3)
    watcher.end(member.at_s)
    assert laws(watcher) == ["client/names-itself"]


@pytest.mark.integration
def test_rebalances_without_end_are_kept_short_and_judged() -> None:
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.join()
    for generation in range(2, 120):
        member.beat(generation - 1, error=27)
        for _ in range(4):
            member.beat(generation - 1)
        member.join(generation, fresh=False)
        for _ in range(4):
            member.beat(generation)
        member.at_s += 1
    (track,) = {id(each): each for each in watcher._tracks.values()}.values()
    assert track.shortened
    assert len(track.events) < 2 * MOST_EVENTS
    assert laws(watcher) == []
    member.ask("JoinGroup", 5, {**JOIN, "memberId": "another"}, {**JOINED, "errorCode": 25})
    watcher.end(member.at_s)
    assert laws(watcher) == ["client/joins-with-its-id"]


def test_heartbeats_of_kip_848_without_end_are_kept_short_and_judged() -> None:
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    named = {"groupId": "g", "memberId": "m", "memberEpoch": 1}
    lists: dict[str, Any] = {"topicPartitions": []}
    whole = {**named, "rebalanceTimeoutMs": 6000, "subscribedTopicNames": ["t"], **lists}
    beaten = {"errorCode": 0, "memberId": "m", "memberEpoch": 1, "heartbeatIntervalMs": 5000, "assignment": None}
    member.ask("ConsumerGroupHeartbeat", 1, {**whole, "memberEpoch": 0}, {**beaten, "assignment": lists})
    for _ in range(2000):
        member.ask("ConsumerGroupHeartbeat", 1, {**named, "rebalanceTimeoutMs": -1, "topicPartitions": None}, beaten)
    (track,) = {id(each): each for each in watcher._tracks.values()}.values()
    assert len(track.events) < 20
    for _ in range(500):
        member.ask("ConsumerGroupHeartbeat", 1, whole, {**beaten, "assignment": lists}, 1.0)
    assert track.shortened and len(track.events) < 2 * MOST_EVENTS
    strange = {"memberEpoch": 3}
    member.ask("ConsumerGroupHeartbeat", 1, {**named, **strange, "topicPartitions": None}, {**beaten, **strange})
    watcher.end(member.at_s)
    assert laws(watcher) == ["client/names-its-epoch"]


def objects(root: object) -> int:
    """The objects that are reachable, without code."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type | ModuleType | FunctionType | Layout | MessageSpec):
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    return len(seen)


def test_many_members_and_groups_are_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(APACHE, lambda line: None)
    for module, name in (
        (watchers, "MOST_TRACKS"),
        (coordinator, "MOST_MEMBERS"),
        (coordinator, "MOST_GROUPS"),
        (embedded, "MOST_GROUPS"),
    ):
        monkeypatch.setattr(module, name, 20)
    found = []
    for number in range(90):
        Member(watcher, float(number), f"m{number}", f"g{number}").join()  # whose connections are never closed
        if number in (44, 89):
            found.append(objects(watcher))
    assert found[1] < found[0] * 1.05, found
    assert len(watcher._tracks) == 20
    assert watcher.counts["forgotten members"] == 70


def test_two_members_over_one_connection_are_not_judged() -> None:
    watcher = Watcher(APACHE, lambda line: None)
    one, other = Member(watcher, id="a"), Member(watcher, id="b")
    one.join()
    other.join()
    one.ask("Heartbeat", 3, {**one.named(1), "memberId": "b"}, {"errorCode": 0})
    watcher.end(one.at_s)
    assert laws(watcher) == []


def test_other_protocol_types_are_not_judged() -> None:
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.ask("JoinGroup", 5, {**JOIN, "protocolType": "connect"}, {**JOINED, "memberId": "m"})
    member.beat(9)
    watcher.end(member.at_s)
    assert laws(watcher) == []


def test_a_request_with_many_entries_passes_and_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own arrays, or in those of the bytes that it contains."""
    lines: list[str] = []
    watcher = Watcher(APACHE, lines.append)
    member = Member(watcher)
    member.join()
    crowded = {**JOIN, "memberId": "m", "protocols": [{"name": str(each), "metadata": b""} for each in range(20_001)]}
    member.ask("JoinGroup", 5, crowded, {**JOINED, "memberId": "m"})
    within = b"\0\0" + (20_001).to_bytes(4, "big") + b"\0\1t" * 20_001 + bytes(4)
    member.ask("JoinGroup", 5, {**JOIN, "protocols": [{"name": "range", "metadata": within}]}, JOINED)
    assert lines == ["requests with more than 20000 entries pass, and are not judged"]
    assert watcher.counts["gaps"] == 2
    assert not watcher.counts["our bugs"]
    assert laws(watcher) == []


def test_a_history_of_a_share_consumer_that_is_shortened_keeps_what_is_acquired() -> None:
    acquired = ("t-0", 0, 9)
    asked = RequestSeen(2, 1, "ShareFetch", 1, "m", session_epoch=1, acknowledged=(("t-0", 2, 3, 1), ("t-0", 8, 8, 4)))
    traffic: list[Event] = [AnswerSeen(1, 1, "ShareFetch", acquired=(acquired,)), asked]
    assert outstanding(traffic) == (("t-0", 0, 1), ("t-0", 4, 9))
    assert unanswered(traffic) == [asked]
    assert unanswered([*traffic, Closed(3, 1)]) == unanswered([*traffic, AnswerSeen(3, 1, "ShareFetch")]) == []
