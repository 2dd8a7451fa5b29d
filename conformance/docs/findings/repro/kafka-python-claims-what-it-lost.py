from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.protocol.consumer.group import JoinGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from loopback import Broker


class Removes(Broker):
    """Removes the consumer from the group once: ILLEGAL_GENERATION on heartbeat."""

    protocol = "cooperative-sticky"

    def join(self, request):
        super().join(request)
        ((_, metadata),) = JoinGroupRequest.decode(request, version=5).protocols
        owned = ConsumerProtocolSubscription.decode(metadata).owned_partitions
        print("join", self.joins, "owned:", [(each.topic, each.partitions) for each in owned])

    def heartbeat(self):
        return 22 if self.joins == 1 else 0


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
while broker.joins < 2:
    consumer.poll(timeout_ms=1000)
