from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

member = StickyPartitionAssignor()
member.on_assignment(ConsumerProtocolAssignment(0, [("t", [1])], b""), generation=10)
joining = ConsumerProtocolSubscription.decode(member.metadata({"t"}).encode())
print(joining.user_data.hex())

by_kafka = bytes.fromhex("0000000100017400000001000000010000000a")
print(StickyPartitionAssignor.parse_member_metadata(ConsumerProtocolSubscription(0, ["t"], by_kafka)))
