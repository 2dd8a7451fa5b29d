import signal
import sys

from kafka import KafkaConsumer

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
consumer = KafkaConsumer(
    "t",
    bootstrap_servers=sys.argv[-1],
    group_id="g",
    session_timeout_ms=3000,
    heartbeat_interval_ms=300,
    reconnect_backoff_max_ms=100,
)
for message in consumer:
    pass
