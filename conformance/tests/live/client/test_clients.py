"""Released clients, unmodified, join the broker: they share partitions, die, join, return, and keep their offsets."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.tests.support.live import known, serving
from kipcheck.conformance.tests.support.live_clients import Consumers, Watch
from kipcheck.conformance.tests.support.loops import some_by_day

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TOPICS = {"t": 4, "u": 3}
SESSION_MS = 2000
SETTINGS = ("group.min.session.timeout.ms=100", f"group.consumer.session.timeout.ms={SESSION_MS}",
            "group.consumer.heartbeat.interval.ms=200")  # fmt: skip
QUICK: dict[str, Any] = {"session_ms": SESSION_MS, "heartbeat_ms": 200, "rebalance_ms": 10_000}
Story = Callable[[Consumers], Awaitable[None]]


ATTEMPTS = {"kafka-python": 3}
"""Clients whose own defects sometimes end a story. kafka-python 3.0.12: a leader that joins again since its metadata
changed forgets that join if it outlasts a poll, so that it sends nothing any more, neither heartbeats nor Fetch
(docs/findings/kafka-python-forgets-a-join-for-a-new-subscription.md)."""


def play(
    client: str,
    story: Story,
    place: Path,
    named: str = f"apache@{NEWEST}",
    broker: Sequence[str] = SETTINGS,
    **settings: Any,
) -> Watch:
    """Plays a story; then the client may have sent nothing that strict decoding refuses. Returns what was seen.

    ``broker``: its settings, of which it gets those that its release has.
    """

    async def main() -> Watch:
        watch = Watch(Topics.of(TOPICS.items()))
        config = known(broker, edition(named).release)
        async with serving(topics=TOPICS, config=config, observers=(watch,), named=named) as world:
            consumers = Consumers(world, watch, client, place, **{**QUICK, **settings})
            try:
                await story(consumers)
            finally:
                await consumers.close()
            assert world.counts["our bugs"] == 0
            assert [str(each.refused) for each in watch.findings] == []
        return watch

    for _ in range(ATTEMPTS.get(client, 1) - 1):
        with contextlib.suppress(AssertionError):
            return asyncio.run(main())
    return asyncio.run(main())


async def one_dies_and_one_joins(consumers: Consumers) -> None:
    """Three members share all partitions and commit; one is killed; the others take its partitions over, at the
    committed offsets; another member joins; all leave."""
    watch = consumers.watch
    await consumers.start("a", "b", "c")
    await consumers.until(lambda: watch.shared("a", "b", "c"))
    await consumers.until(lambda: set(watch.committed.values()) == {10} and len(watch.committed) == 7)
    await consumers.kill("b")
    await consumers.until(lambda: watch.shared("a", "c"))
    await consumers.start("d")
    await consumers.until(lambda: watch.shared("a", "c", "d"))
    assert not watch.re_read
    await consumers.stop("a", "c", "d")
    assert watch.left >= {"a", "c", "d"}


async def a_static_member_returns(consumers: Consumers) -> None:
    """A member with an instance id ends and starts again within its session: it leaves nothing, and gets the same
    partitions in the same generation."""
    watch = consumers.watch
    await consumers.start("a", instance="one")
    await consumers.start("b", instance="two")
    await consumers.until(lambda: watch.shared("a", "b"))
    await consumers.until(lambda: len(watch.committed) == 7)
    share, generation = watch.share("a"), max(each for _, each in watch.generations)
    await consumers.stop("a")
    await consumers.start("a", instance="one")
    await consumers.until(lambda: watch.shared("a", "b"))
    assert watch.share("a") == share
    assert max(each for _, each in watch.generations) == generation
    assert not watch.left
    assert not watch.re_read
    await consumers.stop("a", "b")


JAVA = tuple(pytest.param(f"java@{release}", marks=pytest.mark.jars) for release in ("2.3.1", "3.9.2", "4.4.0"))
GO = pytest.param("franz-go", marks=pytest.mark.go)
SARAMA = pytest.param("sarama", marks=pytest.mark.go)
NODE = tuple(pytest.param(name, marks=pytest.mark.node) for name in ("kafkajs", "platformatic-kafka"))
EAGER = ("kafka-python", "aiokafka", "confluent-kafka", *JAVA, GO, SARAMA, *NODE)
COOPERATIVE = ("kafka-python", "confluent-kafka", *JAVA[1:], GO)
STATIC = ("kafka-python", "aiokafka", "confluent-kafka", *JAVA, GO, SARAMA)
CONSUMER = ("confluent-kafka", JAVA[2], GO, NODE[1])


@pytest.mark.parametrize("client", some_by_day(EAGER, 5))
def test_members_die_and_join_with_an_eager_assignor(client: str, tmp_path: Path) -> None:
    play(client, one_dies_and_one_joins, tmp_path, assignors="range")


@pytest.mark.parametrize("client", some_by_day(COOPERATIVE, 2))
def test_members_die_and_join_with_a_cooperative_assignor(client: str, tmp_path: Path) -> None:
    play(client, one_dies_and_one_joins, tmp_path, assignors="cooperative-sticky")


@pytest.mark.parametrize("client", some_by_day(STATIC, 3))
def test_static_members_return(client: str, tmp_path: Path) -> None:
    play(client, a_static_member_returns, tmp_path, assignors="range", session_ms=20_000)


@pytest.mark.parametrize("client", some_by_day(CONSUMER, 2))
def test_members_of_consumer_groups_die_and_join(client: str, tmp_path: Path) -> None:
    watch = play(client, one_dies_and_one_joins, tmp_path, protocol="consumer")
    assert all("ConsumerGroupHeartbeat" in watch.apis[name] for name in "abcd")
    assert not watch.generations


@pytest.mark.jars
def test_members_of_the_preview_of_consumer_groups_die_and_join(tmp_path: Path) -> None:
    """With version 0 of the heartbeat, in which the coordinator makes the member ids."""
    preview = *SETTINGS, "group.coordinator.rebalance.protocols=classic,consumer"
    watch = play("java@3.9.2", one_dies_and_one_joins, tmp_path, "apache@3.9.2", preview, protocol="consumer")
    assert {watch.apis[name]["ConsumerGroupHeartbeat"] for name in "abcd"} == {0}
    assert not watch.generations


@pytest.mark.parametrize(
    ("client", "named"),
    some_by_day(
        [
            ("kafka-python", "apache@0.11.0.3"),
            ("aiokafka", "apache@1.1.1"),
            ("confluent-kafka", "apache@2.3.1"),
            pytest.param("java@2.3.1", "apache@2.3.1", marks=pytest.mark.jars),
            ("kafka-python", "apache@3.9.2"),
            ("confluent-kafka", "apache"),
        ],
        2,
    ),
)
def test_members_of_earlier_brokers_die_and_join(client: str, named: str, tmp_path: Path) -> None:
    play(client, one_dies_and_one_joins, tmp_path, named, assignors="range")
