import threading
import time

from kafka import KafkaConsumer
from loopback import Broker


class Slow(Broker):
    """Gives t-0 in the first generation and t-1 in the second, for which it answers only between two polls."""

    working = threading.Event()

    def sync(self, request):
        if self.joins == 2:
            self.working.wait()
            self.given, self.beats = [1], 0


broker = Slow()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address, group_id="g", enable_auto_commit=False, heartbeat_interval_ms=200
)
consumer.subscribe(["t"])
while not consumer.assignment():
    consumer.poll(timeout_ms=1000)
consumer.subscribe(["t", "u"])
while broker.joins < 2:
    consumer.poll(timeout_ms=100)
broker.working.set()
time.sleep(0.5)  # the application works on something else
for _ in range(10):
    consumer.poll(timeout_ms=200)
print("joins:", broker.joins, "heartbeats since:", "some" if broker.beats else "none")
print("given:", broker.given, "assigned:", [each.partition for each in consumer.assignment()])
