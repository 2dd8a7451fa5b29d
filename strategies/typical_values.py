from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.release import NEWEST

"""Typical values of well-known fields, so that draws resemble real traffic: recurring names, sentinels, encoded data.

They are only more likely: a field may have any value that its type allows.
"""

from collections.abc import Mapping

TOPICS = ("t0", "t1", "t2", "t3")
MEMBERS = ("", "a", "b", "c", "consumer-1-5b0d7a52-9e0c-4d5b-8d5e-0c9f2f1f8a11")
GROUPS = ("g", "orders", "__consumer_offsets")
PROTOCOLS = ("range", "roundrobin", "sticky", "cooperative-sticky", "stream")

TEXTS: Mapping[str, tuple[str, ...]] = {
    "topic": TOPICS,
    "topics": TOPICS,
    "subscribedTopicNames": TOPICS,
    "topicName": TOPICS,
    "memberId": MEMBERS,
    "leader": MEMBERS,
    "groupId": GROUPS,
    "group": GROUPS,
    "groups": GROUPS,
    "groupIds": GROUPS,
    "key": GROUPS,
    "coordinatorKeys": GROUPS,
    "groupInstanceId": ("i0", "i1", ""),
    "instanceId": ("i0", "i1", ""),
    "protocolType": ("consumer", "connect", ""),
    "protocolName": PROTOCOLS,
    "protocol": PROTOCOLS,
    "protocols.name": PROTOCOLS,
    "topics.name": TOPICS,
    "serverAssignor": ("uniform", "range"),
    "assignorName": ("uniform", "range"),
    "groupState": ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead"),
    "rackId": ("r0", "r1", ""),
    "rack": ("r0", "r1", ""),
    "host": ("h0", "h1", "localhost"),
    "clientSoftwareName": ("apache-kafka-java", "kipcheck"),
    "clientSoftwareVersion": (NEWEST, named("last-before-4")),
    "feature": ("metadata.version", "group.version", "share.version"),
    "supportedFeatures.name": ("metadata.version", "group.version", "kraft.version"),
    "finalizedFeatures.name": ("metadata.version", "group.version", "kraft.version"),
    "namedTopology": ("", "topology-a"),
    "subtopologyId": ("0", "1"),
}
"""By path, or by name: texts that are drawn half of the time."""

_ERRORS = (0, -1, 3, 14, 15, 16, 22, 23, 24, 25, 26, 27, 35, 79, 81, 82, 100, 110, 111)
_PARTITIONS = (0, 1, 2, 3)
_GENERATIONS = (-1, 0, 1, 2)

NUMBERS: Mapping[str, tuple[int, ...]] = {
    "errorCode": _ERRORS,
    "apiKey": (0, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 57, 68, 69, 76, 88, 89),
    "apiKeys.minVersion": (0, 1, 2),
    "apiKeys.maxVersion": (0, 4, 5, 9, 11),
    "partition": _PARTITIONS,
    "partitions": _PARTITIONS,
    "partitionIndex": _PARTITIONS,
    "partitionIndexes": _PARTITIONS,
    "topicGroupId": _PARTITIONS,
    "generation": _GENERATIONS,
    "generationId": _GENERATIONS,
    "generationIdOrMemberEpoch": _GENERATIONS,
    "memberEpoch": (-2, -1, 0, 1),
    "committedOffset": (-1, 0, 1, 500),
    "committedLeaderEpoch": (-1, 0, 1),
    "offsetSum": (-2, -3, 0, 1, 500),
    "latestSupportedVersion": (-1, 1, 2, 3, 11, 12, 13),
    "commonlySupportedVersion": (-1, 1, 2, 3, 11, 12, 13),
    "errCode": (0, 1, 2, 3, 4, 5),
    "uniqueField": (0, 1, 127, -128),
    "port": (9092, 0, 65535),
}
"""By path, or by name: numbers tried in addition to the bounds of the type; numbers out of its range are skipped."""

ERRORS: Mapping[str, tuple[int, ...]] = {
    "ApiVersionsResponse": (42, 35),
    "BrokerRegistrationResponse": (101, 102, 35),
    "ConsumerGroupDescribeResponse": (69, 14, 15, 16, 24, 30, 42),
    "ConsumerGroupHeartbeatResponse": (25, 14, 15, 16, 30, 42, 81, 82, 110, 111, 112),
    "DescribeGroupsResponse": (69, 14, 15, 16, 24, 30),
    "FindCoordinatorResponse": (15, 14, 16, 24, 30, 42, 53),
    "HeartbeatResponse": (27, 14, 15, 16, 22, 25, 30, 82),
    "JoinGroupResponse": (79, 14, 15, 16, 22, 23, 24, 25, 26, 27, 30, 81, 82),
    "LeaveGroupResponse": (25, 14, 15, 16, 24, 30, 82),
    "ListGroupsResponse": (15, 14, 16, 30),
    "MetadataResponse": (3, 5, 9, 17, 29, 35, 100),
    "OffsetCommitResponse": (22, 3, 12, 14, 15, 16, 24, 25, 27, 28, 29, 30, 82, 100, 111, 113),
    "OffsetFetchResponse": (16, 3, 14, 24, 25, 29, 30, 88, 100, 111, 113),
    "ShareGroupHeartbeatResponse": (25, 14, 15, 16, 30, 42, 81, 110),
    "StreamsGroupDescribeResponse": (69, 14, 15, 16, 24, 30, 42),
    "StreamsGroupHeartbeatResponse": (25, 14, 15, 16, 30, 42, 81, 110),
    "SyncGroupResponse": (27, 14, 15, 16, 22, 23, 25, 30, 82),
    "UpdateFeaturesResponse": (95, 31, 35, 41, 42, 96),
}
"""By message: the error codes that brokers send in it, the plainest first (Javadoc of the classes of responses, KIP-511
for ApiVersions). They are drawn half of the time, and preferred to other numbers when a failure is reduced.
"""

SUBSCRIPTIONS = ("ConsumerProtocolSubscription",)
ASSIGNMENTS = ("ConsumerProtocolAssignment",)

EMBEDDED: Mapping[str, tuple[str, ...]] = {
    "JoinGroupRequest.protocols.metadata": SUBSCRIPTIONS,
    "JoinGroupResponse.members.metadata": SUBSCRIPTIONS,
    "DescribeGroupsResponse.groups.members.memberMetadata": SUBSCRIPTIONS,
    "DescribeGroupsResponse.groups.members.memberAssignment": ASSIGNMENTS,
    "SyncGroupRequest.assignments.assignment": ASSIGNMENTS,
    "SyncGroupResponse.assignment": ASSIGNMENTS,
    "GroupMetadataValue.members.subscription": SUBSCRIPTIONS,
    "GroupMetadataValue.members.assignment": ASSIGNMENTS,
    "ConsumerProtocolSubscription.userData": (
        "StickyAssignorUserData",
        "CooperativeStickyAssignorUserData",
        "SubscriptionInfo",
    ),
    "ConsumerProtocolAssignment.userData": ("AssignmentInfo",),
}
"""By message and path: messages, at any version, whose bytes the field may contain."""
