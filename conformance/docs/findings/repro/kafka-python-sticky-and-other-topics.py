from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment


class Cluster(dict):
    def topics(self):
        return set(self)

    def partitions_for_topic(self, topic):
        return self.get(topic)


def member(name, owned):
    assignor = StickyPartitionAssignor()
    assignor.on_assignment(ConsumerProtocolAssignment(0, owned, b""), generation=10)
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=assignor.metadata(["t0", "t2"]),
    )


members = [member("d", [("t2", [0, 1, 2])]), member("f", [("t0", [0, 1])]), member("g", [])]
for topics in ({"t0": {0, 1}, "t2": {0, 1, 2}}, {"t0": {0, 1}, "t2": {0, 1, 2}, "t4": {0}}):
    shares = StickyPartitionAssignor().assign(Cluster(topics), members)
    print(*topics, {name: share.assigned_partitions for name, share in shares.items()})
