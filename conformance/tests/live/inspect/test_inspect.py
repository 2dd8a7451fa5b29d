"""The command ``inspect``: what it prints of a scripted cluster, its JSON, its errors and exit codes."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.inspect import descriptions
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.record_batches import Record, RecordBatch, encode
from kipcheck.conformance.wire.schema import spec

VERSIONS: Final = {
    "Fetch": (4, 11), "ListOffsets": (1, 6), "Metadata": (0, 12), "FindCoordinator": (0, 4), "DescribeGroups": (0, 5),
    "ListGroups": (0, 4), "ApiVersions": (0, 3),
}  # fmt: skip
SIZES: Final = {"t": 3, "__consumer_offsets": 1}


def metadata(*topics: str) -> bytes:
    return layout("apache", "ConsumerProtocolSubscription", 0).encode({"topics": topics, "userData": None})


def assigned(*numbers: int) -> bytes:
    partitions = [{"topic": "t", "partitions": numbers}]
    body = {"assignedPartitions": partitions if numbers else [], "userData": None}
    return layout("apache", "ConsumerProtocolAssignment", 0).encode(body)


class ScriptedCluster:
    """One broker with groups: id -> state, protocol, and assignments by member."""

    def __init__(self, groups: Mapping[str, tuple[str, str, Mapping[str, bytes]]], leader: str | None) -> None:
        self.groups = groups
        self.leader = leader
        self.versions = {_key(api): range(low, high + 1) for api, (low, high) in VERSIONS.items()}
        self.asked: list[str] = []

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...

    def received(self, request: Received, connection: Connection) -> None:
        self.asked.append(request.api)
        host, port = connection.reached
        body = getattr(self, request.api)(request.body, host, port)
        connection.answer(request, body)

    def ApiVersions(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        keys = [{"apiKey": key, "minVersion": each.start, "maxVersion": each.stop - 1}
                for key, each in self.versions.items()]  # fmt: skip
        return {"errorCode": 0, "apiKeys": keys}

    def Metadata(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        topics = [
            {"errorCode": 0 if name in SIZES else 3, "name": name, "isInternal": False, "partitions": [
                {"errorCode": 0, "partitionIndex": number, "leaderId": 1, "replicaNodes": [1], "isrNodes": [1]}
                for number in range(SIZES.get(name, 0))
            ]} for name in (each["name"] for each in asked["topics"] or ())
        ]  # fmt: skip
        return {"brokers": [{"nodeId": 1, "host": host, "port": port, "rack": None}], "clusterId": None,
                "controllerId": 1, "topics": topics}  # fmt: skip

    def FindCoordinator(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        return {"errorCode": 0, "nodeId": 1, "host": host, "port": port}

    def ListGroups(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        groups = [{"groupId": each, "protocolType": "consumer", "groupState": "Stable"} for each in self.groups]
        return {"errorCode": 0, "groups": groups}

    def DescribeGroups(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        (name,) = asked["groups"]
        state, protocol, shares = self.groups.get(name, ("Dead", "", {}))
        reported = state == "Stable"
        members = [
            {"memberId": id, "groupInstanceId": None, "clientId": "c", "clientHost": "/10.0.0.1",
             "memberMetadata": metadata("t") if reported else b"", "memberAssignment": given if reported else b""}
            for id, given in shares.items()
        ]  # fmt: skip
        group = {"errorCode": 0, "groupId": name, "groupState": state, "protocolType": "consumer" if shares else "",
                 "protocolData": protocol, "members": members}  # fmt: skip
        return {"groups": [group]}

    def ListOffsets(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        offset = 0 if asked["topics"][0]["partitions"][0]["timestamp"] == -2 else 10
        part = {"partitionIndex": 0, "errorCode": 0, "timestamp": -1, "offset": offset, "leaderEpoch": 0}
        return {"topics": [{"name": "__consumer_offsets", "partitions": [part]}]}

    def Fetch(self, asked: Mapping[str, Any], host: str, port: int) -> dict[str, Any]:
        """Records of all groups, the first eight compacted away: each has an older one with another leader."""
        records = []
        for offset, leader in ((8, "nobody"), (9, self.leader)):
            (name, (_, protocol, shares)), *_ = self.groups.items()
            members = [{"memberId": id, "groupInstanceId": None, "clientId": "c", "clientHost": "/10.0.0.1",
                        "rebalanceTimeout": 1, "sessionTimeout": 1, "subscription": metadata("t"), "assignment": given}
                       for id, given in shares.items()]  # fmt: skip
            value = {"protocolType": "consumer", "generation": offset, "protocol": protocol, "leader": leader,
                     "currentStateTimestamp": 0, "members": members}  # fmt: skip
            key = layout(APACHE, "GroupMetadataKey", 2).encode({"group": name})
            records.append(Record(offset, 0, key, spec(APACHE, "GroupMetadataValue").at(3).encode(value)))
        data = encode(RecordBatch(8, 9, 0, 0, tuple(records), leader_epoch=0))
        part = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 10, "lastStableOffset": 10, "logStartOffset": 0,
                "abortedTransactions": None, "preferredReadReplica": -1,
                "records": data if self.leader else b""}  # fmt: skip
        return {"errorCode": 0, "sessionId": 0, "responses": [{"topic": "__consumer_offsets", "partitions": [part]}]}


def _key(api: str) -> int:
    key = spec(APACHE, f"{api}Request").api_key
    assert key is not None
    return key


@contextmanager
def scripted(
    groups: Mapping[str, tuple[str, str, Mapping[str, bytes]]], leader: str | None = "a"
) -> Iterator[tuple[int, ScriptedCluster]]:
    """The port of a cluster, which runs in a thread until the block ends."""
    cluster, ready, ports = ScriptedCluster(groups, leader), threading.Event(), list[int]()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        front = Front(cluster, APACHE)
        ports.append((await front.listen("127.0.0.1", 0))[1])
        ready.set()
        await ended.wait()
        await front.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield ports[0], cluster
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


def inspected(port: int, *options: str) -> int:
    return run(["inspect", f"broker:127.0.0.1:{port}", *options])


def test_a_sound_group_is_shown_with_its_leader(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({"g": ("Stable", "range", {"a": assigned(0, 1), "b": assigned(2)})}, leader="b") as (port, cluster):
        assert inspected(port) == 0
    out = capsys.readouterr().out.splitlines()
    at = f"coordinator 127.0.0.1:{port}"
    assert out[0] == f"group g: Stable, generation 9, consumer protocol type, protocol range, 2 members, {at}"
    assert out[1:7] == [
        "  member a (client id c, 10.0.0.1)", "    subscription v0: t", "    assignment v0: t-0, t-1",
        "  member b (client id c, 10.0.0.1) leads", "    subscription v0: t", "    assignment v0: t-2",
    ]  # fmt: skip
    assert {*cluster.asked} == {*VERSIONS}, "it only asks what describes groups"


def test_a_broken_law_is_shown_with_its_clause(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({"g": ("Stable", "range", {"a": assigned(0, 1), "b": assigned(1, 2)})}) as (port, _):
        assert inspected(port, "--group", "g") == 1
    out = capsys.readouterr().out
    assert "  FAIL assign/one-owner (MUST): t-1 is assigned to a and to b" in out
    assert "    grp-03: AbstractPartitionAssignor" in out


def test_damaged_bytes_are_shown_with_their_map(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({"g": ("Stable", "range", {"a": assigned(0, 1)[:-1], "b": assigned(2)})}) as (port, _):
        assert inspected(port) == 1
        out = capsys.readouterr().out
        assert inspected(port, "--json") == 1
    assert "  FAIL client/embeds-strictly (MUST): assignment of a: ConsumerProtocolAssignment v0 / userData at" in out
    assert "members with kafka-clients 0.10.0.0 to" in out
    assert "    damage: ConsumerProtocolAssignment v0 / userData at byte 21: " in out
    assert "  not judged: a: ConsumerProtocolAssignment" in out
    (only,) = json.loads(capsys.readouterr().out)["groups"][0]["broken"]
    assert only["bytes"]["damage"]["offset"] == 21 and only["bytes"]["rows"][0]["bytes"] == "0000"


def test_a_broken_should_does_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({"g": ("Stable", "range", {"a": assigned(0), "b": assigned(1, 2)})}) as (port, _):
        assert inspected(port) == 0
    assert "  WARN assign/by-rule (SHOULD): " in capsys.readouterr().out


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    groups = {"g": ("Stable", "range", {"a": assigned(0, 1), "b": assigned(1, 2)})}
    with scripted(groups, leader=None) as (port, _):
        assert inspected(port, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["broker"] == f"127.0.0.1:{port}"
    assert (found["exit"], found["unasked"]) == (1, [])
    (group,) = found["groups"]
    assert group["members"][1]["assignment"]["partitions"] == [["t", 1], ["t", 2]]
    assert (group["leader"], group["leaderUnknown"]) == (None, "__consumer_offsets has no record of the group")
    broken = {each["law"]: each for each in group["broken"]}
    assert broken["assign/one-owner"]["result"] == "FAIL"
    assert broken["assign/one-owner"]["requirements"] == ["grp-03", "429-16"]


def test_a_group_that_rebalances_is_undecided(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(descriptions, "WAIT_S", 0.0)
    with scripted({"g": ("PreparingRebalance", "", {"a": b""}), "empty": ("Empty", "", {})}) as (port, _):
        assert inspected(port) == 6
        assert inspected(port, "--group", "empty") == 7, "nothing was judged"
    assert "  not judged: it is not Stable, but PreparingRebalance" in capsys.readouterr().out


def test_a_cluster_without_a_group_that_can_be_judged_has_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({}) as (port, _):
        assert inspected(port) == 7
    out = capsys.readouterr().out
    assert out == "the brokers list no group that this user may describe\nnothing was judged: no group has members\n"
    with scripted({"g": ("Stable", "range", {"a": assigned(0, 1, 2)}), "empty": ("Empty", "", {})}) as (port, _):
        assert inspected(port) == 0
        assert inspected(port, "--group", "empty", "--json") == 7
    assert json.loads(capsys.readouterr().out.partition("{")[2].join(("{", "")))["exit"] == 7


def test_an_unknown_group_is_an_error_that_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with scripted({"g": ("Stable", "range", {"a": assigned(0, 1, 2)})}) as (port, _):
        assert inspected(port, "--group", "other") == 2
    assert capsys.readouterr().err == "kipcheck: no group 'other'; the groups are: g\n"


def test_a_broker_that_does_not_listen_or_speaks_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert inspected(port) == 3
        taken.listen()
        threading.Thread(target=_sends_nonsense, args=(taken,), daemon=True).start()
        assert inspected(port) == 3
    first, second = capsys.readouterr().err.splitlines()
    assert f"127.0.0.1:{port} does not answer ApiVersions v0: 127.0.0.1:{port} accepts no connection" in first
    assert second.endswith("the listener has TLS: use SSL or SASL_SSL as security.protocol, in --config FILE")


def _sends_nonsense(taken: socket.socket) -> None:
    with taken.accept()[0] as connection:
        connection.recv(100)
        connection.sendall(b"\x15\x03\x03\x00\x02\x02\x32")


@for_each(["localhost", "broker:localhost", "broker::1", "kafka:3.9.2"])
def test_another_target_is_a_usage_error(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["inspect", target])
    assert ended.value.code == 2
    assert "localhost:9092" in capsys.readouterr().err
