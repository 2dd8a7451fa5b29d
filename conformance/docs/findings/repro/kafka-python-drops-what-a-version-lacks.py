from kafka import KafkaConsumer
from loopback import VERSIONS, Broker


class Old(Broker):
    """A broker before 2.3, without instance ids."""

    def join(self, request):
        super().join(request)
        print("instance id in JoinGroup:", b"static-1" in request)


VERSIONS |= {11: (2, 4), 12: (1, 2), 14: (1, 2)}
broker = Old()
consumer = KafkaConsumer(
    bootstrap_servers=broker.address, group_id="g", group_instance_id="static-1", enable_auto_commit=False
)
consumer.subscribe(["t"])
try:
    while not consumer.assignment():
        consumer.poll(timeout_ms=1000)
    print("assigned:", [each.partition for each in consumer.assignment()])
except Exception as error:
    print(type(error).__name__)
