from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment


class Cluster:
    def topics(self):
        return {"t", "u"}

    def partitions_for_topic(self, topic):
        return {"t": {0, 1, 2}, "u": {0}}[topic]


def member(name, topics, owned=()):
    assignor = StickyPartitionAssignor()
    if owned:
        assignor.on_assignment(ConsumerProtocolAssignment(0, owned, b""), generation=10)
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=assignor.metadata(topics),
    )


members = [member("a", ["t", "u"], [("t", [0, 1, 2]), ("u", [0])]), member("b", ["t", "u"]), member("c", ["u"])]
shares = StickyPartitionAssignor().assign(Cluster(), members)
print({name: share.assigned_partitions for name, share in shares.items()})
