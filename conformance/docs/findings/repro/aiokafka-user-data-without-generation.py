from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

by_kafka_2_2 = bytes.fromhex("000000010001740000000100000001")
print(StickyPartitionAssignor.parse_member_metadata(ConsumerProtocolMemberMetadata(0, ["t"], by_kafka_2_2)))
