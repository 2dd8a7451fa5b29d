"""The heartbeats and descriptions of streams groups as messages have them."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.protocols.streams_group import topology as topologies
from kipcheck.conformance.protocols.streams_group.ops import REBALANCE_MS, Beat, Endpoints, Tasks

FLAWED_CHANGELOG: Final = "changelog"
"""The changelog topic of flaw ``changelog``."""
NO_ENDPOINTS: Final = -1
"""The epoch of the endpoint information of a client that has none."""
Text: TypeAlias = str | None
ACTIVE: Final = wire("activeTasks[].subtopologyId", "activeTasks[].partitions[]", is_sorted=True)
STANDBY: Final = wire("standbyTasks[].subtopologyId", "standbyTasks[].partitions[]", is_sorted=True)
WARMUP: Final = wire("warmupTasks[].subtopologyId", "warmupTasks[].partitions[]", is_sorted=True)


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: Annotated[str, wire("name as internal_topic")]
    partitions: Annotated[int, wire("partitions")] = 0


@dataclass(frozen=True, slots=True)
class Subtopology:
    id: Annotated[str, wire("subtopologyId")]
    sources: Annotated[tuple[str, ...], wire("sourceTopics[] as topic")]
    regexes: Annotated[tuple[str, ...], wire("sourceTopicRegex[]")] = ()
    changelogs: Annotated[tuple[InternalTopic, ...], wire("stateChangelogTopics[]")] = ()
    sinks: Annotated[tuple[str, ...], wire("repartitionSinkTopics[] as internal_topic")] = ()
    repartitioned: Annotated[tuple[InternalTopic, ...], wire("repartitionSourceTopics[]")] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    epoch: Annotated[int, wire("epoch")]
    subtopologies: Annotated[tuple[Subtopology, ...], wire("subtopologies[]")]


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: Annotated[str, wire("host")]


@message("StreamsGroupHeartbeatRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Heartbeat:
    member: Annotated[str, wire("memberId")]
    epoch: Annotated[int, wire("memberEpoch")]
    process: Annotated[Text, wire("processId")] = None
    instance: Annotated[Text, wire("instanceId")] = None
    rack: Annotated[Text, wire("rackId")] = None
    rebalance_ms: Annotated[int, wire("rebalanceTimeoutMs as timeout")] = -1
    """-1: omitted."""
    topology: Annotated[Topology | None, wire("topology")] = None
    active: Annotated[Tasks | None, ACTIVE] = None
    standby: Annotated[Tasks | None, STANDBY] = None
    warmup: Annotated[Tasks | None, WARMUP] = None
    endpoint_epoch: Annotated[int, wire("endpointInformationEpoch")] = 0
    endpoint: Annotated[Endpoint | None, wire("userEndpoint")] = None


@message("StreamsGroupHeartbeatResponse")
@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    error: Annotated[int, wire("errorCode")] = 0
    message: Annotated[Text, wire("errorMessage")] = None
    member: Annotated[str, wire("memberId")] = ""
    epoch: Annotated[int, wire("memberEpoch")] = 0
    statuses: Annotated[tuple[int, ...] | None, wire("status[].statusCode", is_sorted=True)] = None
    active: Annotated[Tasks | None, ACTIVE] = None
    standby: Annotated[Tasks | None, STANDBY] = None
    warmup: Annotated[Tasks | None, WARMUP] = None
    endpoint_epoch: Annotated[int, wire("endpointInformationEpoch")] = 0
    endpoints: Annotated[
        Endpoints | None,
        wire(
            "partitionsByUserEndpoint[].userEndpoint.host",
            "partitionsByUserEndpoint[].activePartitions[].topic as internal_topic",
            "partitionsByUserEndpoint[].activePartitions[].partitions[]",
            is_sorted=True,
        ),
    ] = None
    interval_ms: Annotated[int, wire("heartbeatIntervalMs")] = 0


@message("StreamsGroupDescribeRequest", "groupIds[0] = group")
@dataclass(frozen=True, slots=True)
class Describe:
    pass


@dataclass(frozen=True, slots=True)
class Assignment:
    active: Annotated[Tasks, ACTIVE]
    standby: Annotated[Tasks, STANDBY]


@dataclass(frozen=True, slots=True)
class DescribedTopology:
    epoch: Annotated[int, wire("epoch")]
    subtopologies: Annotated[tuple[str, ...] | None, wire("subtopologies[].subtopologyId", is_sorted=True)]


@dataclass(frozen=True, slots=True)
class Member:
    id: Annotated[str, wire("memberId")]
    epoch: Annotated[int, wire("memberEpoch")]
    topology_epoch: Annotated[int, wire("topologyEpoch")]
    assigned: Annotated[Assignment, wire("assignment")]
    target: Annotated[Assignment, wire("targetAssignment")]


@message("StreamsGroupDescribeResponse", "groups[0].groupId = group")
@dataclass(frozen=True, slots=True)
class Description:
    error: Annotated[int, wire("groups[0].errorCode")]
    message: Annotated[Text, wire("groups[0].errorMessage")]
    state: Annotated[str, wire("groups[0].groupState")]
    epoch: Annotated[int, wire("groups[0].groupEpoch")]
    assignment_epoch: Annotated[int, wire("groups[0].assignmentEpoch")]
    topology: Annotated[DescribedTopology | None, wire("groups[0].topology")]
    members: Annotated[tuple[Member, ...], wire("groups[0].members[]")]


def heartbeat(
    beat: Beat, epoch: int, active: Tasks | None, standby: Tasks | None, endpoint_epoch: int = NO_ENDPOINTS
) -> Heartbeat:
    """The request of a client. ``epoch``, ``active``, ``standby``: what those of the conversation stand for.

    ``endpoint_epoch``: that of the endpoint information that the client has.
    """
    flaw = beat.flaw
    return Heartbeat(
        "" if flaw == "member" else beat.client, epoch, beat.client, "" if flaw == "instance" else beat.instance,
        "" if flaw == "rack" else None, -1 if flaw == "timeout" else REBALANCE_MS,
        None if beat.topology is None else Topology(beat.topology_epoch, tuple(_subtopologies(beat))),
        active, None if flaw == "standby" else standby, None if active is None else (), endpoint_epoch,
        None if beat.endpoint is None else Endpoint(beat.endpoint),
    )  # fmt: skip


def _subtopologies(beat: Beat) -> list[Subtopology]:
    names = beat.topology or ()
    has_repartition, found = topologies.repartitions(names), []
    repartition = topologies.REPARTITIONED
    for name in names:
        reads = name == repartition and has_repartition
        stores = (InternalTopic("u" if name == topologies.WRONG else topologies.CHANGELOG),)
        if beat.flaw == "changelog":
            stores = (InternalTopic(FLAWED_CHANGELOG, 1),)
        found.append(
            Subtopology(
                name,
                () if reads else (topologies.source(name),),
                ("x.*",) if beat.flaw == "regex" else (),
                stores if beat.flaw == "changelog" or name in topologies.STATEFUL else (),
                (repartition,) if has_repartition and not reads else (),
                (InternalTopic(repartition),) if reads else (),
            )
        )
    return found
