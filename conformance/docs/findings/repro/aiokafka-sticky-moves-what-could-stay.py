from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata


class Cluster:
    def topics(self):
        return {"t", "u"}

    def partitions_for_topic(self, topic):
        return {"t": {0, 1, 2}, "u": {0}}[topic]


def member(topics, *owned):
    user_data = StickyAssignorUserDataV1(list(owned), 10).encode() if owned else b""
    return ConsumerProtocolMemberMetadata(0, topics, user_data)


members = {"a": member(["t", "u"], ("t", [0, 1, 2]), ("u", [0])), "b": member(["t", "u"]), "c": member(["u"])}
shares = StickyPartitionAssignor.assign(Cluster(), members)
print({name: share.assignment for name, share in shares.items()})
