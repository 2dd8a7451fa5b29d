"""A consumer of confluent-kafka (librdkafka) that prints its callbacks, each with the time at which it begins."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer

NAMES = {
    "BOOTSTRAP": "bootstrap.servers",
    "GROUP": "group.id",
    "CLIENT_ID": "client.id",
    "ASSIGNORS": "partition.assignment.strategy",
    "SESSION_MS": "session.timeout.ms",
    "HEARTBEAT_MS": "heartbeat.interval.ms",
    "REBALANCE_MS": "max.poll.interval.ms",
}


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


def show(what: str, at: int, partitions: Any = ()) -> None:
    print(what, at, ",".join(f"{each.topic}-{each.partition}" for each in partitions), flush=True)


def callback(what: str) -> Callable[[Any, Any], None]:
    return lambda consumer, partitions: show(what, time.monotonic_ns(), partitions)


def main() -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    settings = {key: given(name) for name, key in NAMES.items() if given(name)}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100})
    consumer.subscribe(
        given("TOPICS").split(","),
        on_assign=callback("assigned"),
        on_revoke=callback("revoked"),
        on_lost=callback("lost"),
    )
    while not ended:
        record = consumer.poll(0.1)
        if record is not None and record.error() is None:
            print("read", time.monotonic_ns(), f"{record.topic()}-{record.partition()}", flush=True)
    show("closing", time.monotonic_ns())
    consumer.close()


if __name__ == "__main__":
    main()
