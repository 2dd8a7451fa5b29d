import asyncio
import threading

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.protocol.group import JoinGroupRequest_v5
from loopback import Broker


class Rebalances(Broker):
    """Gives t-0 in generation 1, and rebalances at the first heartbeat."""

    protocol, done = "sticky", threading.Event()

    def heartbeat(self):
        return 27 if self.joins == 1 else 0  # REBALANCE_IN_PROGRESS

    def join(self, request):
        super().join(request)
        ((_, metadata),) = JoinGroupRequest_v5.decode(request).group_protocols
        print(
            "join", self.joins, "user data:", ConsumerProtocolMemberMetadata.decode(metadata).user_data.hex() or "none"
        )
        if self.joins == 2:
            self.done.set()


async def main():
    broker = Rebalances()
    consumer = AIOKafkaConsumer(
        "t",
        bootstrap_servers=broker.address,
        group_id="g",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        partition_assignment_strategy=[StickyPartitionAssignor],
    )
    await consumer.start()
    while not broker.done.is_set():
        await asyncio.sleep(0.1)
    await consumer.stop()


asyncio.run(main())
