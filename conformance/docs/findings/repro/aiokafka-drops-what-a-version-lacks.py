import asyncio
import threading

from aiokafka import AIOKafkaConsumer
from loopback import VERSIONS, Broker


class Old(Broker):
    """A broker before 2.3, without instance ids."""

    protocol, done = "roundrobin", threading.Event()

    def join(self, request):
        super().join(request)
        print("instance id in JoinGroup:", b"static-1" in request)

    def sync(self, request):
        self.done.set()


VERSIONS |= {11: (2, 4), 12: (1, 2), 14: (1, 2)}


async def main():
    broker = Old()
    consumer = AIOKafkaConsumer(
        "t", bootstrap_servers=broker.address, group_id="g", group_instance_id="static-1", enable_auto_commit=False
    )
    try:
        await consumer.start()
        while not broker.done.is_set():
            await asyncio.sleep(0.1)
        await consumer.stop()
        print("joined")
    except Exception as error:
        print(type(error).__name__, error)


asyncio.run(main())
