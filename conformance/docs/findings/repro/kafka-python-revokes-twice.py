import threading

from kafka import ConsumerRebalanceListener, KafkaConsumer
from loopback import Broker


class Rebalances(Broker):
    """Rebalances the group, and waits for another member then."""

    closed = threading.Event()

    def heartbeat(self):
        return 27

    def join(self, request):
        super().join(request)
        if self.joins == 2:
            self.closed.wait()


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        print("assigned", [each.partition for each in assigned])

    def on_partitions_revoked(self, revoked):
        print("revoked", [each.partition for each in revoked])

    def on_partitions_lost(self, lost):
        print("lost", [each.partition for each in lost])


broker = Rebalances()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address,
    group_id="g",
    enable_auto_commit=False,
    heartbeat_interval_ms=200,
)
consumer.subscribe(["t"], listener=Listener())
while broker.joins < 2:
    consumer.poll(timeout_ms=1000)
print("closes")
consumer.close(timeout_ms=1000)
broker.closed.set()
