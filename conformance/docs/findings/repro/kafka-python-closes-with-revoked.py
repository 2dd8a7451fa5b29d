import time

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from loopback import Broker


class Rebalances(Broker):
    """Rebalances after the first heartbeat, and answers the second JoinGroup after two seconds."""

    protocol = "cooperative-sticky"

    def heartbeat(self):
        return 27 if self.joins == 1 else 0  # REBALANCE_IN_PROGRESS

    def join(self, request):
        super().join(request)
        if self.joins == 2:
            time.sleep(2)


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
    partition_assignment_strategy=[CooperativeStickyAssignor],
)
consumer.subscribe(["t"], listener=Listener())
while not consumer.assignment():
    consumer.poll(timeout_ms=1000)
while broker.joins < 2:
    consumer.poll(timeout_ms=100)
print("closes while the group rebalances")
consumer.close()
