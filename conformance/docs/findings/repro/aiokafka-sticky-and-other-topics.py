from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata


class Cluster(dict):
    def topics(self):
        return set(self)

    def partitions_for_topic(self, topic):
        return self.get(topic)


def member(*owned):
    user_data = StickyAssignorUserDataV1(list(owned), 10).encode() if owned else b""
    return ConsumerProtocolMemberMetadata(0, ["t0", "t2"], user_data)


members = {"d": member(("t2", [0, 1, 2])), "f": member(("t0", [0, 1])), "g": member()}
for topics in ({"t0": {0, 1}, "t2": {0, 1, 2}}, {"t0": {0, 1}, "t2": {0, 1, 2}, "t4": {0}}):
    shares = StickyPartitionAssignor.assign(Cluster(topics), members)
    print(*topics, {name: share.assignment for name, share in shares.items()})
