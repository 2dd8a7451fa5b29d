"""A consumer of confluent-kafka (librdkafka): consumes and commits until SIGTERM, then closes.

Old releases have wheels for Python 3.8 at most, and no callback for lost partitions.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

NAMES = {
    "BOOTSTRAP": "bootstrap.servers",
    "GROUP": "group.id",
    "INSTANCE": "group.instance.id",
    "CLIENT_ID": "client.id",
    "PROTOCOL": "group.protocol",
    "REBALANCE_MS": "max.poll.interval.ms",
    "MAX_POLL_MS": "max.poll.interval.ms",
}
CLASSIC = {
    "ASSIGNORS": "partition.assignment.strategy",
    "SESSION_MS": "session.timeout.ms",
    "HEARTBEAT_MS": "heartbeat.interval.ms",
}
"""Settings that librdkafka refuses with the protocol "consumer"."""
REST_S = 0.02
"""After a poll that waits for nothing."""
FATAL = ("_FATAL", "_FENCED", "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "FENCED_INSTANCE_ID")
"""Errors of commits after which the program ends."""

LOSES = "on_lost" in Consumer.subscribe.__doc__
"""Whether it has the callback for lost partitions."""


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


POLL_S = int(given("POLL_MS") or 100) / 1000


def settings() -> dict[str, Any]:
    names = NAMES if given("PROTOCOL") == "consumer" else {**NAMES, **CLASSIC}
    found: dict[str, Any] = {key: given(name) for name, key in names.items() if given(name)}
    if int(given("REBALANCE_MS") or 0) and "session.timeout.ms" in found:
        longest = max(int(found["max.poll.interval.ms"]), int(found["session.timeout.ms"]))
        found["max.poll.interval.ms"] = str(longest)  # librdkafka refuses a shorter one
    found["enable.auto.commit"] = given("COMMIT") in ("", "auto")
    found["auto.commit.interval.ms"] = given("COMMIT_MS") or "100"
    return {**found, "auto.offset.reset": given("OFFSET_RESET") or "earliest"}


class Program:
    def __init__(self) -> None:
        self.consumer = Consumer(settings())
        self.ended = self.is_busy = self.rebalanced = False
        self.held: dict[tuple[str, int], int] = {}
        self.done: dict[tuple[str, int], int] = {}
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *signal: Any) -> None:
        self.ended = True

    def assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalanced = True

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Finishes its work, and commits what was read of these partitions."""
        read = {at: self.held[at] for each in partitions if (at := (each.topic, each.partition)) in self.held}
        if given("COMMIT") == "revoked" and read:
            self.work()
            self.lost(consumer, partitions)
            self.tried(lambda: self.commit_all(read))

    def lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if given("COMMIT") == "revoked":
            for each in partitions:
                self.held.pop((each.topic, each.partition), None)

    def run(self) -> None:
        topics = [given("PATTERN")] if given("PATTERN") else given("TOPICS").split(",")
        callbacks = {"on_assign": self.assigned, "on_revoke": self.revoked}
        if LOSES:
            callbacks["on_lost"] = self.lost
        self.consumer.subscribe(topics, **callbacks)
        while not self.ended:
            if given("RESUME"):
                self.consumer.resume(self.consumer.assignment())
            records = [each for each in self.consumer.consume(100, POLL_S) if each.error() is None]
            time.sleep(0 if POLL_S else REST_S)
            for each in records:
                print(each.topic(), each.partition(), each.offset(), flush=True)
            self.is_busy |= bool(records)
            self.work()
            self.commit({(each.topic(), each.partition()): each.offset() + 1 for each in records})
        self.consumer.close()

    def work(self) -> None:
        until = time.monotonic() + int(given("PAUSE_MS") or 0) / 1000
        while self.is_busy and not self.ended and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def commit(self, read: dict[tuple[str, int], int]) -> None:
        how = given("COMMIT")
        if how in ("sync", "async") and read:
            self.tried(lambda: self.consumer.commit(asynchronous=how == "async"))
        elif how == "late":
            self.tried(lambda: self.commit_late(read))
        elif how == "revoked":
            self.held |= read

    def tried(self, work: Callable[[], object]) -> None:
        try:
            work()
        except KafkaException as refused:  # what can be tried again is, after the next poll
            if refused.args[0].name() in FATAL:
                raise
            print(refused, file=sys.stderr, flush=True)

    def commit_late(self, read: dict[tuple[str, int], int]) -> None:
        """After a rebalance: what was read before, of the partitions that the consumer still has."""
        late: dict[tuple[str, int], int] = {}
        if self.rebalanced:
            kept = {(each.topic, each.partition) for each in self.consumer.assignment()}
            late = {at: offset for at, offset in self.held.items() if at in kept and offset > self.done.get(at, 0)}
            self.held, self.rebalanced = {}, False
        self.held |= read
        if late:
            self.done |= late
            self.commit_all(late)

    def commit_all(self, offsets: dict[tuple[str, int], int]) -> None:
        self.consumer.commit(
            offsets=[TopicPartition(*at, offset) for at, offset in offsets.items()], asynchronous=False
        )


if __name__ == "__main__":
    Program().run()
