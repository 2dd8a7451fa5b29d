import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer


async def main():
    consumer = AIOKafkaConsumer(
        "t",
        bootstrap_servers=sys.argv[-1],
        group_id="g",
        session_timeout_ms=3000,
        heartbeat_interval_ms=300,
        auto_commit_interval_ms=60000,
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await consumer.start()
    while not ended.is_set():
        await consumer.getmany(timeout_ms=100)
    await consumer.stop()


asyncio.run(main())
