"""Serves the mock cluster of librdkafka, which is inside confluent-kafka, until the end of standard input."""

import sys

from confluent_kafka import Producer

owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
(broker,) = owner.list_topics(timeout=30).brokers.values()
print(f"listening {broker.host}:{broker.port}", flush=True)
sys.stdin.read()
