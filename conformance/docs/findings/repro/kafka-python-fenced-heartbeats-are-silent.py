import time

from kafka import KafkaConsumer
from loopback import Broker


class Fences(Broker):
    """Fences the consumer: another process has joined with its instance id."""

    def heartbeat(self):
        return 82  # FENCED_INSTANCE_ID


broker = Fences()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address,
    group_id="g",
    group_instance_id="i",
    enable_auto_commit=False,
    heartbeat_interval_ms=200,
)
consumer.subscribe(["t"])
end = time.monotonic() + 3
try:
    while time.monotonic() < end:
        consumer.poll(timeout_ms=500)
    print("no error after", broker.beats, "heartbeat; assigned:", [each.partition for each in consumer.assignment()])
except Exception as error:
    print("raised", type(error).__name__)
