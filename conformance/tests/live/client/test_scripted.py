"""The broker that follows scripts: what it answers, and what our own consumer gets of it over sockets."""

import asyncio
import time
import uuid
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.live.client import play as play_module, scripted
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.defective.membership import Silent, Stays
from kipcheck.conformance.live.client.disturbances import InOneSegment
from kipcheck.conformance.live.client.failed_start import advice, unserved
from kipcheck.conformance.live.client.in_process import SETTLE_S, Consumers, consumer
from kipcheck.conformance.live.client.launch import Program
from kipcheck.conformance.live.client.other_members import assignment
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.scripted import ScriptedBroker
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.client.events import Closed, Event, Opened, RequestSeen
from kipcheck.conformance.protocols.client.ops import OPERATIONS, Member
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.wire.framing import encode_request, frame

SUBSCRIBED: Final = bytes.fromhex("00000000000100017400000000")
OURS: Final = {
    "answered": "answer FindCoordinator COORDINATOR_NOT_AVAILABLE; answer Heartbeat ILLEGAL_GENERATION; stop",
    "at the end": "answer LeaveGroup NOT_COORDINATOR; stop",
    "moved": "move; rebalance; move; stop",
    "reset": "reset Heartbeat; reset Heartbeat amid; reset JoinGroup after; stop",
    "silent": "silent Heartbeat 300; stop",
    "together": "together Heartbeat; tags Heartbeat; stop",
    "others": "member reads t,u owns 1 of 1 v3 data noise; member damaged cut; rebalance; grow 8; rebalance; stop",
    "older": "older 3.9.2; rebalance; stop",
    "too old": "older 2.1.1; rebalance; stop",
    "again": "assign 2; others 1 follow; restart; assign 1,7,9; grow 8; rebalance; stop",
    "several": "answer Heartbeat NOT_COORDINATOR times 6; answer JoinGroup UNKNOWN_MEMBER_ID times 2; "
    "answer OffsetFetch NOT_COORDINATOR times 2; late Heartbeat 100 times 2; reset SyncGroup times 2; "
    "silent Heartbeat 100 times 2; stop",
    "prepared": "pass 200; answer JoinGroup NOT_COORDINATOR times 6 at next; rebalance; stop",
    "at the start": "answer JoinGroup NOT_COORDINATOR times 2 at start; late Heartbeat 100 at start; pass 200; "
    "answer OffsetCommit NOT_COORDINATOR at stop; restart; stop",
    "refused": "refuse JoinGroup GROUP_AUTHORIZATION_FAILED at start; stop",
    "refused when it starts again": "pass 200; refuse JoinGroup GROUP_AUTHORIZATION_FAILED at start; restart; stop",
    "other ranges": "offer Metadata 0-4; offer SyncGroup 4-5; intervals 1000 of 10000; rebalance; stop",
    "none of them": "offer JoinGroup 6-9; rebalance; stop",
    "no such range": "offer Fetch 0-3; rebalance; stop",
    "down": "down coordinator 300; rebalance; down all 300 then 3.9.2; rebalance; down coordinator 300 silent; stop",
    "deleted": "disband; pass 200; stop",
    "deleted group of KIP-848": "protocol consumer; disband; answer ConsumerGroupHeartbeat GROUP_ID_NOT_FOUND times 2; "
    "answer OffsetCommit STALE_MEMBER_EPOCH; stop",
    "throttled": "throttle Heartbeat 400; pass 900; stop",
    "other protocol": "answer ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID; stop",
}


@pytest.fixture(scope="module")
def played() -> dict[str, list[dict[str, Any]]]:
    """The answers to scripts, played at once by consumers of ours."""

    async def run() -> list[list[dict[str, Any]]]:
        scripts = map(OPERATIONS.parse_shorthand, OURS.values())
        return await asyncio.gather(
            *(play(served("apache"), Consumers(Consumer), each, SETTLE_S * 3) for each in scripts)
        )

    return dict(zip(OURS, asyncio.run(run()), strict=True))


Played = Mapping[str, list[dict[str, Any]]]


def events(played: Played, name: str, *whats: str) -> list[dict[str, Any]]:
    return [event for each in played[name] for event in each.get("actions", ()) if event["what"] in whats]


def errors(played: Played, name: str) -> list[tuple[str, int]]:
    """But for MEMBER_ID_REQUIRED, with which each new member begins."""
    found = [(event["api"], event.get("error", 0)) for event in events(played, name, "answer")]
    return [each for each in found if each[1] not in (0, 79)]


def test_each_client_settles_and_ends(played: Played) -> None:
    for name in OURS:
        if name not in ("too old", "refused", "refused when it starts again", "none of them", "no such range"):
            assert not events(played, name, "unsettled", "killed", "refused"), name
            assert events(played, name, "ended")[-1]["code"] == 0, name


def test_errors_come_where_the_script_wants_them(played: Played) -> None:
    assert errors(played, "answered")[0] == ("Heartbeat", 16)
    assert ("Heartbeat", 22) in errors(played, "answered")
    assert errors(played, "at the end") == [("LeaveGroup", 16)]
    assert not errors(played, "other protocol")


def test_several_requests_in_a_row_are_disturbed(played: Played) -> None:
    each = played["several"]
    wanted = [("Heartbeat", 16)] * 6, [("JoinGroup", 25)] * 2, [("OffsetFetch", 16)] * 2
    for step, answers in zip(each, wanted, strict=False):
        assert [answer for answer in errors({"step": [step]}, "step") if answer[1] != 27] == answers
    assert [len(events({"step": [step]}, "step", "closed")) for step in each[4:6]] == [2, 2]
    assert not any(event["unsent"] for event in events(played, "several", "settled"))


def test_a_client_has_its_time_again_after_each_prepared_error(played: Played) -> None:
    """librdkafka 2.16.1 and franz-go 1.22.2, whose back-off grows, were back 12 s after the first of six."""
    failed = [each["ms"] for each in events(played, "prepared", "answer") if each.get("error") == 16]
    settled = next(each for each in events(played, "prepared", "settled") if each["ms"] > failed[-1])
    assert len(failed) == 6 and settled["ms"] - settled["waited_ms"] >= failed[-2]


class OfItsOwn(Consumer):
    """Offers an assignor that no other client has."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.assignors = ["RoundRobinAssigner"]


def test_other_members_go_on_with_the_assignor_of_a_client_that_left() -> None:
    """kafkajs 2.2.4 offers RoundRobinAssigner alone; a group that has moved knows that one of all others too."""
    steps = OPERATIONS.parse_shorthand("others 2 follow; move; stop")
    found = asyncio.run(play(served("apache"), Consumers(OfItsOwn), steps, SETTLE_S))
    assert events({"it": found}, "it", "ended")[-1]["code"] == 0


def test_requests_of_a_start_and_of_an_end_are_answered_with_errors(played: Played) -> None:
    assert [each for each in errors(played, "at the start") if each[0] == "JoinGroup"] == [("JoinGroup", 16)] * 2
    assert not any(event["unsent"] for event in events(played, "at the start", "settled"))
    for name, joins in (("refused", 0), ("refused when it starts again", 1)):
        assert errors(played, name) == [("JoinGroup", 30)] and len(events(played, name, "joined")) == joins
        assert events(played, name, "ended")[-1]["code"] == 1


def test_a_broker_offers_the_ranges_of_the_script(played: Played) -> None:
    offered = [each["highest"] for each in events(played, "other ranges", "answer") if each["api"] == "ApiVersions"]
    assert {(each["3"], each["14"]) for each in offered} == {(4, 5)} and len(offered) == 2
    (start,) = events(played, "other ranges", "launched")
    assert (start["heartbeat_ms"], start["session_ms"]) == (1000, 10_000)
    assert "does not join with JoinGroup 6 to 9" in played["none of them"][1]["message"]
    assert played["no such range"][1] == {
        "status": "unsupported", "message": "the broker has no version 0 to 3 of Fetch",
    }  # fmt: skip


def test_nodes_go_down_and_come_back(played: Played) -> None:
    why = [each["why"] for each in events(played, "down", "closed") if each["why"]]
    assert set(why) == {"by the script"} and len(why) >= 3
    offered = {each["highest"]["0"] for each in events(played, "down", "answer") if each["api"] == "ApiVersions"}
    assert offered == {13, 11}  # of Produce
    assert len(events(played, "down", "settled")) == 5


def test_a_group_is_deleted(played: Played) -> None:
    # Of a busy machine a commit may come first, whose error is ILLEGAL_GENERATION.
    assert {("Heartbeat", 25), ("JoinGroup", 25)} & {*errors(played, "deleted")}
    given = [each["committed"] for each in events(played, "deleted", "answer") if each["api"] == "OffsetFetch"]
    assert {*given[-1].values()} == {-1}
    found = errors(played, "deleted group of KIP-848")
    assert found.count(("ConsumerGroupHeartbeat", 69)) == 3


def test_a_throttled_client_is_not_read_meanwhile(played: Played) -> None:
    beats = [each for each in events(played, "throttled", "answer") if each["api"] == "Heartbeat"]
    assert max(after["ms"] - before["ms"] for before, after in pairwise(beats)) >= 400


def test_a_group_moves_with_its_members(played: Played) -> None:
    assert [error for _, error in errors(played, "moved")].count(16) == 2
    assert len(events(played, "moved", "opened")) == 4  # Ours opens one more to its coordinator, wherever that is.
    assert {each["generation"] for each in events(played, "moved", "answer") if each["api"] == "JoinGroup"} == {
        -1,
        1,
        2,
    }


def test_connections_end_at_any_point(played: Played) -> None:
    assert [each["why"] for each in events(played, "reset", "closed")][:3] == ["by the script"] * 3
    assert [each["why"] for each in events(played, "silent", "closed")][:1] == ["by the script"]


def test_two_answers_come_in_one_segment() -> None:
    """As do those of a client that has two requests in progress on one connection."""

    async def run() -> bytes:
        edition = served("apache")
        broker = ScriptedBroker(edition)
        broker.disturb("Heartbeat", InOneSegment())
        front = Front(broker, edition)
        reader, writer = await asyncio.open_connection(*await front.listen("127.0.0.1", 0))
        beat = {"groupId": "g", "generationId": 1, "memberId": "m"}
        for id in (1, 2):
            writer.write(frame(encode_request(edition, "HeartbeatRequest", 4, id, "c", beat)))
        try:
            return await reader.read(1000)
        finally:
            writer.close()
            await front.close()

    assert asyncio.run(run()).hex() == "".join(f"0000000c0000000{id}0000000000001900" for id in (1, 2))


def test_an_answer_waits_for_the_following_ones(played: Played) -> None:
    beats = [each for each in events(played, "together", "request", "answer") if each["api"] == "Heartbeat"]
    assert max(after["ms"] - before["ms"] for before, after in pairwise(beats)) >= 300


def test_a_client_that_leads_assigns_to_the_other_members(played: Played) -> None:
    given = [each["assignments"] for each in events(played, "others", "request") if each["api"] == "SyncGroup"]
    assert [len(each) for each in given] == [1, 3, 3]


def test_a_client_that_does_not_join_an_older_broker_is_not_judged(played: Played) -> None:
    assert {each["version"] for each in events(played, "older", "request") if each["api"] == "JoinGroup"} == {5}
    first = played["too old"][1]
    assert first["status"] == "unsupported" and "does not join with a broker of 2.1.1" in first["message"]


def test_a_program_starts_again(played: Played) -> None:
    assert len(events(played, "again", "ended")) == 2 and len(events(played, "again", "restarted")) == 1
    given = [each["partitions"] for each in events(played, "again", "answer") if each["api"] == "SyncGroup"]
    assert given == [["t-2"], ["t-2"], ["t-1", "t-7"]]


class SlowlyStarted:
    """Its program joins before the event loop hears that it was started, as on a busy machine."""

    launcher = Consumers(Consumer)
    ends_on_errors = True

    def given(self, settings: Settings) -> Mapping[str, str]:
        return self.launcher.given(settings)

    async def start(self, settings: Settings) -> Program:
        program = await self.launcher.start(settings)
        await asyncio.sleep(0.3)
        return program


def test_a_program_is_launched_before_it_sends_anything() -> None:
    steps = OPERATIONS.parse_shorthand("stop")
    (answer,) = asyncio.run(play(served("apache"), SlowlyStarted(), steps, SETTLE_S))
    assert answer["actions"][0]["what"] == "launched"


class Loaded(SlowlyStarted):
    """Its start stops the event loop."""

    async def start(self, settings: Settings) -> Program:
        program = await super().start(settings)
        time.sleep(0.5)  # noqa: ASYNC251 - as a busy machine does
        return program


def test_what_is_late_while_a_program_starts_casts_no_doubt() -> None:
    steps = OPERATIONS.parse_shorthand("pass 200; stop")
    answers = asyncio.run(play(served("apache"), Loaded(), steps, SETTLE_S))
    late = [each["late_ms"] for answer in answers for each in answer["actions"] if each["what"] == "idle"]
    assert len(late) >= len(steps) and max(late) < 400


def test_a_client_that_is_lost_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does later is seen, but a bound that it has passed is not waited for again."""
    monkeypatch.setattr(play_module, "LOST_S", 0.1)
    steps = OPERATIONS.parse_shorthand("rebalance; rebalance; stop")
    answers = asyncio.run(play(served("apache"), Consumers(Stays), steps, settle_s=0.8))
    first, later = [
        each["waited_ms"] for answer in answers for each in answer["actions"] if each["what"] == "unsettled"
    ]
    assert first >= 800 and 100 <= later < 800


def test_a_client_is_awaited_until_it_shows_that_it_does_not_return_or_for_the_back_off_of_its_user() -> None:
    """And no longer: one that shows no interval is left in the usual time."""

    async def run() -> tuple[list[dict[str, Any]], ...]:
        stays, silent = Consumers(Stays), Consumers(Silent)
        steps = OPERATIONS.parse_shorthand("rebalance; stop")
        return await asyncio.gather(
            play(served("apache"), stays, steps, settle_s=0.8),
            play(served("apache"), silent, steps, settle_s=0.8),
            play(served("apache"), silent, steps, settle_s=0.8, patience_s=0.1),
        )

    stays, silent, stated = (
        next(each["waited_ms"] for answer in answers for each in answer["actions"] if each["what"] == "unsettled")
        for answers in asyncio.run(run())
    )
    assert stays > 4000 and silent < 3000 and stated > 4000


class Sent:
    """A broker without sockets, whose time passes only while a request or the script is carried out."""

    def __init__(self) -> None:
        self.broker = ScriptedBroker(served("apache"))
        self.nodes = [("127.0.0.1", 1), ("127.0.0.1", 2)]
        self.runner = asyncio.Runner()

    def __call__(self, api: str, version: int, node: int = 0, **body: Any) -> Mapping[str, Any]:
        async def send() -> Mapping[str, Any]:
            answered = asyncio.get_running_loop().create_future()
            self.broker.handlers[request.message](request, answered.set_result)
            found: Mapping[str, Any] = await asyncio.wait_for(answered, 5)
            return found

        body = {"groupId": "g", **body}
        request = Received(f"{api}Request", version, 1, "c", body, 1, "127.0.0.1", 0.0, self.nodes[node])
        return self.runner.run(send())

    def script(self, step: str, *given: Any, **more: Any) -> None:
        """Calls a method of the broker."""

        async def call() -> None:
            getattr(self.broker, step)(*given, **more)

        self.runner.run(call())

    def join(self, id: str = "", version: int = 9, **more: Any) -> Mapping[str, Any]:
        protocols = [{"name": each, "metadata": SUBSCRIBED} for each in more.pop("assignors", ("range", "sticky"))]
        times = {"sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000}
        about: dict[str, Any] = {
            "memberId": id,
            "groupInstanceId": "i",
            "protocolType": "consumer",
            "protocols": protocols,
        }
        return self("JoinGroup", version, **times, **about, **more)

    def sync(self, joined: Mapping[str, Any], given: Mapping[str, bytes] | None = None) -> Mapping[str, Any]:
        found = [{"memberId": each, "assignment": data} for each, data in (given or {}).items()]
        about = {"protocolType": "consumer", "protocolName": joined["protocolName"]}
        return self("SyncGroup", 5, **names(joined), **about, assignments=found)

    def stable(self) -> Mapping[str, Any]:
        joined = self.join()
        self.sync(joined, {joined["memberId"]: assigned(0, 1)})
        return joined


@pytest.fixture
def send() -> Iterator[Sent]:
    found = Sent()
    with found.runner:
        yield found
        found.script("close")


def assigned(*numbers: int) -> bytes:
    return assignment(("t", number) for number in numbers)


def names(joined: Mapping[str, Any]) -> dict[str, Any]:
    return {"memberId": joined["memberId"], "generationId": joined["generationId"], "groupInstanceId": "i"}


@pytest.mark.parametrize("version", [5, 9])
def test_a_static_member_returns_to_a_stable_group_and_its_old_id_is_fenced(send: Sent, version: int) -> None:
    before = send.stable()
    again = send.join(version=version)
    assert again["generationId"] == before["generationId"] and again["memberId"] != before["memberId"]
    skips = version == 9
    assert again.get("skipAssignment", False) is skips
    assert [each["memberId"] for each in again["members"]] == [again["memberId"]] * skips
    assert again["leader"] == (again["memberId"] if skips else before["memberId"])
    assert send.sync(again)["assignment"] == assigned(0, 1)
    assert send("Heartbeat", 4, **names(before))["errorCode"] == 82
    assert send("Heartbeat", 4, **names(again))["errorCode"] == 0
    assert send.join(before["memberId"])["errorCode"] == 82


def test_a_static_member_with_other_protocols_rebalances_its_group(send: Sent) -> None:
    before = send.stable()
    assert send.join(assignors=("sticky", "range"))["generationId"] == before["generationId"] + 1


def test_another_program_fences_a_static_member(send: Sent) -> None:
    joined = send.stable()
    send.script("fence")
    assert send("Heartbeat", 4, **names(joined))["errorCode"] == 82
    assert send("Heartbeat", 4, **{**names(joined), "groupInstanceId": None})["errorCode"] == 25


def test_other_members_of_a_cooperative_group_give_up_before_another_gets_it(send: Sent) -> None:
    send.script("add_other", Member(topics=("t",)))
    joined = send.join(assignors=("cooperative-sticky",))
    send.sync(joined, {joined["memberId"]: assigned(0), "other-0": assigned(1, 2)})
    assert not send.broker.rebalancing
    send.script("rebalance")
    joined = send.join(joined["memberId"], assignors=("cooperative-sticky",))
    send.sync(joined, {joined["memberId"]: assigned(0), "other-0": assigned(1)})
    assert send.broker.rebalancing and not send.broker.stable
    assert send("Heartbeat", 4, **names(joined))["errorCode"] == 27


def committed(send: Sent, version: int = 8) -> dict[int, int]:
    topics = [{"name": "t", "partitionIndexes": [0, 1, 2, 3]}]
    answer = send("OffsetFetch", version, groupId="g", topics=topics, groups=[{"groupId": "g", "topics": topics}])
    (topic,) = (answer["groups"][0] if version >= 8 else answer)["topics"]
    return {each["partitionIndex"]: each["committedOffset"] for each in topic["partitions"]}


def commit(send: Sent, joined: Mapping[str, Any], offset: int) -> list[int]:
    about = {**names(joined), "groupId": "g", "generationIdOrMemberEpoch": joined["generationId"]}
    parts = [{"partitionIndex": each, "committedOffset": offset, "committedMetadata": ""} for each in (0, 9)]
    (topic,) = send("OffsetCommit", 8, **about, topics=[{"name": "t", "partitions": parts}])["topics"]
    return [each["errorCode"] for each in topic["partitions"]]


def test_offsets_that_the_client_and_the_other_members_committed_are_kept(send: Sent) -> None:
    send.script("place_others", 1, leads=False)
    joined = send.join()
    send.sync(joined)
    assert committed(send) == {0: 7, 1: -1, 2: -1, 3: -1}  # others had all partitions, and were given three
    assert commit(send, joined, 9) == [0, 3]
    assert commit(send, {**joined, "generationId": joined["generationId"] + 1}, 10) == [22, 3]
    assert committed(send, 5) == {0: 9, 1: -1, 2: -1, 3: -1}
    for given in ((1,), (0, 1)):
        send.broker.given = {"t": given}
        send.script("rebalance")
        send.broker.topics.grow("t")
        joined = send.join(joined["memberId"])
        send.sync(joined)
    assert committed(send) == {0: 9, 1: 8, 2: -1, 3: -1}  # of 12 records


def test_other_members_commit_what_a_client_that_leads_gives_them(send: Sent) -> None:
    send.script("place_others", 1, leads=True)
    joined = send.join()
    for given in ((1, 2), ()):
        mine = assigned(0) if given else assigned(0, 1)
        send.sync(joined, {joined["memberId"]: mine, "other-0": assigned(*given)})
        send.script("rebalance")
        joined = send.join(joined["memberId"])
    assert committed(send) == dict.fromkeys(range(4), 7)  # also what the client leaves to no member


def test_only_the_coordinator_answers(send: Sent) -> None:
    joined = send.stable()
    send.broker.nodes = send.nodes
    send.script("move")
    assert send("Heartbeat", 4, **names(joined))["errorCode"] == 16
    assert send("Heartbeat", 4, 1, **names(joined))["errorCode"] == 0
    (found,) = send("FindCoordinator", 4, key="g", coordinatorKeys=["g"])["coordinators"]
    assert (found["nodeId"], found["port"]) == (2, 2)
    assert [each["port"] for each in send("Metadata", 12, topics=None)["brokers"]] == [1, 2]


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 74)])
def test_only_a_client_that_names_an_epoch_is_fenced_for_it(send: Sent, epoch: int, error: int) -> None:
    send.script("fail_next", "ListOffsets", "FENCED_LEADER_EPOCH")
    part = {"partitionIndex": 0, "currentLeaderEpoch": epoch, "timestamp": -1}
    found = send("ListOffsets", 5, topics=[{"name": "t", "partitions": [part]}])
    assert found["topics"][0]["partitions"][0]["errorCode"] == error


def beat(send: Sent, member: str, epoch: int, *owned: int) -> Mapping[str, Any]:
    has = [{"topicId": send.broker.topics.by_name["t"].id, "partitions": list(owned)}]
    about: dict[str, Any] = {
        "instanceId": None,
        "rebalanceTimeoutMs": 5000,
        "subscribedTopicNames": ["t"],
        "serverAssignor": None,
    }
    return send("ConsumerGroupHeartbeat", 1, memberId=member, memberEpoch=epoch, topicPartitions=has, **about)


def shares(answer: Mapping[str, Any]) -> list[int] | None:
    found = answer["assignment"]
    return None if found is None else [part for each in found["topicPartitions"] for part in each["partitions"]]


def test_a_consumer_group_gives_the_rest_when_all_else_is_given_up(send: Sent) -> None:
    member = str(uuid.uuid4())
    send.broker.given = {"t": (0, 1)}
    joined = beat(send, member, 0)
    first = joined["memberEpoch"]
    assert shares(joined) == [0, 1]
    assert shares(beat(send, member, first, 0, 1)) == [0, 1] and send.broker.stable
    send.broker.given = {"t": (1, 2)}
    send.script("rebalance")
    less = beat(send, member, first, 0, 1)
    assert (less["memberEpoch"], shares(less)) == (first, [1])
    assert shares(beat(send, member, first, 0, 1)) == [1] and not send.broker.stable
    more = beat(send, member, first, 1)
    assert more["memberEpoch"] > first and shares(more) == [1, 2]
    assert shares(beat(send, member, more["memberEpoch"], 1, 2)) == [1, 2] and send.broker.stable


def test_a_consumer_group_fences_unknown_members_and_epochs(send: Sent) -> None:
    member = str(uuid.uuid4())
    first = beat(send, member, 0)["memberEpoch"]
    assert beat(send, "another", 1)["errorCode"] == 25
    assert beat(send, member, first + 6)["errorCode"] == 110
    commit: dict[str, Any] = {
        "memberId": member,
        "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1, "committedMetadata": ""}]}],
    }
    for epoch, error in ((first, 0), (first + 1, 113)):
        found = send("OffsetCommit", 9, **commit, generationIdOrMemberEpoch=epoch)
        assert found["topics"][0]["partitions"][0]["errorCode"] == error
    send.script("fail_next", "ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH")
    assert beat(send, member, first)["errorCode"] == 110
    assert beat(send, member, first)["errorCode"] == 25
    assert beat(send, member, 0)["memberEpoch"] > first
    assert beat(send, member, -1)["memberEpoch"] == -1 and not send.broker.is_member


class JoinsInVersionZero(Consumer):
    """As the default of many old clients; a broker of 4.0 or later does not have that version."""

    def version(self, api: str) -> int:
        return 0 if api == "JoinGroup" else super().version(api)


def test_a_version_that_was_not_offered_is_a_broken_law_and_no_failed_start() -> None:
    steps = OPERATIONS.parse_shorthand("rebalance; stop")
    newer = served("apache@4.0.0")
    answers = asyncio.run(play(newer, Consumers(JoinsInVersionZero), steps, SETTLE_S))
    ops = tuple(Op(at, each, observed(answers[at]), at + 1) for at, each in enumerate(steps))
    history = History(Case("client/groups", "apache@4.0.0", Role.CLIENT, tuple(steps)), "it", ops)
    laws = [each for each in all_invariants(Role.CLIENT) if each.id in CHECKS["client/groups"].invariants]
    assert {each.id for each in laws if [*each.search(history)]} == {"client/asks-what-is-offered"}


def test_the_advice_for_a_version_that_is_not_served_names_it() -> None:
    closed = Closed(0, 1, "key 11 version 1 is not served")
    events: list[Event] = [Opened(0, 1), RequestSeen(0, 1, "FindCoordinator", 0), closed]
    named = "or use another --edition: JoinGroup, key 11 version 1 is not served by this one"
    assert advice(events) == f"send ApiVersions, and what it offers, {named}"
    assert unserved(events) == closed.why and not unserved(events[:-1])
    offered = RequestSeen(0, 1, "ApiVersions", 0)
    assert advice([offered, *events]) == f"send requests and versions that ApiVersions offers, {named}"


def test_the_traffic_of_a_client_without_pauses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """sarama 1.61.1: its 40 scripts had so many requests that their laws took eight minutes of processor time."""
    steps = OPERATIONS.parse_shorthand("refuse JoinGroup GROUP_AUTHORIZATION_FAILED; pass 200; stop")

    def requests(busy: int) -> int:
        monkeypatch.setattr(scripted, "BUSY", busy)
        answers = asyncio.run(play(served("apache"), Consumers(consumer("JoinsOn")), steps, SETTLE_S))
        return sum(each["what"] == "request" for answer in answers for each in answer.get("actions", ()))

    slowed, least = requests(100), 101
    assert least < slowed < requests(1_000_000) / 2
