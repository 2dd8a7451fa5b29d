"""A consumer of kafka-python: consumes and commits until SIGTERM, then closes."""

import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.errors import CommitFailedError, KafkaError
from kafka.structs import OffsetAndMetadata

ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
"""Modules and classes. Not every release has all of them: one is imported where it is wanted."""
TIMES = {
    "SESSION_MS": "session_timeout_ms",
    "HEARTBEAT_MS": "heartbeat_interval_ms",
    "REBALANCE_MS": "max_poll_interval_ms",
    "MAX_POLL_MS": "max_poll_interval_ms",
}
TEXTS = {"INSTANCE": "group_instance_id", "CLIENT_ID": "client_id"}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


def settings() -> dict[str, Any]:
    found: dict[str, Any] = {key: int(given(name)) for name, key in TIMES.items() if given(name)}
    found |= {key: given(name) for name, key in TEXTS.items() if given(name)}
    if names := [name for name in given("ASSIGNORS").split(",") if name]:
        found["partition_assignment_strategy"] = [assignor(name) for name in names]
    if given("COMMIT") in ("", "auto"):
        return {**found, "enable_auto_commit": True, "auto_commit_interval_ms": int(given("COMMIT_MS") or 100)}
    return {**found, "enable_auto_commit": False}


def assignor(name: str) -> Any:
    module, made = ASSIGNORS[name]
    try:
        return getattr(import_module(f"kafka.coordinator.assignors.{module}"), made)
    except ImportError:
        sys.exit(f"this release of kafka-python has no assignor {name}")


class Program(ConsumerRebalanceListener):  # type: ignore[misc]  # without types
    def __init__(self) -> None:
        self.consumer: Any = KafkaConsumer(
            bootstrap_servers=given("BOOTSTRAP"),
            group_id=given("GROUP"),
            auto_offset_reset=given("OFFSET_RESET") or "earliest",
            **settings(),
        )
        named = {"pattern": given("PATTERN")} if given("PATTERN") else {"topics": given("TOPICS").split(",")}
        self.consumer.subscribe(**named, listener=self)
        self.ended = self.is_busy = self.rebalanced = False
        self.held: dict[Any, int] = {}
        self.done: dict[Any, int] = {}
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *signal: Any) -> None:
        self.ended = True

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.rebalanced = True

    def run(self) -> None:
        while not self.ended:
            found = self.consumer.poll(timeout_ms=100)
            for records in found.values():
                for each in records:
                    print(each.topic, each.partition, each.offset, flush=True)
            self.is_busy |= bool(found)
            self.work()
            self.commit({partition: records[-1].offset + 1 for partition, records in found.items()})
        self.consumer.close()

    def work(self) -> None:
        until = time.monotonic() + int(given("PAUSE_MS") or 0) / 1000
        while self.is_busy and not self.ended and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def commit(self, read: dict[TopicPartition, int]) -> None:
        how = given("COMMIT")
        try:
            if how == "sync" and read:
                self.consumer.commit()
            elif how == "async" and read:
                self.consumer.commit_async()
            elif how == "late":
                self.commit_late(read)
        except KafkaError as refused:  # what can be tried again is, after the next poll
            if not (isinstance(refused, CommitFailedError) or getattr(refused, "retriable", False)):
                raise
            print(repr(refused), file=sys.stderr, flush=True)

    def commit_late(self, read: dict[TopicPartition, int]) -> None:
        """After a rebalance: what was read before, of the partitions that the consumer still has."""
        late: dict[Any, int] = {}
        if self.rebalanced:
            kept = self.consumer.assignment()
            late = {at: offset for at, offset in self.held.items() if at in kept and offset > self.done.get(at, 0)}
            self.held, self.rebalanced = {}, False
        self.held |= read
        if late:
            self.done |= late
            fields = len(OffsetAndMetadata._fields)
            self.consumer.commit({at: OffsetAndMetadata(*(offset, "", -1)[:fields]) for at, offset in late.items()})


if __name__ == "__main__":
    Program().run()
