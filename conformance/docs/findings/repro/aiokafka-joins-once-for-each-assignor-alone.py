import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor


async def main():
    assignors = [RangePartitionAssignor, RoundRobinPartitionAssignor]
    consumer = AIOKafkaConsumer(
        "t", bootstrap_servers=sys.argv[-1], group_id="g", partition_assignment_strategy=assignors
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await consumer.start()
    await ended.wait()
    await consumer.stop()


asyncio.run(main())
