"""The heartbeats of consumer groups as messages have them: with ids, epochs and partitions in place of what stands for
them in conversations.
"""

from dataclasses import dataclass
from typing import Annotated

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS, Beat
from kipcheck.conformance.protocols.reconciled.terms import Partitions


@message("ConsumerGroupHeartbeatRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Heartbeat:
    member: Annotated[str, wire("memberId")]
    epoch: Annotated[int, wire("memberEpoch")]
    instance: Annotated[str | None, wire("instanceId")] = None
    rack: Annotated[str | None, wire("rackId")] = None
    rebalance_ms: Annotated[int, wire("rebalanceTimeoutMs as timeout")] = -1
    """-1: omitted."""
    topics: Annotated[tuple[str, ...] | None, wire("subscribedTopicNames[] as topic")] = None
    regex: Annotated[str | None, wire("subscribedTopicRegex as regex")] = None
    assignor: Annotated[str | None, wire("serverAssignor")] = None
    owned: Annotated[
        Partitions | None,
        wire("topicPartitions[].topicId as topic_id", "topicPartitions[].partitions[]", is_sorted=True),
    ] = None


@message("ConsumerGroupHeartbeatResponse")
@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    error: Annotated[int, wire("errorCode")] = 0
    message: Annotated[str | None, wire("errorMessage")] = None
    member: Annotated[str | None, wire("memberId")] = None
    epoch: Annotated[int, wire("memberEpoch")] = 0
    interval_ms: Annotated[int, wire("heartbeatIntervalMs")] = 0
    assignment: Annotated[
        Partitions | None,
        wire("assignment.topicPartitions[].topicId as topic_id", "assignment.topicPartitions[].partitions[]",
             is_sorted=True),
    ] = None  # fmt: skip


def heartbeat(beat: Beat, epoch: int, owned: Partitions | None) -> Heartbeat:
    """The request of a client. ``epoch``, ``owned``: what those of the conversation stand for."""
    lacks = beat.lacks
    return Heartbeat(
        "" if lacks == "member" else beat.client, epoch, "" if lacks == "instance" else beat.instance,
        "" if lacks == "rack" else None, -1 if lacks == "timeout" else REBALANCE_MS, beat.topics, beat.regex,
        beat.assignor, owned,
    )  # fmt: skip
