import threading

from kafka import KafkaConsumer
from loopback import Broker


class Slow(Broker):
    """Answers SyncGroup late, as a coordinator does while the leader assigns."""

    sent, assigned = threading.Event(), threading.Event()

    def sync(self, request):
        self.sent.set()
        self.assigned.wait()


broker = Slow()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address, group_id="g", group_instance_id="i", enable_auto_commit=False
)
consumer.subscribe(["t"])
while not broker.sent.is_set():
    consumer.poll(timeout_ms=100)
consumer.unsubscribe()
consumer.subscribe(["t"])
threading.Timer(1, broker.assigned.set).start()
try:
    while not consumer.assignment():
        consumer.poll(timeout_ms=5000)
    print("joins:", broker.joins, "assigned:", [each.partition for each in consumer.assignment()])
except (AssertionError, ValueError) as error:
    print(type(error).__name__, error)
