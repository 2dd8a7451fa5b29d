"""What depends on a setting is the same with ``serve`` and with a broker of the release that has its defaults."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kipcheck.conformance.core.files.broker_settings import defaults
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.admin import described_settings, partitions_of, settings_of, versions_of
from kipcheck.conformance.tests.support.kafka_broker import running
from kipcheck.conformance.tests.support.live import JOIN, Client, World, run, serving
from kipcheck.conformance.tests.support.loops import for_each, some_by_day
from kipcheck.conformance.wire.framing import requests

RELEASES = ("0.10.0.1", "1.1.1", "2.2.2", "2.3.1", "3.9.2", NEWEST)
SESSIONS = (0, 5_999, 6_000, 300_000, 300_001, 1_800_000, 1_800_001)
INVALID_SESSION_TIMEOUT, OFFSET_METADATA_TOO_LARGE, GROUP_MAX_SIZE_REACHED = 26, 12, 81
METADATA = (
    "",
    "x" * 4_096,
    "x" * 4_097,
    "\u00e9" * 4_096,
    "\u00e9" * 4_097,
    "\U0001f600" * 2_048,
    "\U0001f600" * 2_049,
)
BEAT = {
    "groupId": "new", "memberId": "x", "memberEpoch": 0, "rebalanceTimeoutMs": 1000, "subscribedTopicNames": ["t"],
    "topicPartitions": [],
}  # fmt: skip
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


def newest(named: str, api: str) -> int:
    """The newest version of a request that the release has, but none with topic ids."""
    ranges = {each.name: each.versions.high for each in requests(edition(named)).values()}
    high = ranges[f"{api}Request"]
    assert high is not None
    return min(high, 9)


async def answers(client: Client) -> dict[str, Any]:
    """The errors of joins by their session timeouts, and of commits by the place of their metadata."""
    named, found = client.edition, dict[str, Any]()
    join, commit = newest(named, "JoinGroup"), newest(named, "OffsetCommit")
    for session_ms in SESSIONS:
        body = {**JOIN, "groupId": f"g{session_ms}", "sessionTimeoutMs": session_ms}
        found[f"session {session_ms}"] = (await client.ask("JoinGroup", join, body))["errorCode"]
    for place, metadata in enumerate(METADATA):
        part = {"partitionIndex": 0, "committedOffset": 3, "committedMetadata": metadata}
        topics = [{"name": "t", "partitions": [part]}]
        answer = await client.ask("OffsetCommit", commit, {"groupId": "plain", "topics": topics})
        found[f"metadata {place}"] = answer["topics"][0]["partitions"][0]["errorCode"]
    if "consumer" in str(defaults(edition(named).release).get("group.coordinator.rebalance.protocols")):
        answer = await client.ask("ConsumerGroupHeartbeat", 1, BEAT)
        found["heartbeat interval"] = answer["heartbeatIntervalMs"]
    return found


async def of_a_broker(port: int, named: str) -> dict[str, Any]:
    connections = Connections("127.0.0.1", port)
    versions = await versions_of(connections)
    while not await partitions_of("t", connections, versions, creates=True):
        await asyncio.sleep(0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await answers(Client(named, reader, writer))
    finally:
        writer.close()


async def of_serve(named: str, config: Sequence[str] = ()) -> dict[str, Any]:
    async with serving(named=named, config=config) as world:
        return await answers(await world.connect())


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 3, pytest.mark.all_jars))
def test_limits_are_those_of_the_broker(release: str) -> None:
    named = f"apache@{release}"
    with running(release, settings=SETTINGS) as port:
        expected = asyncio.run(of_a_broker(port, named))
    assert asyncio.run(of_serve(named)) == expected
    assert {INVALID_SESSION_TIMEOUT, OFFSET_METADATA_TOO_LARGE} <= {*expected.values()}


@for_each(["1.1.1", "2.2.2", "2.3.1", NEWEST])
def test_limits_are_as_observed_of_brokers(release: str) -> None:
    found = asyncio.run(of_serve(f"apache@{release}"))
    most = 300_000 if release in ("1.1.1", "2.2.2") else 1_800_000
    for session_ms in SESSIONS:
        refused = found[f"session {session_ms}"] == INVALID_SESSION_TIMEOUT
        assert refused is not (6_000 <= session_ms <= most), session_ms
    too_large = [found[f"metadata {place}"] == OFFSET_METADATA_TOO_LARGE for place in range(len(METADATA))]
    assert too_large == [False, False, True, False, True, False, True]


def test_the_size_of_consumer_groups_is_limited() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        answers = [await client.ask("ConsumerGroupHeartbeat", 1, {**BEAT, "memberId": each}) for each in ("x", "y")]
        assert [each["errorCode"] for each in answers] == [0, GROUP_MAX_SIZE_REACHED]

    run(test, config=["group.consumer.max.size=1"])


@for_each(["1.1.1", "2.3.1", NEWEST])
def test_a_broker_that_does_not_describe_its_settings_has_the_defaults_of_the_release(release: str) -> None:
    async def test(world: World) -> None:
        connections = Connections("127.0.0.1", world.port)
        group, consumer, streams, *_ = settings_of(
            await described_settings(connections, await versions_of(connections)), release
        )
        assert group.max_session_ms == (300_000 if release == "1.1.1" else 1_800_000)
        assert (group.initial_delay_ms, group.max_size) == (3000, 2**31 - 1)
        assert consumer.policy == "bidirectional" and streams.standbys == 0

    run(test, named=f"apache@{release}")
