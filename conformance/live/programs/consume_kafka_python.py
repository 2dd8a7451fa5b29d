"""A consumer of kafka-python: consumes and commits until SIGTERM, then closes."""

import os
import signal
from importlib import import_module
from typing import Any

from kafka import KafkaConsumer

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
}
TEXTS = {"INSTANCE": "group_instance_id", "CLIENT_ID": "client_id"}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


def settings() -> dict[str, Any]:
    found: dict[str, Any] = {key: int(given(name)) for name, key in TIMES.items() if given(name)}
    found |= {key: given(name) for name, key in TEXTS.items() if given(name)}
    if wanted := [ASSIGNORS[name] for name in given("ASSIGNORS").split(",") if name]:
        found["partition_assignment_strategy"] = [
            getattr(import_module(f"kafka.coordinator.assignors.{module}"), cls) for module, cls in wanted
        ]
    return found


def main() -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    consumer = KafkaConsumer(
        *given("TOPICS").split(","),
        bootstrap_servers=given("BOOTSTRAP"),
        group_id=given("GROUP"),
        auto_offset_reset="earliest",
        enable_auto_commit=True,
        auto_commit_interval_ms=100,
        **settings(),
    )
    while not ended:
        for records in consumer.poll(timeout_ms=100).values():
            for each in records:
                print(each.topic, each.partition, each.offset, flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
