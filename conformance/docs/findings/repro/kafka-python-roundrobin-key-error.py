from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription


class Cluster:
    def partitions_for_topic(self, topic):
        return {0}


def member(name, *topics):
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=ConsumerProtocolSubscription(0, list(topics), b""),
    )


try:
    print(RoundRobinPartitionAssignor().assign(Cluster(), [member("a", "t1"), member("b", "t0")]))
except KeyError as error:
    print("KeyError", error)
