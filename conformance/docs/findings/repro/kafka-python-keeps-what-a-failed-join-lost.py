import struct

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from loopback import Broker


class Removes(Broker):
    """Rebalances the group, and removes the consumer before it is assigned anything: UNKNOWN_MEMBER_ID on SyncGroup."""

    protocol = "cooperative-sticky"

    def heartbeat(self):
        return 27 if self.joins == 1 else 0

    def answer(self, key, request):
        if key == 14 and self.joins == 2:
            return struct.pack(">ihi", 0, 25, 0)
        return super().answer(key, request)


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        print("assigned", [each.partition for each in assigned])

    def on_partitions_revoked(self, revoked):
        print("revoked", [each.partition for each in revoked])

    def on_partitions_lost(self, lost):
        print("lost", [each.partition for each in lost])


broker = Removes()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address,
    group_id="g",
    enable_auto_commit=False,
    heartbeat_interval_ms=200,
    partition_assignment_strategy=[CooperativeStickyAssignor],
)
consumer.subscribe(["t"], listener=Listener())
while broker.joins < 3:
    consumer.poll(timeout_ms=1000)
consumer.poll(timeout_ms=1000)
print("joins:", broker.joins, "assigned:", [each.partition for each in consumer.assignment()])
