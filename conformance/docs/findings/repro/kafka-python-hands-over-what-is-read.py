from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription


class Cluster:
    def topics(self):
        return {"t"}

    def partitions_for_topic(self, topic):
        return {0, 1}


def member(name, owned, generation):
    owned = [ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=owned)]
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=name,
        group_instance_id=None,
        metadata=ConsumerProtocolSubscription(
            version=2,
            topics=["t"],
            user_data=b"",
            owned_partitions=owned,
            generation_id=generation,
        ),
    )


shares = CooperativeStickyAssignor().assign(Cluster(), [member("new", [0, 1], 10), member("old", [0], 9)])
print({name: [each.partition for each in share.partitions()] for name, share in shares.items()})
