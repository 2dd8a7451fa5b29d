import signal
import sys

from confluent_kafka import Consumer

running = True


def end(*_):
    global running
    running = False


signal.signal(signal.SIGTERM, end)
consumer = Consumer(
    {"bootstrap.servers": sys.argv[-1], "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
)
consumer.subscribe(["t"])
while running:
    message = consumer.poll(0.1)
    if message is not None and message.error() is not None:
        print("poll:", message.error().name(), flush=True)
consumer.close()
