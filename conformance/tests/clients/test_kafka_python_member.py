"""The consumer of kafka-python 3 as a member: what it does comes out as it is, at its time, and again the same."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kipcheck.conformance.clients.kafka_python import LIMITS, KafkaPython
from kipcheck.conformance.clients.kafka_python_loop import BEGINNING, Clock, Loop
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.member.ops import ACTIONS, MEMBER
from kipcheck.conformance.targets.registry import installed

pytestmark = pytest.mark.skipif(installed("kafka-python") is None, reason="kafka-python is not installed")
OPEN = {"assignors": ["range"], "topics": [["t", 2], ["u", 1]], "instance": None, "rack": None, "protocol": None}
JOINED = {
    "answer": "joined", "error": "NONE", "generation": 1, "protocol_type": "consumer", "protocol": "range",
    "leader": "n1", "member": "m1", "members": [], "skip_assignment": False,
}  # fmt: skip
SYNCED = {"answer": "synced", "error": "NONE", "protocol_type": "consumer", "protocol": None}
SUBSCRIBED = {"topics": ["t"], "version": 1}


class Talk:
    """One conversation."""

    def __init__(self, adapter: KafkaPython, case: int) -> None:
        self._adapter, self._case = adapter, case

    def raw(self, verb: str, **body: Any) -> dict[str, Any]:
        return self._adapter.answer({"op": f"member-{verb}", "case": self._case, **body})

    def __call__(self, verb: str, **body: Any) -> list[dict[str, Any]]:
        printed = self.raw(verb, **body)
        assert printed["status"] == "accepted", printed
        for each in printed["actions"]:
            ACTIONS.from_json(each)  # in the words of the protocol
        actions: list[dict[str, Any]] = printed["actions"]
        return actions

    def names(self, verb: str, **body: Any) -> list[str]:
        return [each["action"] for each in self(verb, **body)]

    def assigned(self, partitions: list[list[Any]], **opened: Any) -> "Talk":
        """A follower that has its assignment."""
        opened = {**OPEN, **opened}
        self("open", **opened)
        self("subscribe", topics=["t"])
        self("poll")
        self("told", **{**JOINED, "protocol": opened["assignors"][0]})
        self("told", **SYNCED, assignment={"partitions": partitions})
        assert self("poll")[-2:] == [
            {"action": "assigned", "partitions": partitions},
            {"action": "reads", "partitions": partitions},
        ]
        return self


@pytest.fixture(scope="module")
def adapter() -> KafkaPython:
    return KafkaPython()


@pytest.fixture
def talk(adapter: KafkaPython, numbers: Iterator[int]) -> Talk:
    return Talk(adapter, next(numbers))


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return iter(range(1_000))


def test_it_is_claimed_and_loaded_when_it_is_asked_for() -> None:
    printed = "from kipcheck.conformance.clients.kafka_python import KafkaPython as K; import sys; a = K(); a.claims(); print(*[m for m in sys.modules if 'kafka_python_' in m])"  # noqa: E501
    loaded = subprocess.run([sys.executable, "-c", printed], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["kipcheck.conformance.clients.kafka_python_assignors"]


def test_it_claims_to_be_a_member_with_one_limit(adapter: KafkaPython, talk: Talk) -> None:
    claims = adapter.claims()
    assert Role.MEMBER in claims.roles and claims.machines == (MEMBER,)
    talk.assigned([["t", 0]])
    printed = talk.raw("told", **{**JOINED, "skip_assignment": True})
    assert (printed["status"], claims.limits[printed["capability"]]) == ("unsupported", LIMITS["skip-assignment"])


def test_a_leader_assigns_with_its_own_assignor(talk: Talk) -> None:
    talk("open", **OPEN)
    talk("subscribe", topics=["t"])
    join = talk("poll")[1]
    assert (join["action"], join["version"], join["protocols"][0][1]["topics"]) == ("join", 7, ["t"])
    members = [["m1", None, SUBSCRIBED], ["n1", None, SUBSCRIBED]]
    (sync,) = talk("told", **{**JOINED, "leader": "m1", "members": members})
    assert (sync["version"], sync["member"], sync["generation"]) == (5, "m1", 1)
    assert sync["assignments"] == [["m1", {"partitions": [["t", 0]]}], ["n1", {"partitions": [["t", 1]]}]]


def test_time_moves_only_when_it_is_told_to(talk: Talk) -> None:
    talk.assigned([["t", 0]])
    assert talk.names("elapse", ms=2_999) == []
    assert talk.names("elapse", ms=1) == ["heartbeat"]
    assert talk.names("told", answer="beat", error="REBALANCE_IN_PROGRESS") == []
    assert talk.names("poll") == ["revoked", "join", "reads"]
    assert talk("poll") == [{"action": "reads", "partitions": []}]


def test_an_answer_without_a_request_is_no_event(talk: Talk) -> None:
    talk("open", **OPEN)
    talk("subscribe", topics=["t"])
    talk("poll")
    talk("told", **JOINED)
    talk("told", **SYNCED, assignment={"partitions": [["t", 0]]})
    assert talk("told", answer="beat", error="UNKNOWN_MEMBER_ID") == []
    assert talk.names("poll")[-2:] == ["assigned", "reads"]


def test_each_case_begins_at_the_same_time_and_ends(adapter: KafkaPython, numbers: Iterator[int]) -> None:
    for later in (0, 1_046_000, 40_000_000_000):
        talk = Talk(adapter, next(numbers))
        talk("elapse", ms=later)
        talk.assigned([["t", 0]])
        assert talk.names("elapse", ms=3_000) == ["heartbeat"]
    Talk(adapter, next(numbers)).raw("elapse", ms=0)
    assert adapter._member is not None and adapter._member.clock.now == BEGINNING


def test_a_timer_that_is_set_to_the_present_again_and_again_comes_to_an_end() -> None:
    loop, calls = Loop(Clock()), list[float]()

    def rest() -> None:
        calls.append(loop.clock.now)
        if loop.clock.now == BEGINNING and len(calls) < 100:
            loop.net.call_at(loop.clock.now + 1e-14, rest)

    loop.net.call_at(BEGINNING, rest)
    loop.settle()
    assert len(calls) == 1 and BEGINNING < loop.clock.now < BEGINNING + 1e-9


def test_who_is_put_out_has_lost_what_it_had(talk: Talk) -> None:
    talk.assigned([["t", 0]], assignors=["cooperative-sticky"])
    talk("elapse", ms=3_000)
    talk("told", answer="beat", error="UNKNOWN_MEMBER_ID")
    lost, join, reads = talk("poll")
    assert (lost, reads["partitions"]) == ({"action": "lost", "partitions": [["t", 0]]}, [])
    assert (join["action"], join["member"]) == ("join", "")


def test_a_commit_is_tried_until_it_is_known_what_became_of_it(talk: Talk) -> None:
    talk.assigned([["t", 0]])
    (commit,) = talk("commit", offsets=[["t", 0, 5]])
    assert (commit["action"], commit["version"], commit["offsets"]) == ("commit", 8, [["t", 0, 5]])
    assert talk("commit", offsets=[["t", 0, 6]]) == []
    assert talk("told", answer="committed", error="NOT_COORDINATOR") == []
    assert talk.names("elapse", ms=200) == ["commit"]
    assert talk("disconnected") == []
    assert talk.names("elapse", ms=200) == ["commit"]
    assert talk("told", answer="committed", error="NONE") == [{"action": "commit-ended", "error": "NONE"}]


def test_what_is_lost_is_asked_again_after_a_while(talk: Talk) -> None:
    talk("open", **OPEN)
    talk("subscribe", topics=["t"])
    talk("poll")
    assert talk("disconnected") == [] and talk.names("poll") == ["reads"]
    assert talk("elapse", ms=50) == [] and talk.names("poll") == ["reads"]
    assert talk("elapse", ms=50) == [] and talk.names("poll") == ["join", "reads"]


def test_an_answer_that_is_there_before_the_poll_is_thrown_away(talk: Talk) -> None:
    """As conformance/docs/findings/kafka-python-drops-a-join-between-polls.md has it."""
    talk("open", **OPEN)
    talk("subscribe", topics=["t"])
    talk("poll")
    talk("told", **JOINED)
    talk("told", **SYNCED, assignment={"partitions": [["t", 0]]})
    assert talk("elapse", ms=1) == []
    assert talk.names("poll") == ["join", "reads"]


def test_an_exception_is_reported_with_its_class(talk: Talk) -> None:
    talk("open", **OPEN)
    talk("subscribe", topics=["t"])
    failed = {"action": "commit-ended", "error": "COMMIT_FAILED", "exception": "kafka.errors.CommitFailedError"}
    assert talk("commit", offsets=[["t", 0, 1]]) == [failed]
    talk("poll")
    talk("told", **JOINED)
    talk("unsubscribe")
    talk("subscribe", topics=["t"])
    talk("told", **SYNCED, assignment={"partitions": [["t", 0]]})
    assert talk("poll") == [{"action": "raised", "error": "ILLEGAL_STATE", "exception": "ValueError"}]


def test_it_leaves_and_does_nothing_any_more(talk: Talk) -> None:
    talk.assigned([["t", 0]])
    assert talk.names("close") == ["revoked", "leave"]
    assert talk("poll") == [] and talk("elapse", ms=60_000) == [] and talk("told", answer="beat", error="NONE") == []


def test_a_static_member_goes_without_a_word(talk: Talk) -> None:
    assert talk.assigned([["t", 0]], instance="i").names("close") == ["revoked"]


def test_there_is_no_consumer_without_a_protocol(talk: Talk) -> None:
    printed = talk.raw("open", **{**OPEN, "assignors": ["incremental", "range"]})
    assert (printed["status"], printed["class"]) == ("rejected", "kafka.errors.KafkaConfigurationError")
    assert talk("poll") == []


def test_a_topic_that_is_not_there_is_not_asked_for_again_and_again(adapter: KafkaPython, talk: Talk) -> None:
    talk("open", **{**OPEN, "topics": []})
    talk("subscribe", topics=["t"])
    assert adapter._member is not None and adapter._member._process is not None
    cluster = adapter._member._process._wire.cluster
    asked, tell = list[int](), cluster.metadata_request

    def counted() -> Any:
        asked.append(1)
        return tell()

    cluster.metadata_request = counted
    talk("elapse", ms=60_000)
    assert 1 <= len(asked) <= 4


def test_the_same_again_and_no_thread_is_left(adapter: KafkaPython, numbers: Iterator[int]) -> None:
    def once() -> list[Any]:
        talk = Talk(adapter, next(numbers)).assigned([["t", 0], ["t", 1]])
        talk("elapse", ms=3_000)
        talk("told", answer="beat", error="ILLEGAL_GENERATION")
        return [talk("poll"), talk("disconnected"), talk("elapse", ms=60_000), talk("poll")]

    before = threading.active_count()
    first = once()
    assert all(once() == first for _ in range(5))
    assert threading.active_count() == before
