"""Requests and clients that would do harm: each limit costs the connection that exceeds it, and is counted."""

import asyncio
from typing import Any

import pytest

from kipcheck.conformance.benchmarks.attacks import many, mutated
from kipcheck.conformance.live.recording import traffic
from kipcheck.conformance.live.server import groups
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Limits
from kipcheck.conformance.tests.live.server.test_listener import BEAT, others_are_served
from kipcheck.conformance.tests.support.live import JOIN, Client, World, joined, run
from kipcheck.conformance.wire.framing import encode_request, frame

MOST = 50
OLD = "apache@3.9.2"
"""It has version 0 of requests."""


def test_a_request_with_too_many_entries_closes_its_connection() -> None:
    why = f"closed: a request with more than {MOST} entries"

    async def test(world: World) -> None:
        for number, (name, data) in enumerate(many(MOST + 1).items(), 1):
            client = await world.connect()
            client.writer.write(data)
            assert await client.is_closed()
            assert world.counts[why] == number, (name, world.counts)
        assert await others_are_served(world)

    run(test, named=OLD, limits=Limits(entries=MOST))


def test_as_many_entries_as_the_limit_are_answered() -> None:
    async def test(world: World) -> None:
        for name, data in many(MOST).items():
            if "JoinGroup" in name:
                continue  # it is answered when the group is complete
            client = await world.connect()
            client.writer.write(data)
            assert await client.payload(), name
        assert not [each for each in world.counts if each.startswith("closed")]

    run(test, named=OLD, limits=Limits(entries=MOST))


def test_entries_of_all_depths_and_tags_of_the_header_count() -> None:
    def fetched(topics: int, partitions: int) -> bytes:
        asked = [{"name": "t", "partitionIndexes": [0] * partitions}] * topics
        return encode_request(OLD, "OffsetFetchRequest", 5, 1, "me", {"groupId": "g", "topics": asked})

    async def test(world: World) -> None:
        plain = encode_request(OLD, "HeartbeatRequest", 4, 1, "me", BEAT)
        tags = b"".join(bytes([each, 0]) for each in range(MOST + 1))
        at = len(b"\0\x0c\0\4\0\0\0\1\0\2me")
        for data in (fetched(1, MOST), fetched(5, MOST // 5), plain[:at] + bytes([MOST + 1]) + tags + plain[at + 1 :]):
            client = await world.connect()
            client.writer.write(frame(data))
            assert await client.is_closed()
        assert world.counts[f"closed: a request with more than {MOST} entries"] == 3
        client = await world.connect()
        client.writer.write(frame(fetched(1, MOST - 1)))
        assert await client.payload()

    run(test, named=OLD, limits=Limits(entries=MOST))


def test_a_large_refused_request_has_no_offset() -> None:
    """Finding the offset takes the second decoder, which is slow."""

    async def test(world: World) -> None:
        for size in (10, 10_000):
            client = await world.connect()
            body = {"groupId": "g" * size, "topics": [{"name": "t", "partitionIndexes": [0] * 9}]}
            client.writer.write(frame(encode_request(OLD, "OffsetFetchRequest", 5, 1, "me", body)[:-8] + b"\0"))
            assert await client.is_closed()
        small, large = world.findings
        assert (small.refused.kind, small.refused.path) == ("truncated", "topics[0].partitionIndexes[7]")
        assert small.refused.offset == len(small.payload) - 1
        assert (large.refused.kind, large.refused.offset) == ("truncated", None)

    run(test, named=OLD)


def test_a_connection_that_is_closing_is_not_handled() -> None:
    """A client that sent many requests and left."""

    async def test(world: World) -> None:
        client = await world.connect()
        await client.ask("Heartbeat", 4, BEAT)
        (connection,) = world.front.connections
        connection._input += frame(encode_request("apache", "HeartbeatRequest", 4, 1, "me", BEAT)) * 100
        connection.advance()
        connection.transport.abort()
        before = world.counts["requests"]
        assert not connection.handle_next()
        await asyncio.sleep(0.05)
        assert world.counts["requests"] == before
        assert world.front.input_bytes == 0

    run(test)


def test_the_one_with_most_input_is_closed() -> None:
    async def test(world: World) -> None:
        large, small = await world.connect(), await world.connect()
        large.writer.write((90_000).to_bytes(4, "big") + bytes(80_000))
        await asyncio.sleep(0.05)
        small.writer.write((90_000).to_bytes(4, "big") + bytes(30_000))
        assert await large.is_closed()
        assert not await small.is_closed(0.1)
        assert world.front.input_bytes == 30_004

    run(test, limits=Limits(frame_bytes=100_000, input_bytes=100_000))


def test_reasons_of_closing_are_counted_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients determine some of their text."""
    monkeypatch.setattr(traffic, "MOST_REASONS", 10)

    async def test(world: World) -> None:
        for number in range(30):
            client = await world.connect()
            client.writer.write((-1 - number).to_bytes(4, "big", signed=True))
            assert await client.is_closed()
        assert world.counts["closed: announced size below 0"] == 30
        for number in range(30):
            client = await world.connect()
            client.writer.write(frame(b"\2" + bytes([number]) + bytes(8)))
            assert await client.is_closed()
        assert len(world.counts) <= 11
        assert world.counts["closed: other reasons"] > 20

    run(test)


async def join(client: Client, group: str, metadata: int) -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": bytes(metadata)}]
    return await joined(client, groupId=group, protocols=protocols)


def test_bytes_of_groups_are_limited_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a group that has less than its share gets more."""
    monkeypatch.setattr(groups, "MOST_BYTES", 100_000)

    async def test(world: World) -> None:
        assert isinstance(world.script, Broker)
        kept = world.script.groups
        large, small = await world.connect(), await world.connect()
        found = await join(large, "large", 120_000)
        assert 120_000 < kept.bytes < 125_000
        other = await world.connect()
        other.send("JoinGroup", 9, {**JOIN, "groupId": "large"})
        assert await other.is_closed()
        assert world.counts["closed: too many bytes of groups"] == 1
        mine = await join(small, "small", 1000)
        assert kept.bytes == kept.weight("large") + kept.weight("small") < 130_000
        for client, group, member in ((large, "large", found), (small, "small", mine)):
            members = [{"memberId": member["memberId"], "groupInstanceId": None}]
            await client.ask("LeaveGroup", 3, {"groupId": group, "members": members})
            assert (await client.ask("DeleteGroups", 1, {"groupsNames": [group]}))["results"][0]["errorCode"] == 0
        assert kept.bytes == 0

    run(test)


def test_an_answer_about_one_group_many_times_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_ANSWERED", 50_000)

    async def test(world: World) -> None:
        client = await world.connect()
        await join(client, "g", 10_000)
        asked: list[tuple[str, int, dict[str, Any]]] = [
            ("DescribeGroups", 1, {"groups": ["g"] * 5}),
            ("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}] * 5}),
        ]
        for number, (api, version, body) in enumerate(asked, 1):
            other = await world.connect()
            other.send(api, version, body)
            assert await other.is_closed(), api
            assert world.counts["closed: too many bytes in an answer"] == number
        assert (await client.ask("DescribeGroups", 1, {"groups": ["g"] * 4}))["groups"][3]["errorCode"] == 0

    run(test)


def test_requests_about_groups_that_do_not_exist_create_none() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        await client.ask("DescribeGroups", 0, {"groups": [str(each) for each in range(100)]})
        await client.ask("Heartbeat", 4, BEAT)
        assert isinstance(world.script, Broker)
        assert not [*world.script.groups.classics()]
        assert world.script.groups.bytes == 0

    run(test, named=OLD)


def test_metadata_names_each_topic_once() -> None:
    """As brokers do, which make a set of them: else a small request had a large answer."""

    async def test(world: World) -> None:
        client = await world.connect()
        found = await client.ask("Metadata", 9, {"topics": [{"name": each} for each in ("t", "no", "t", "u", "no")]})
        assert [each["name"] for each in found["topics"]] == ["t", "no", "u"]

    run(test)


def test_metadata_10_and_11_refuse_ids_and_missing_names() -> None:
    async def test(world: World) -> None:
        for script_version in (10, 11):
            client = await world.connect()
            asked = [{"name": "t"}, {"name": None}]
            found = await client.ask("Metadata", script_version, {"topics": asked})
            assert [(each["name"], each["errorCode"]) for each in found["topics"]] == [("t", 42), ("", 42)]
            assert found["brokers"] == []
        assert world.counts["our bugs"] == 0

    run(test)


def test_no_mutated_request_is_a_bug_and_a_good_client_is_served() -> None:
    async def test(world: World) -> None:
        good = await world.connect()
        for begin in range(0, 400, 8):
            client = await world.connect()
            client.writer.write(b"".join(map(mutated, range(begin, begin + 8))))
            client.writer.write_eof()
            assert await client.is_closed()
            assert (await good.ask("Heartbeat", 4, BEAT))["errorCode"] == 25
        assert world.counts["our bugs"] == 0
        assert world.front.input_bytes == 0

    run(test)
