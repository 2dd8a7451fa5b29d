from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription


class Cluster(dict):
    def topics(self):
        return set(self)

    def partitions_for_topic(self, topic):
        return self.get(topic)


def member(name, topics, owned=None, generation=-1):
    owned = [ConsumerProtocolSubscription.TopicPartition(topic=each, partitions=n) for each, n in (owned or {}).items()]
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=ConsumerProtocolSubscription(
            version=2,
            topics=topics,
            user_data=b"",
            owned_partitions=owned,
            generation_id=generation,
        ),
    )


def assign(sizes, *members):
    try:
        shares = CooperativeStickyAssignor().assign(Cluster(sizes), members)
        print({name: share.assigned_partitions for name, share in shares.items()})
    except KeyError as error:
        print("KeyError", error)


assign(
    {"t0": {0}, "t1": {0}},
    member("a", ["t0", "t1"]),
    member("b", ["t0", "t1"], {"t1": [0], "t0": [0]}, 10),
    member("c", ["t1"], {"t0": [0]}, 9),
)
assign({"t0": {0, 1}}, member("a", ["t0"], {"t0": [0, 1]}, 10), member("b", ["t0"]), member("c", [], {"t0": [0]}, 9))
