import struct
import time

from kafka import KafkaConsumer
from kafka.protocol.consumer.group import SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from loopback import Broker, text


class Elects(Broker):
    """The consumer subscribes to t and leads the group; its other member subscribes to u."""

    def answer(self, key, request):
        if key == 3:  # Metadata: this broker; one partition of each topic in the request
            node = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self.server_address[1])
            found = [each for each in "tu" if text(each) in request]
            partition = struct.pack(">?ihiiii", False, 1, 0, 0, 1, 0, 0)
            topics = b"".join(struct.pack(">h", 0) + text(each) + partition for each in found)
            return struct.pack(">i", 1) + node + struct.pack(">hii", -1, 1, len(found)) + topics
        if key != 11:
            return super().answer(key, request)
        self.join(request)
        time.sleep(0.5)  # waits for more members, as brokers do
        answer = struct.pack(">ihi", 0, 0, self.joins) + text("range") + text("me") + text("me") + struct.pack(">i", 2)
        for member, topic in (("me", "t"), ("other", "u")):
            subscription = struct.pack(">hi", 0, 1) + text(topic) + struct.pack(">i", -1)
            answer += text(member) + struct.pack(">hi", -1, len(subscription)) + subscription
        return answer

    def sync(self, request):
        for each in SyncGroupRequest.decode(request, version=3).assignments:
            given = ConsumerProtocolAssignment.decode(each.assignment).partitions()
            print("generation", self.joins, each.member_id, [(one.topic, one.partition) for one in given])


broker = Elects()
consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id="g", enable_auto_commit=False)
consumer.subscribe(["t"])
for _ in range(5):
    consumer.poll(timeout_ms=1000)
print("rebalances:", broker.joins)
