"""A group as its coordinator describes it, with everything that its members wrote decoded."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.operations.field_annotations import Wire, wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, NO_GENERATION, STICKY, Partition
from kipcheck.conformance.protocols.assignment.ops import read_user_data
from kipcheck.conformance.protocols.streams import blobs
from kipcheck.conformance.protocols.streams.model.members import STREAM, AssignmentInfo, Fatal, SubscriptionInfo
from kipcheck.conformance.wire import embedded as wire_embedded, layout
from kipcheck.conformance.wire.errors import Refused

STABLE: Final = "Stable"
EMPTY_STATES: Final = frozenset({"Empty", "Dead"})
"""Of groups without members."""
Partitions: TypeAlias = tuple[Partition, ...]
Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""
Tasks: TypeAlias = tuple[Task, ...]
Offsets: TypeAlias = tuple[tuple[str, int, int], ...]
"""Subtopology, partition and offset."""
Names: TypeAlias = tuple[str, ...]
Read = TypeVar("Read", wire_embedded.Subscription, wire_embedded.Assignment)
Info = TypeVar("Info", SubscriptionInfo, AssignmentInfo)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are not what they have to be; ``why`` has the offset."""

    data: bytes
    why: str


Id: TypeAlias = Annotated[str, wire("memberId")]
Instance: TypeAlias = Annotated[str | None, wire("instanceId")]
ClientId: TypeAlias = Annotated[str, wire("clientId")]
Host: TypeAlias = Annotated[str, wire("clientHost as host")]
Rack: TypeAlias = Annotated[str | None, wire("rackId")]
Epoch: TypeAlias = Annotated[int, wire("memberEpoch")]
Topics: TypeAlias = Annotated[tuple[str, ...], wire("subscribedTopicNames[]")]
Coordinator: TypeAlias = tuple[str, int]


def assigned(struct: str) -> Wire:
    return wire(f"{struct}.topicPartitions[].topicName", f"{struct}.topicPartitions[].partitions[]", is_sorted=True)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a classic group."""

    id: Id
    instance: Annotated[str | None, wire("groupInstanceId")]
    client_id: ClientId
    host: Host
    metadata: Annotated[bytes, wire("memberMetadata")] = b""
    """What it wrote in its JoinGroup. Empty: the coordinator does not describe it, because the group rebalances or is
    not one of consumers."""
    share: Annotated[bytes, wire("memberAssignment")] = b""
    """What the leader wrote for it in its SyncGroup; empty: nothing."""

    @property
    def subscription(self) -> wire_embedded.Subscription | Unreadable | None:
        return read_record(wire_embedded.read_subscription, self.metadata) if self.metadata else None

    @property
    def assignment(self) -> wire_embedded.Assignment | Unreadable | None:
        return read_record(wire_embedded.read_assignment, self.share) if self.share else None


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member of a group of KIP-848, and a member of the classic protocol in it."""

    id: Id
    instance: Instance
    client_id: ClientId
    host: Host
    rack: Rack
    epoch: Epoch
    topics: Topics
    regex: Annotated[str | None, wire("subscribedTopicRegex", blank_is_null=True)]
    assigned: Annotated[Partitions, assigned("assignment")]
    target: Annotated[Partitions, assigned("targetAssignment")]
    is_classic: Annotated[bool | None, wire("memberType as classic")]
    """None: a broker before 4.1 does not report it."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group."""

    id: Id
    client_id: ClientId
    host: Host
    rack: Rack
    epoch: Epoch
    topics: Topics
    assigned: Annotated[Partitions, assigned("assignment")]
    """Several members may have a partition."""


def _tasks(field: str) -> Wire:
    return wire(f"{field}[].subtopologyId", f"{field}[].partitions[]", is_sorted=True)


def _offsets(field: str) -> Wire:
    return wire(f"{field}[].subtopologyId", f"{field}[].partition", f"{field}[].offset", is_sorted=True)


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a member."""

    active: Annotated[Tasks, _tasks("activeTasks")]
    standby: Annotated[Tasks, _tasks("standbyTasks")]
    warm_up: Annotated[Tasks, _tasks("warmupTasks")]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group."""

    id: Id
    instance: Instance
    client_id: ClientId
    host: Host
    rack: Rack
    epoch: Epoch
    topology_epoch: Annotated[int, wire("topologyEpoch")]
    process: Annotated[str, wire("processId")]
    end_point: Annotated[str | None, wire("userEndpoint as end_point")]
    """Of the application, not of a broker."""
    tags: Annotated[tuple[tuple[str, str], ...], wire("clientTags[].key", "clientTags[].value")]
    offsets: Annotated[Offsets, _offsets("taskOffsets")]
    end_offsets: Annotated[Offsets, _offsets("taskEndOffsets")]
    """As the member reported both, for the state of its tasks; brokers up to 4.4 keep none."""
    assigned: Annotated[TaskSet, wire("assignment")]
    target: Annotated[TaskSet, wire("targetAssignment")]
    is_classic: Annotated[bool, wire("isClassic")]


@dataclass(frozen=True, slots=True)
class Subtopology:
    id: Annotated[str, wire("subtopologyId")]
    source_topics: Annotated[Names, wire("sourceTopics[]")]
    sinks: Annotated[Names, wire("repartitionSinkTopics[]", is_sorted=True)]
    """The internal topics that it writes for other subtopologies."""
    changelogs: Annotated[Names, wire("stateChangelogTopics[].name", is_sorted=True)]
    repartition_sources: Annotated[Names, wire("repartitionSourceTopics[].name")] = ()

    @property
    def sources(self) -> Names:
        """The topics that it reads, internal ones too."""
        return tuple(sorted((*self.source_topics, *self.repartition_sources)))


State: TypeAlias = Annotated[str, wire("groups[0].groupState")]
GroupId: TypeAlias = Annotated[str, wire("groups[0].groupId")]
MEMBERS: Final = wire("groups[0].members[]")
ASSIGNOR: Final = wire("groups[0].assignorName")
Code: TypeAlias = Annotated[int, wire("groups[0].errorCode")]
"""The error of an answer."""


@message("DescribeGroupsResponse")
@dataclass(frozen=True, slots=True)
class Group:
    """A group of the classic protocol."""

    id: GroupId
    coordinator: Coordinator
    state: State
    protocol_type: Annotated[str, wire("groups[0].protocolType")]
    protocol: Annotated[str, wire("groups[0].protocolData")]
    members: Annotated[tuple[Member, ...], MEMBERS]
    generation: int | None = None
    leader: str | None = None
    """Member id. None: not known, ``leader_unknown`` says why."""
    leader_unknown: str = ""
    has_consumer_groups: bool = False
    """Whether its coordinator serves groups of KIP-848."""
    error: Code = 0

    @property
    def as_written(self) -> "Group":
        """Without bytes that are no subscriptions and assignments: of another type, and where brokers of 2.3 describe
        the assignment in place of the subscription (KAFKA-9150)."""
        if self.protocol_type != wire_embedded.CONSUMER:
            return replace(self, members=tuple(replace(member, metadata=b"", share=b"") for member in self.members))
        return replace(self, members=tuple(
            replace(member, metadata=b"") if member.metadata == member.share else member for member in self.members
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class EpochGroup:
    """A group whose members send heartbeats only: it has epochs in place of generations."""

    id: GroupId
    coordinator: Coordinator
    state: State
    epoch: Annotated[int, wire("groups[0].groupEpoch")]
    assignment_epoch: Annotated[int, wire("groups[0].assignmentEpoch")]


@message("ConsumerGroupDescribeResponse")
@dataclass(frozen=True, slots=True)
class ConsumerGroup(EpochGroup):
    """A group of KIP-848."""

    assignor: Annotated[str, ASSIGNOR]
    members: Annotated[tuple[ConsumerMember, ...], MEMBERS] = ()
    error: Code = 0


@message("ShareGroupDescribeResponse")
@dataclass(frozen=True, slots=True)
class ShareGroup(EpochGroup):
    """A share group (KIP-932)."""

    assignor: Annotated[str, ASSIGNOR]
    members: Annotated[tuple[ShareMember, ...], MEMBERS]
    error: Code = 0


@message("StreamsGroupDescribeResponse")
@dataclass(frozen=True, slots=True)
class StreamsGroup(EpochGroup):
    """A streams group (KIP-1071)."""

    topology_epoch: Annotated[int | None, wire("groups[0].topology.epoch")]
    """None: it has no topology."""
    subtopologies: Annotated[tuple[Subtopology, ...], wire("groups[0].topology.subtopologies[]")]
    assignor: Annotated[str | None, ASSIGNOR]
    """None: a broker before 4.4 does not report it."""
    members: Annotated[tuple[StreamsMember, ...], MEMBERS]
    error: Code = 0

    @property
    def topics(self) -> frozenset[str]:
        """Those that its tasks read."""
        return frozenset(topic for subtopology in self.subtopologies for topic in subtopology.sources)


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """A group that is not inspected: of another type, or not readable."""

    id: str
    why: str


Inspectable: TypeAlias = Group | ConsumerGroup | StreamsGroup | ShareGroup
Described: TypeAlias = Inspectable | OtherGroup


@lru_cache(maxsize=4096)
def read_record(read: Callable[[bytes], Read], data: bytes) -> Read | Unreadable:
    """A subscription or an assignment."""
    try:
        return read(data)
    except Refused as wrong:
        return Unreadable(data, str(wrong))


def embedded(group: Group) -> Iterator[wire_embedded.Place]:
    """What members and the leader wrote, in a group of consumers."""
    for member in group.members:
        if member.metadata:
            yield wire_embedded.Place(
                "subscription", wire_embedded.SUBSCRIPTION, member.metadata, group.protocol, member.id
            )
        if member.share:
            yield wire_embedded.Place("assignment", wire_embedded.ASSIGNMENT, member.share, group.protocol, member.id)


# User data


def streams_subscription(group: Group, member: Member) -> SubscriptionInfo | Unreadable | None:
    """The user data of a member of Kafka Streams; None where it is none."""
    return _streams_info(group, member.subscription, blobs.read_subscription, "SubscriptionInfo")


def streams_assignment(group: Group, member: Member) -> AssignmentInfo | Unreadable | None:
    """The user data that the leader of Kafka Streams wrote for a member; None where it is none."""
    return _streams_info(group, member.assignment, blobs.read_assignment, "AssignmentInfo")


def _streams_info(
    group: Group,
    found: wire_embedded.Subscription | wire_embedded.Assignment | Unreadable | None,
    read: Callable[[bytes], Info],
    name: str,
) -> Info | Unreadable | None:
    if group.protocol != STREAM or found is None or isinstance(found, Unreadable):
        return None
    try:
        return read(found.user_data)
    except Fatal as wrong:
        return Unreadable(found.user_data, f"{name}: {wrong.why}")


def claims(group: Group, subscription: wire_embedded.Subscription) -> tuple[Partitions, int]:
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


def task_names(tasks: Iterable[Task]) -> str:
    """``0_0 0_1``; ``none``"""
    return " ".join(map(task_name, tasks)) or "none"


def task_name(task: Task) -> str:
    """As Kafka Streams names it."""
    return f"{task[0]}_{task[1]}"
