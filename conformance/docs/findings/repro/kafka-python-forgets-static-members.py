from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription


class Cluster:
    def partitions_for_topic(self, topic):
        return {0, 1, 2}


def member(name, instance):
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=instance,
        metadata=ConsumerProtocolSubscription(0, ["t"], b""),
    )


members = [member("a", "i1"), member("b", None), member("c", "i2")]
for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor):
    shares = assignor().assign(Cluster(), members)
    print(assignor.name, {name: [each.partition for each in share.partitions()] for name, share in shares.items()})
