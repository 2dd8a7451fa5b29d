from kafka import ConsumerRebalanceListener, KafkaConsumer
from loopback import Broker


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        print("assigned", [each.partition for each in assigned])

    def on_partitions_revoked(self, revoked):
        print("revoked", [each.partition for each in revoked])


broker = Broker()
consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id="g", enable_auto_commit=False)
consumer.subscribe(["t"], listener=Listener())
while not consumer.assignment():
    consumer.poll(timeout_ms=1000)
consumer.unsubscribe()
print("unsubscribed, assigned:", [each.partition for each in consumer.assignment()])
