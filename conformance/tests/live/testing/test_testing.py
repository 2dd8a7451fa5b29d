"""A broker for the tests of others: its steps, what is expected of it, and what a failure says."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kipcheck import testing
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.testing.arrivals import contains
from kipcheck.conformance.live.testing.http_api import Brokers, HttpServer
from kipcheck.conformance.live.testing.stage import Setting, Stage
from kipcheck.conformance.tests.support.loops import for_each

pytest_plugins = ["pytester"]


@contextmanager
def consumer(address: str, topics: str = "t", protocol: str = "", group: str = "g") -> Iterator[Consumer]:
    """One of ours, in a thread of its own, which stops at the end."""
    made: list[Consumer] = []
    begun = threading.Event()

    async def run() -> None:
        made.append(Consumer(address, group, topics, 1000, protocol=protocol))
        begun.set()
        await made[0].run()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert begun.wait(5)
    try:
        yield made[0]
    finally:
        made[0].stopping.set()
        thread.join(5)
    assert not thread.is_alive()


def test_a_script_changes_answers_before_and_while_a_client_is_a_member() -> None:
    with testing.broker("answer JoinGroup NOT_COORDINATOR at next") as broker, consumer(broker.address) as client:
        refused = broker.expect("JoinGroup", error="NOT_COORDINATOR")
        joined = broker.expect("JoinGroup", {"groupId": "g"}, error="NONE")
        assert refused.number < joined.number and joined.fields["memberId"]
        broker.expect("SyncGroup", error="NONE")
        broker.play("answer Heartbeat UNKNOWN_MEMBER_ID; rebalance; move")
        broker.expect("Heartbeat", error="UNKNOWN_MEMBER_ID")
        again = broker.expect("JoinGroup", {"memberId": ""})
        broker.finish()
        # A move refuses what the member sends first: a heartbeat or a commit.
        _until(lambda: "NOT_COORDINATOR" in {each.error for each in broker.requests[again.number :]})
        broker.expect("FindCoordinator")
        assert {number for _, number in client.owned} == {0, 1, 2}
    assert [each.name for each in broker.requests[-1:]] == ["LeaveGroup"]


@for_each(["", "consumer"])
def test_clients_share_partitions_and_steps_assign_them(protocol: str) -> None:
    with (
        testing.broker(topics={"orders": 2}) as broker,
        consumer(broker.address, "orders", protocol) as one,
        consumer(broker.address, "orders", protocol) as other,
    ):
        _until(lambda: len(one.owned) == len(other.owned) == 1)
        if protocol:
            broker.play("assign 0,1; rebalance")
            _until(lambda: sorted((len(one.owned), len(other.owned))) == [0, 2])


def test_topics_are_named_t_and_u_in_steps() -> None:
    with testing.broker(topics=["orders", "users"]) as broker, consumer(broker.address, "orders,users") as client:
        _until(lambda: len(client.owned) == 2)
        broker.play("grow 4; rebalance")
        _until(lambda: len(client.owned) == 5)
        assert {topic for topic, _ in client.owned} == {"orders", "users"}
        broker.play("delete u")
        broker.expect("Fetch", error="UNKNOWN_TOPIC_OR_PARTITION")


def test_offsets_are_committed_for_a_group_that_nobody_has_joined() -> None:
    with testing.broker("committed 4", topics=["orders"], group="readers") as broker:
        found = broker.requests
        assert not found
        with consumer(broker.address, "orders", group="readers"):
            asked = broker.expect("OffsetFetch", {"groupId": "readers"}, error="NONE")
        assert asked.answer is not None
        assert asked.answer["topics"][0]["partitions"][0]["committedOffset"] == 4


@pytest.mark.integration
@for_each(["classic", "consumer"])
def test_every_kind_of_step_is_played_to_its_end(protocol: str) -> None:
    sign, joins = ("Heartbeat", "JoinGroup") if protocol == "classic" else ("ConsumerGroupHeartbeat",) * 2
    for script in (
        *("down coordinator 300; rebalance", "down all 200 then 2.8.2" if protocol == "classic" else "down all 200"),
        *("down coordinator 300 silent", f"late {sign} 200", f"throttle {sign} 200", f"silent {sign} 200 times 2"),
        *(f"reset {joins} amid", f"pieces {joins}", f"tags {joins}", f"together {sign}", "elect after 100; pass 100"),
        *(
            "disband",
            "records gap; records aborted; trim 2",
            "lags leader 300",
            "create u; delete t",
            "offer Metadata 0-9",
        ),
        *("others 1 follow; assign 0; rebalance; others 0 lead; rebalance", "answer OffsetCommit NOT_COORDINATOR"),
        *("answer Fetch OFFSET_OUT_OF_RANGE", "answer FindCoordinator COORDINATOR_NOT_AVAILABLE", "older 3.9.2; move"),
    ):
        if protocol == "consumer" and "older" in script:
            continue
        with testing.broker() as broker, consumer(broker.address, protocol="" if protocol == "classic" else protocol):
            broker.expect("SyncGroup" if protocol == "classic" else sign, error="NONE")
            broker.play(script)
            broker.finish(20)


@for_each(
    [
        ("stop", "step 1, 'stop', cannot be played: the test starts and stops the client"),
        ("rebalance; static", "step 2, 'static', cannot be played: the test starts the client, and gives it"),
        ("answer OffsetCommit NOT_COORDINATOR at stop", "use at next"),
        ("answer JoinGroup OFFSET_OUT_OF_RANGE", "no broker answers JoinGroup with OFFSET_OUT_OF_RANGE: use COORD"),
        ("answer JoinGroup NO_SUCH", "cannot be read: write answer JoinGroup with COORDINATOR_NOT_AVAILABLE, "),
        ("rebalence", "a step begins with one of others, "),
        (" ; ", "the script has no steps"),
    ]
)
def test_a_step_that_cannot_be_played_is_named_with_what_to_write(script: str, why: str) -> None:
    with testing.broker() as broker, pytest.raises(testing.Unplayable) as wrong:
        broker.play(script)
    assert why in str(wrong.value)
    with pytest.raises(testing.Unplayable), testing.broker(script):
        pass


def test_a_step_that_fits_no_client_fails_the_test_that_does_not_look() -> None:
    with (
        pytest.raises(testing.Unplayable, match="a member of a classic group sends no ConsumerGroupHeartbeat"),
        testing.broker() as broker,
        consumer(broker.address),
    ):
        broker.expect("SyncGroup", error="NONE")
        broker.play("rebalance; answer ConsumerGroupHeartbeat NOT_COORDINATOR; move")
        with pytest.raises(testing.Unplayable):
            broker.finish()


def test_a_failure_lists_what_arrived_and_the_step_that_waits() -> None:
    with testing.broker() as broker, consumer(broker.address):
        broker.expect("SyncGroup", error="NONE")
        broker.play("answer LeaveGroup NOT_COORDINATOR; rebalance")
        with pytest.raises(testing.Unexpected) as failure:
            broker.expect("OffsetCommit", version=0, within=0.05)
        shown = str(failure.value)
        assert shown.startswith("no OffsetCommit v0 within 0.05 s; what arrived:\n")
        assert " JoinGroup v5  small  MEMBER_ID_REQUIRED\n" in shown and "up to here" in shown
        assert "script: 'answer LeaveGroup NOT_COORDINATOR' waits for a LeaveGroup whose answer" in shown
        with pytest.raises(testing.Unexpected, match=r"the script is not over after 0\.05 s"):
            broker.finish(0.05)
        with pytest.raises(testing.Unexpected, match="Heartbeat arrived at "):
            broker.expect_none("Heartbeat", within=5)
        broker.expect_none("LeaveGroup")


@for_each([("JoinGrop", None, "the nearest: JoinGroup"), ("JoinGroup", "NOT_CORDINATOR", "NOT_COORDINATOR")])
def test_what_no_request_can_be_is_refused(name: str, error: str | None, why: str) -> None:
    with testing.broker() as broker, pytest.raises(ValueError, match=why):
        broker.expect(name, error=error)


def test_the_note_of_a_failure_has_the_log() -> None:
    with pytest.raises(ZeroDivisionError) as failure, testing.broker() as broker:
        with consumer(broker.address):
            broker.expect("SyncGroup")
        raise ZeroDivisionError
    (note,) = failure.value.__notes__
    assert note.startswith(f"kipcheck broker {broker.address}") and "> LeaveGroup v1" in note


def test_fields_contain_what_is_wanted() -> None:
    found = {"topics": [{"name": "t", "partitions": [1, 2]}, {"name": "u", "partitions": []}], "rack": None}
    for wanted in ({}, {"topics": [{"name": "u"}]}, {"topics": [{"partitions": [2]}]}, {"rack": None}):
        assert contains(found, wanted), wanted
    for other in ({"topics": [{"name": "v"}]}, {"topics": [{"name": "u", "partitions": [2]}]}, {"rak": None}):
        assert not contains(found, other), other


def test_the_fixture_gives_each_test_a_broker_and_reports_what_was_exchanged(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket
        import pytest

        addresses = []

        @pytest.mark.kipcheck_broker("pass 10", topics={"orders": 3}, release="3.9.2")
        def test_one(kipcheck_broker):
            addresses.append(kipcheck_broker.address)
            socket.create_connection(("127.0.0.1", int(addresses[0].split(":")[1]))).close()
            kipcheck_broker.expect("JoinGroup", within=0)

        def test_two(kipcheck_broker):
            assert kipcheck_broker.address not in addresses
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*- kipcheck broker -*", "*script: pass 10*", "*#1 opened by 127.0.0.1:*"])
    result.stdout.no_fnmatch_line("*in_thread.py*")


def asked(url: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    wanted = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(wanted, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_other_languages_play_and_expect_over_http() -> None:
    async def served(ask: Callable[[str], None]) -> None:
        stage = Stage(Setting.of(topics=["orders"]))
        await stage.open()
        brokers = Brokers("127.0.0.1", stage)
        http = HttpServer(brokers, "127.0.0.1", 0)
        try:
            await asyncio.to_thread(ask, http.url)
        finally:
            await http.close()
            await brokers.close()

    def ask(url: str) -> None:
        assert asked(url)[1]["version"] == 1
        status, made = asked(
            f"{url}/brokers", "POST", {"topics": {"orders": 2}, "script": "pass 1", "release": "3.9.2"}
        )
        assert (status, made["id"], made["topics"], made["release"]) == (200, "2", {"orders": 2}, "3.9.2")
        of = f"{url}/brokers/2"
        with consumer(made["address"], "orders"):
            status, found = asked(f"{of}/expect", "POST", {"request": "JoinGroup", "error": "NONE"})
            assert (status, found["fields"]["groupId"], found["error"]) == (200, "g", "NONE")
            assert asked(f"{of}/expect", "POST", {"request": "SyncGroup", "error": "NONE"})[0] == 200
            assert asked(f"{of}/script", "POST", {"script": "rebalance"})[0] == 200
            assert asked(f"{of}/finish", "POST", {"within": 5})[1]["script"] == ""
            assert asked(f"{of}/expect", "POST", {"request": "LeaveGroup", "none": True}) == (200, {})
            status, found = asked(f"{of}/expect", "POST", {"request": "LeaveGroup", "within": 0.01})
            assert status == 409 and "no LeaveGroup within 0.01 s; what arrived:" in found["error"]
        assert asked(f"{of}/requests")[1]["requests"][-1]["request"] == "LeaveGroup"
        assert any("> LeaveGroup" in line for line in asked(f"{of}/log")[1]["lines"])
        for status, path, method, body, why in (
            (400, "/brokers/2/script", "POST", {"script": "stop"}, "the test starts and stops the client"),
            (400, "/brokers/2/script", "POST", {}, "the body has no script"),
            (400, "/brokers/2/expect", "POST", {"request": "JoinGroup", "feilds": {}}, "the nearest: fields"),
            (400, "/brokers/2/expect", "POST", {"request": "JoinGroup", "version": "1"}, "version is of another type"),
            (400, "/brokers", "POST", {"release": "9.9.9"}, "9.9.9"),
            (400, "/brokers", "POST", b"[", "not JSON"),
            (404, "/brokers/7", "GET", None, "no broker 7; there are: 1, 2"),
            (404, "/groups", "GET", None, "GET /v1 describes"),
            (405, "/brokers/2", "POST", {}, "is for GET, DELETE"),
        ):
            found = asked(url + path, method, body)
            assert found[0] == status and why in found[1]["error"], (path, found)
        assert asked(url, Origin="http://elsewhere")[0] == 403
        assert asked(of, "DELETE")[0] == 200
        assert asked(url)[1]["brokers"] == ["1"]

    asyncio.run(served(ask))


def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        threading.Event().wait(0.01)
    raise AssertionError
