"""The scripted broker is as strict as a real one."""

import asyncio
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.client.scripted import ScriptedBroker
from kipcheck.conformance.tests.support.live import Client, World, joined, run

UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 25, 27


async def beat(client: Client, names: dict[str, Any]) -> int:
    found: int = (await client.ask("Heartbeat", 4, {"groupId": "g", **names}))["errorCode"]
    return found


async def commit(client: Client, names: dict[str, Any]) -> int:
    body = {"groupId": "g", "generationIdOrMemberEpoch": names["generationId"], "memberId": names["memberId"],
            "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]}  # fmt: skip
    found: int = (await client.ask("OffsetCommit", 8, body))["topics"][0]["partitions"][0]["errorCode"]
    return found


@pytest.mark.parametrize(("others", "committed"), [((), REBALANCE_IN_PROGRESS), (("other",), 0)])
def test_a_member_without_sync_is_removed_after_its_rebalance_timeout(others: tuple[str, ...], committed: int) -> None:
    """Until then it may send heartbeats; and a follower commits, while all wait for a leader."""
    broker = ScriptedBroker(edition(f"apache@{NEWEST}"))
    broker.place_others(len(others), False)

    async def test(world: World) -> None:
        client = await world.connect()
        answer = await joined(client, rebalanceTimeoutMs=300)
        names = {"memberId": answer["memberId"], "generationId": answer["generationId"]}
        assert await beat(client, names) == 0
        assert await commit(client, names) == committed
        await asyncio.sleep(0.35)
        assert await beat(client, names) == UNKNOWN_MEMBER_ID
        answer = await joined(client, rebalanceTimeoutMs=300)
        names = {"memberId": answer["memberId"], "generationId": answer["generationId"]}
        assert (await client.ask("SyncGroup", 5, {"groupId": "g", **names, "assignments": []}))["errorCode"] == 0
        await asyncio.sleep(0.35)
        assert await beat(client, names) == 0
        assert await commit(client, names) == 0

    run(test, script=broker)
