from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata


class Cluster(dict):
    def topics(self):
        return set(self)

    def partitions_for_topic(self, topic):
        return self.get(topic)


def member(topics, owned=None, generation=-1):
    user_data = StickyAssignorUserDataV1(list(owned.items()), generation).encode() if owned else b""
    return ConsumerProtocolMemberMetadata(0, topics, user_data)


def assign(sizes, **members):
    try:
        shares = StickyPartitionAssignor.assign(Cluster(sizes), members)
        print({name: share.assignment for name, share in shares.items()})
    except KeyError as error:
        print("KeyError", error)


assign(
    {"t0": {0}, "t1": {0}},
    a=member(["t0", "t1"]),
    b=member(["t0", "t1"], {"t1": [0], "t0": [0]}, 10),
    c=member(["t1"], {"t0": [0]}, 9),
)
assign({"t0": {0, 1}}, a=member(["t0"], {"t0": [0, 1]}, 10), b=member(["t0"]), c=member([], {"t0": [0]}, 9))
