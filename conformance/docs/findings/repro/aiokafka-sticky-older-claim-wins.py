from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata


class Cluster:
    def topics(self):
        return {"t0", "t1"}

    def partitions_for_topic(self, topic):
        return {"t0": {0, 1, 2, 3}, "t1": {0}}[topic]


def member(owned=(), generation=-1):
    user_data = StickyAssignorUserDataV1([("t0", owned)], generation).encode() if owned else b""
    return ConsumerProtocolMemberMetadata(0, ["t0", "t1"], user_data)


members = {"a": member([0], 9), "b": member([0, 1, 2, 3], 10), "c": member(), "d": member()}
shares = StickyPartitionAssignor.assign(Cluster(), members)
print({name: share.assignment for name, share in shares.items()})
