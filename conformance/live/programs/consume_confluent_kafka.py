"""A consumer of confluent-kafka (librdkafka): consumes and commits until SIGTERM, then closes."""

import os
import signal

from confluent_kafka import Consumer

NAMES = {
    "BOOTSTRAP": "bootstrap.servers",
    "GROUP": "group.id",
    "INSTANCE": "group.instance.id",
    "CLIENT_ID": "client.id",
    "PROTOCOL": "group.protocol",
    "REBALANCE_MS": "max.poll.interval.ms",
}
CLASSIC = {
    "ASSIGNORS": "partition.assignment.strategy",
    "SESSION_MS": "session.timeout.ms",
    "HEARTBEAT_MS": "heartbeat.interval.ms",
}
"""Settings that librdkafka refuses with the protocol "consumer"."""


def given(name: str) -> str:
    return os.environ.get(f"KIPCHECK_{name}", "")


def main() -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    names = NAMES if given("PROTOCOL") == "consumer" else NAMES | CLASSIC
    settings = {key: given(name) for name, key in names.items() if given(name)}
    if int(given("REBALANCE_MS") or 0) and "session.timeout.ms" in settings:
        longest = max(int(given("REBALANCE_MS")), int(settings["session.timeout.ms"]))
        settings["max.poll.interval.ms"] = str(longest)  # librdkafka refuses a shorter one
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100})
    consumer.subscribe(given("TOPICS").split(","))
    while not ended:
        record = consumer.poll(0.1)
        if record is not None and record.error() is None:
            print(record.topic(), record.partition(), record.offset(), flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
