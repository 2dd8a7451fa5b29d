"""A consumer of kafka-python: consumes and commits until SIGTERM, then closes."""

import os
import signal
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
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
    if given("ASSIGNORS"):
        found["partition_assignment_strategy"] = [ASSIGNORS[name] for name in given("ASSIGNORS").split(",")]
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
