import threading
import time

from kafka import KafkaConsumer
from loopback import Broker


class Slow(Broker):
    """Answers SyncGroup only while the application does not poll."""

    working = threading.Event()

    def sync(self, request):
        self.working.wait()


broker = Slow()
consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id="g", enable_auto_commit=False)
consumer.subscribe(["t"])
while broker.joins < 5 and not consumer.assignment():
    broker.working.clear()
    consumer.poll(timeout_ms=100)
    broker.working.set()
    time.sleep(0.5)  # the application works on something else
print("joins:", broker.joins, "assigned:", [each.partition for each in consumer.assignment()])
