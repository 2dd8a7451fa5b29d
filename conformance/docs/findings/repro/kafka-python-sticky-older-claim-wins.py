from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment


class Cluster:
    def topics(self):
        return {"t0", "t1"}

    def partitions_for_topic(self, topic):
        return {"t0": {0, 1, 2, 3}, "t1": {0}}[topic]


def member(name, owned=(), generation=-1):
    assignor = StickyPartitionAssignor()
    if owned:
        assignor.on_assignment(ConsumerProtocolAssignment(0, [("t0", owned)], b""), generation)
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=assignor.metadata(["t0", "t1"]),
    )


members = [member("a", [0], 9), member("b", [0, 1, 2, 3], 10), member("c"), member("d")]
shares = StickyPartitionAssignor().assign(Cluster(), members)
print({name: share.assigned_partitions for name, share in shares.items()})
