"""The heartbeats of share groups as messages have them: with epochs and partitions in place of what stands for them."""

from dataclasses import dataclass
from typing import Annotated

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.protocols.consumer_group.heartbeat import HeartbeatAnswer as ConsumerAnswer
from kipcheck.conformance.protocols.share_group.ops import Beat


@message("ShareGroupHeartbeatRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class Heartbeat:
    member: Annotated[str, wire("memberId")]
    epoch: Annotated[int, wire("memberEpoch")]
    rack: Annotated[str | None, wire("rackId")] = None
    topics: Annotated[tuple[str, ...] | None, wire("subscribedTopicNames[] as topic")] = None


@message("ShareGroupHeartbeatResponse")
@dataclass(frozen=True, slots=True)
class HeartbeatAnswer(ConsumerAnswer):
    """It has the fields of the answer of a consumer group."""


def heartbeat(beat: Beat, epoch: int) -> Heartbeat:
    """The request of a client. ``epoch``: what that of the conversation stands for."""
    member, rack = "" if beat.flaw == "member" else beat.client, "" if beat.flaw == "rack" else None
    return Heartbeat(member, epoch, rack, beat.topics)
