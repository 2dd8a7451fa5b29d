import signal
import sys

from confluent_kafka import Consumer

running = True


def end(*_):
    global running
    running = False


signal.signal(signal.SIGTERM, end)
consumer = Consumer(
    {
        "bootstrap.servers": sys.argv[-1],
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 100,
        "session.timeout.ms": 3000,
        "heartbeat.interval.ms": 300,
        "log_level": 0,
        **({"group.instance.id": "i"} if "static" in sys.argv else {}),
    }
)
consumer.subscribe(["t"])
while running:
    consumer.poll(0.1)
consumer.close()
