import signal

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1, StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

SIZES = {"t0": 6, "t1": 5, "t2": 1, "t3": 8}


class Cluster:
    def topics(self):
        return set(SIZES)

    def partitions_for_topic(self, topic):
        return set(range(SIZES[topic]))


def member(topics, *owned):
    user_data = StickyAssignorUserDataV1(list(owned), 1).encode() if owned else b""
    return ConsumerProtocolMemberMetadata(0, topics, user_data)


def give_up(*_):
    print("no assignment after 2 s of processor time")
    raise SystemExit(1)


members = {
    "c0": member(["t1"], ("t1", [0, 1, 2, 3])),
    "c1": member(["t0", "t1"], ("t0", [0, 2, 3, 5])),
    "c2": member(["t2", "t3"], ("t3", [0, 2, 3, 4, 5, 6, 7])),
    "c3": member(["t0", "t1"]),
    "c4": member(["t0", "t3"]),
}
signal.signal(signal.SIGVTALRM, give_up)
signal.setitimer(signal.ITIMER_VIRTUAL, 2)
print(StickyPartitionAssignor.assign(Cluster(), members))
