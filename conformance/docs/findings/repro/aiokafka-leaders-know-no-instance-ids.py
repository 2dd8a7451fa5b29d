from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata


class Cluster:
    def partitions_for_topic(self, topic):
        return {0, 1}


metadata = ConsumerProtocolMemberMetadata(0, ["t"], b"")
for of_instance_1, of_instance_2 in (("m1", "m2"), ("m3", "m2")):  # instance 1 was started again
    shares = RangePartitionAssignor.assign(Cluster(), {of_instance_1: metadata, of_instance_2: metadata})
    print("instance 1:", shares[of_instance_1].assignment, "instance 2:", shares[of_instance_2].assignment)
