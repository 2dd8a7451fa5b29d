"""A consumer of kafka-python: consumes and commits until SIGTERM, then closes."""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import kafka
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
REST_S = 0.02
"""After a poll that waits for nothing."""
TEXTS = {"INSTANCE": "group_instance_id", "CLIENT_ID": "client_id"}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


POLL_MS = int(given("POLL_MS") or 100)


def report(callback: str, partitions: Any) -> None:
    """To kipcheck, as all its programs do."""
    print("kipcheck:", callback, *(f"{at.topic}-{at.partition}" for at in partitions), file=sys.stderr, flush=True)


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


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # without types
    """Finishes the work of a program that commits here, and commits what it read of the partitions."""

    def __init__(self, program: "Program") -> None:
        self.program = program

    def on_partitions_revoked(self, revoked: Any) -> None:
        report("revoked", revoked)
        self.finish(revoked)

    def finish(self, revoked: Any) -> None:
        if read := self.program.taken(revoked):
            self.program.work()
            self.program.attempt(lambda: self.program.consumer.commit(read))

    def on_partitions_lost(self, lost: Any) -> None:
        report("lost", lost)
        self.program.taken(lost)

    def on_partitions_assigned(self, assigned: Any) -> None:
        report("assigned", assigned)
        self.program.rebalanced = True


class AsyncListener(getattr(kafka, "AsyncConsumerRebalanceListener", object)):  # type: ignore[misc]
    """The same from 3.0 on, where callbacks run on the event loop of the client."""

    def __init__(self, program: "Program") -> None:
        self.program = program

    async def on_partitions_revoked(self, revoked: Any) -> None:
        report("revoked", revoked)
        if read := self.program.taken(revoked):
            consumer = self.program.consumer
            await consumer._net.sleep(0 if self.program.ended else int(given("PAUSE_MS") or 0) / 1000)
            with suppress(KafkaError):
                await consumer.commit_async(read)

    async def on_partitions_lost(self, lost: Any) -> None:
        report("lost", lost)
        self.program.taken(lost)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        report("assigned", assigned)
        self.program.rebalanced = True


class Program:
    def __init__(self) -> None:
        self.consumer: Any = KafkaConsumer(
            bootstrap_servers=given("BOOTSTRAP"),
            group_id=given("GROUP"),
            auto_offset_reset=given("OFFSET_RESET") or "earliest",
            **settings(),
        )
        named = {"pattern": given("PATTERN")} if given("PATTERN") else {"topics": given("TOPICS").split(",")}
        listener = AsyncListener if hasattr(kafka, "AsyncConsumerRebalanceListener") else Listener
        self.listener = listener(self)
        self.consumer.subscribe(**named, listener=self.listener)
        self.ended = self.is_busy = self.rebalanced = False
        self.held: dict[Any, int] = {}
        self.done: dict[Any, int] = {}
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *signal: Any) -> None:
        self.ended = True

    def taken(self, partitions: Any) -> dict[Any, Any]:
        """What a program that commits in callbacks has read of these partitions, which it has no longer."""
        if given("COMMIT") != "revoked":
            return {}
        return offsets({at: self.held.pop(at) for at in partitions if at in self.held})

    def run(self) -> None:
        while not self.ended:
            if given("RESUME"):
                self.consumer.resume(*self.consumer.assignment())
            found = self.consumer.poll(timeout_ms=POLL_MS)
            time.sleep(0 if POLL_MS else REST_S)
            for records in found.values():
                for each in records:
                    print(each.topic, each.partition, each.offset, flush=True)
            self.is_busy |= bool(found)
            self.work()
            self.commit({partition: records[-1].offset + 1 for partition, records in found.items()})
        if isinstance(self.listener, Listener):  # which these releases call for rebalances alone
            self.listener.finish(self.consumer.assignment())
        self.consumer.close()

    def work(self) -> None:
        until = time.monotonic() + int(given("PAUSE_MS") or 0) / 1000
        while self.is_busy and not self.ended and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def commit(self, read: dict[TopicPartition, int]) -> None:
        how = given("COMMIT")
        if how == "sync" and read:
            self.attempt(self.consumer.commit)
        elif how == "async" and read:
            self.attempt(self.consumer.commit_async)
        elif how == "late":
            self.attempt(lambda: self.commit_late(read))
        elif how == "revoked":
            self.held |= read

    def attempt(self, commit: Callable[[], object]) -> None:
        """What can be tried again is, after the next poll."""
        try:
            commit()
        except KafkaError as refused:
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
            self.consumer.commit(offsets(late))


def offsets(read: dict[Any, int]) -> dict[Any, Any]:
    """In the form of the release."""
    fields = len(OffsetAndMetadata._fields)
    return {at: OffsetAndMetadata(*(offset, "", -1)[:fields]) for at, offset in read.items()}


if __name__ == "__main__":
    Program().run()
