"""A consumer of kafka-python that prints its callbacks, each with the time at which it begins."""

import importlib
import os
import signal
import time
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer

ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


def show(what: str, at: int, partitions: Any = ()) -> None:
    print(what, at, ",".join(f"{each.topic}-{each.partition}" for each in partitions), flush=True)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_assigned(self, assigned: Any) -> None:
        show("assigned", time.monotonic_ns(), assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        show("revoked", time.monotonic_ns(), revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        show("lost", time.monotonic_ns(), lost)


def assignor(name: str) -> Any:
    module, made = ASSIGNORS[name]
    return getattr(importlib.import_module(f"kafka.coordinator.assignors.{module}"), made)


def main() -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    consumer = KafkaConsumer(
        bootstrap_servers=given("BOOTSTRAP"),
        group_id=given("GROUP"),
        client_id=given("CLIENT_ID"),
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
        session_timeout_ms=int(given("SESSION_MS")),
        heartbeat_interval_ms=int(given("HEARTBEAT_MS")),
        max_poll_interval_ms=int(given("REBALANCE_MS")),
        partition_assignment_strategy=[assignor(each) for each in given("ASSIGNORS").split(",")],
    )
    consumer.subscribe(given("TOPICS").split(","), listener=Listener())
    while not ended:
        for each in consumer.poll(timeout_ms=100):
            show("read", time.monotonic_ns(), [each])
    show("closing", time.monotonic_ns())
    consumer.close()


if __name__ == "__main__":
    main()
