"""A group as its coordinator describes it, with everything that its members wrote decoded."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.inspect.streams_group import StreamsGroup
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, NO_GENERATION, STICKY, Partition
from kipcheck.conformance.protocols.assignment.ops import read_user_data
from kipcheck.conformance.protocols.streams import blobs
from kipcheck.conformance.protocols.streams.model.members import STREAM, AssignmentInfo, Fatal, SubscriptionInfo
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.embedded import (
    ASSIGNMENT,
    CONSUMER,
    SUBSCRIPTION,
    Assignment,
    Place,
    Subscription,
    read_assignment,
    read_subscription,
)
from kipcheck.conformance.wire.errors import Refused

STABLE: Final = "Stable"
EMPTY_STATES: Final = frozenset({"Empty", "Dead"})
"""Of groups without members."""
Partitions: TypeAlias = tuple[Partition, ...]
Read = TypeVar("Read", Subscription, Assignment)
Info = TypeVar("Info", SubscriptionInfo, AssignmentInfo)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are not what they have to be; ``why`` has the offset."""

    data: bytes
    why: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a classic group."""

    id: str
    instance: str | None
    client_id: str
    host: str
    metadata: bytes = b""
    """What it wrote in its JoinGroup. Empty: the coordinator does not describe it, because the group rebalances or is
    not one of consumers."""
    share: bytes = b""
    """What the leader wrote for it in its SyncGroup; empty: nothing."""

    @property
    def subscription(self) -> Subscription | Unreadable | None:
        return read_record(read_subscription, self.metadata) if self.metadata else None

    @property
    def assignment(self) -> Assignment | Unreadable | None:
        return read_record(read_assignment, self.share) if self.share else None


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a group of KIP-848, and a member of the classic protocol in it."""

    id: str
    instance: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topics: tuple[str, ...]
    regex: str | None
    assigned: Partitions
    target: Partitions
    is_classic: bool | None
    """None: a broker before 4.1 does not report it."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the classic protocol."""

    id: str
    coordinator: tuple[str, int]
    state: str
    protocol_type: str
    protocol: str
    members: tuple[Member, ...]
    generation: int | None = None
    leader: str | None = None
    """Member id. None: not known, ``leader_unknown`` says why."""
    leader_unknown: str = ""
    has_consumer_groups: bool = False
    """Whether its coordinator serves groups of KIP-848."""


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group of KIP-848."""

    id: str
    coordinator: tuple[str, int]
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ConsumerMember, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group."""

    id: str
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topics: tuple[str, ...]
    assigned: Partitions
    """Several members may have a partition."""


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group (KIP-932)."""

    id: str
    coordinator: tuple[str, int]
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMember, ...]


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """A group that is not inspected: of another type, or not readable."""

    id: str
    why: str


Inspectable: TypeAlias = Group | ConsumerGroup | StreamsGroup | ShareGroup
Described: TypeAlias = Inspectable | OtherGroup


def read_member(found: Mapping[str, Any], protocol_type: str) -> Member:
    """A row of DescribeGroups."""
    metadata, share = bytes(found["memberMetadata"]), bytes(found["memberAssignment"])
    if protocol_type != CONSUMER:
        metadata = share = b""
    return Member(
        found["memberId"],
        found.get("groupInstanceId"),
        found["clientId"],
        found["clientHost"].removeprefix("/"),
        # Brokers of 2.3 tell the assignment in place of the subscription (KAFKA-9150).
        metadata if metadata != share else b"",
        share,
    )


def read_consumer_group(group: str, at: tuple[str, int], found: Mapping[str, Any]) -> ConsumerGroup:
    """A row of ConsumerGroupDescribe."""
    return ConsumerGroup(
        group, at, found["groupState"], found["groupEpoch"], found["assignmentEpoch"], found["assignorName"],
        tuple(map(read_consumer_member, found["members"])),
    )  # fmt: skip


def read_share_group(group: str, at: tuple[str, int], found: Mapping[str, Any]) -> ShareGroup:
    """A row of ShareGroupDescribe."""
    members = [
        ShareMember(
            each["memberId"], each["clientId"], each["clientHost"].removeprefix("/"), each["rackId"],
            each["memberEpoch"], tuple(each["subscribedTopicNames"]),
            _by_topic(each["assignment"]["topicPartitions"], "topicName"),
        )
        for each in found["members"]
    ]  # fmt: skip
    return ShareGroup(
        group, at, found["groupState"], found["groupEpoch"], found["assignmentEpoch"], found["assignorName"],
        tuple(members),
    )  # fmt: skip


def read_consumer_member(found: Mapping[str, Any]) -> ConsumerMember:
    """A member in ConsumerGroupDescribe."""
    kind = found.get("memberType", -1)
    return ConsumerMember(
        found["memberId"],
        found["instanceId"],
        found["clientId"],
        found["clientHost"].removeprefix("/"),
        found["rackId"],
        found["memberEpoch"],
        tuple(found["subscribedTopicNames"]),
        found["subscribedTopicRegex"] or None,
        _by_topic(found["assignment"]["topicPartitions"], "topicName"),
        _by_topic(found["targetAssignment"]["topicPartitions"], "topicName"),
        None if kind < 0 else kind == 0,
    )


@lru_cache(maxsize=4096)
def read_record(read: Callable[[bytes], Read], data: bytes) -> Read | Unreadable:
    """A subscription or an assignment."""
    try:
        return read(data)
    except Refused as wrong:
        return Unreadable(data, str(wrong))


def _by_topic(found: Any, name: str) -> Partitions:
    return tuple(sorted((each[name], number) for each in found for number in each["partitions"]))


def embedded(group: Group) -> Iterator[Place]:
    """What members and the leader wrote, in a group of consumers."""
    for each in group.members:
        if each.metadata:
            yield Place("subscription", SUBSCRIPTION, each.metadata, group.protocol, each.id)
        if each.share:
            yield Place("assignment", ASSIGNMENT, each.share, group.protocol, each.id)


# User data


def streams_subscription(group: Group, member: Member) -> SubscriptionInfo | Unreadable | None:
    """The user data of a member of Kafka Streams; None where it is none."""
    return _streams_info(group, member.subscription, blobs.read_subscription, "SubscriptionInfo")


def streams_assignment(group: Group, member: Member) -> AssignmentInfo | Unreadable | None:
    """The user data that the leader of Kafka Streams wrote for a member; None where it is none."""
    return _streams_info(group, member.assignment, blobs.read_assignment, "AssignmentInfo")


def _streams_info(
    group: Group, found: Subscription | Assignment | Unreadable | None, read: Callable[[bytes], Info], name: str
) -> Info | Unreadable | None:
    if group.protocol != STREAM or found is None or isinstance(found, Unreadable):
        return None
    try:
        return read(found.user_data)
    except Fatal as wrong:
        return Unreadable(found.user_data, f"{name}: {wrong.why}")


def claims(group: Group, subscription: Subscription) -> tuple[Partitions, int]:
    """The partitions that a member says it owns, and since which generation, where its assignor reads them."""
    if group.protocol == STICKY:
        return read_user_data(subscription.user_data) or ((), NO_GENERATION)
    if group.protocol == COOPERATIVE and subscription.generation == NO_GENERATION:
        return subscription.owned, _cooperative_generation(subscription.user_data)
    return subscription.owned, subscription.generation


def _cooperative_generation(data: bytes) -> int:
    """Of ``CooperativeStickyAssignor``, whose user data is the generation."""
    try:
        found: int = layout(APACHE, "CooperativeStickyAssignorUserData", 0).decode(data)["generation"]
    except Refused:
        return NO_GENERATION
    return found
