"""An application of Kafka Streams in a streams group (KIP-1071): what a watch says of its heartbeats, and a
released one through the proxy to a released broker, which is not blamed."""

import asyncio
import re
import signal
from pathlib import Path
from typing import Any, Final

import kafka  # type: ignore[import-untyped]
import pytest
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.other_groups import StreamsGroupMembers
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.tests.live.watch.test_bounds import Member, laws
from kipcheck.conformance.tests.live.watch.test_watch import started
from kipcheck.conformance.tests.support.kafka_broker import running

RELEASE: Final = "4.4.0"
SETTINGS: Final = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
NO_TASKS: Final[dict[str, Any]] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
SUBTOPOLOGY: Final[dict[str, Any]] = {
    "subtopologyId": "0", "sourceTopics": ["t"], "sourceTopicRegex": [], "stateChangelogTopics": [],
    "repartitionSinkTopics": [], "repartitionSourceTopics": [], "copartitionGroups": [],
}  # fmt: skip
JOIN: Final = {
    "groupId": "g", "memberId": "m", "memberEpoch": 0, "processId": "p", "rebalanceTimeoutMs": 300_000,
    "topology": {"epoch": 0, "subtopologies": [SUBTOPOLOGY]}, **NO_TASKS,
}  # fmt: skip


def active(*numbers: int) -> dict[str, Any]:
    return {**NO_TASKS, "activeTasks": [{"subtopologyId": "0", "partitions": [*numbers]}]}


def after_joining(*beats: dict[str, Any]) -> list[str]:
    """The laws that a member breaks which is given tasks 0 and 1, and whose topology passed without its topics."""
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    given = {"memberId": "m", "memberEpoch": 2, "heartbeatIntervalMs": 500, **active(0, 1)}
    member.ask("StreamsGroupHeartbeat", 0, JOIN, given)
    for each in beats:
        asked = {"groupId": "g", "memberId": "m", "memberEpoch": 2, **each}
        answer = {"memberId": "m", "memberEpoch": asked["memberEpoch"], "heartbeatIntervalMs": 500}
        member.ask("StreamsGroupHeartbeat", 0, asked, answer)
    watcher.end(member.at_s)
    return laws(watcher)


def test_a_member_is_judged_by_what_streams_groups_owe() -> None:
    assert after_joining(active(0, 1), {}, active(0)) == []
    assert after_joining(active(0, 1, 2)) == ["client/owns-what-it-is-assigned"]
    assert after_joining({"memberEpoch": 9}) == ["client/names-its-epoch"]


def test_commits_are_not_compared_with_tasks() -> None:
    """A topology has no partitions, and those of its repartition topics may be any."""
    watcher = Watcher(APACHE, lambda line: None)
    member = Member(watcher)
    member.ask("StreamsGroupHeartbeat", 0, JOIN, {"memberId": "m", "memberEpoch": 2, **active(0)})
    placed = {"name": "t", "partitions": [{"partitionIndex": 7, "committedOffset": 1}]}
    asked = {"groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 2, "topics": [placed]}
    member.ask("OffsetCommit", 9, asked, {"topics": []})
    watcher.end(member.at_s)
    assert laws(watcher) == []


async def applications(port: int) -> None:
    """Two applications of one group, the second of which comes later; both end."""
    members = StreamsGroupMembers(RELEASE)
    programs = []
    for number in (1, 2):
        given = Settings(f"127.0.0.1:{port}", "g", ("t",), f"c{number}", protocol="streams", offset_reset="earliest")
        programs.append(await members.start(given))
        await asyncio.sleep(8.0)
    for each in programs:
        each.stop()
        await asyncio.wait_for(each.ended, 30)


@pytest.mark.long
@pytest.mark.jars
@pytest.mark.timeout(200)
def test_an_application_passes_through_the_proxy(tmp_path: Path) -> None:
    try:
        StreamsGroupMembers(RELEASE).words()
    except Unavailable as why:
        pytest.skip(str(why))
    with (
        running(RELEASE, settings=SETTINGS) as broker,
        started("watch", "--upstream", f"127.0.0.1:{broker}", "--out", str(tmp_path / "out")) as (watch, port),
    ):
        admin: Any = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{broker}")
        admin.create_topics([NewTopic("t", 4, 1)])
        admin.close()
        producer: Any = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{broker}")
        for number in range(100):
            producer.send("t", str(number).encode())
        producer.close()
        asyncio.run(applications(port))
        watch.send_signal(signal.SIGINT)
        out, _ = watch.communicate(timeout=60)
    assert watch.returncode == 0, out
    assert "our bugs" not in out and "FAIL" not in out and "WARN" not in out, out
    assert re.search(r"judged: \d+ exchanges: .*\d StreamsGroupHeartbeat", out), out
    assert "watched the coordinator: no unexpected failure" in out
