"""A consumer of aiokafka: consumes and commits until SIGTERM, then closes."""

import asyncio
import os
import signal
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
TIMES = {
    "SESSION_MS": "session_timeout_ms",
    "HEARTBEAT_MS": "heartbeat_interval_ms",
    "REBALANCE_MS": "rebalance_timeout_ms",
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


async def main() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    consumer = AIOKafkaConsumer(
        *given("TOPICS").split(","),
        bootstrap_servers=given("BOOTSTRAP"),
        group_id=given("GROUP"),
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
        **settings(),
    )
    await consumer.start()
    while not ended.is_set():
        for partition, records in (await consumer.getmany(timeout_ms=100)).items():
            print(partition.topic, partition.partition, records[-1].offset, flush=True)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
