from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from loopback import Broker


class Rebalances(Broker):
    """Rebalances the group once, and assigns to the consumer what it has already."""

    protocol = "cooperative-sticky"

    def heartbeat(self):
        return 27 if self.joins == 1 else 0


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        print("assigned", [each.partition for each in assigned])

    def on_partitions_revoked(self, revoked):
        print("revoked", [each.partition for each in revoked])


broker = Rebalances()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address,
    group_id="g",
    enable_auto_commit=False,
    heartbeat_interval_ms=200,
    partition_assignment_strategy=[CooperativeStickyAssignor],
)
consumer.subscribe(["t"], listener=Listener())
while broker.joins < 2:
    consumer.poll(timeout_ms=1000)
consumer.poll(timeout_ms=1000)
print("rebalances:", broker.joins, "assigned:", [each.partition for each in consumer.assignment()])
