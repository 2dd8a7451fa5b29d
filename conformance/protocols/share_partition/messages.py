"""The requests of share consumers and their answers as messages have them, for the only partition of one topic."""

from dataclasses import dataclass
from typing import Annotated, Final

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import message
from kipcheck.conformance.protocols.share_partition.ops import Acknowledge, Fetch

TYPES: Final = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4, "unknown": 9}
WAIT_MS: Final = 400
"""How long a fetch may wait for records, in real time: longer than the broker takes to release any."""
LOADS_MS: Final = 2_000
"""The same of the first fetch: longer than it takes to load the partition."""


@dataclass(frozen=True, slots=True)
class Batch:
    first: Annotated[int, wire("firstOffset")]
    last: Annotated[int, wire("lastOffset")]
    types: Annotated[tuple[int, ...], wire("acknowledgeTypes[]")]


@dataclass(frozen=True, slots=True)
class Partition:
    index: Annotated[int, wire("partitionIndex")] = 0
    batches: Annotated[tuple[Batch, ...], wire("acknowledgementBatches[]")] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    id: Annotated[str, wire("topicId as topic_id")] = "t"
    partitions: Annotated[tuple[Partition, ...], wire("partitions[]")] = (Partition(),)


@message("ShareFetchRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class ShareFetch:
    member: Annotated[str, wire("memberId as member")]
    epoch: Annotated[int, wire("shareSessionEpoch")]
    topics: Annotated[tuple[Topic, ...], wire("topics[]")]
    max_records: Annotated[int, wire("maxRecords")]
    mode: Annotated[int, wire("shareAcquireMode")] = 0
    renews: Annotated[bool, wire("isRenewAck")] = False
    wait_ms: Annotated[int, wire("maxWaitMs")] = WAIT_MS
    min_bytes: Annotated[int, wire("minBytes")] = 1
    max_bytes: Annotated[int, wire("maxBytes")] = 1 << 20
    batch_size: Annotated[int, wire("batchSize")] = 500


@message("ShareFetchResponse")
@dataclass(frozen=True, slots=True)
class ShareFetched:
    error: Annotated[int, wire("errorCode")] = 0
    message: Annotated[str | None, wire("errorMessage")] = None
    errors: Annotated[
        tuple[tuple[int, int], ...],
        wire("responses[].partitions[].errorCode", "responses[].partitions[].acknowledgeErrorCode"),
    ] = ()
    acquired: Annotated[
        tuple[tuple[int, int, int], ...],
        wire("responses[].partitions[].acquiredRecords[].firstOffset",
             "responses[].partitions[].acquiredRecords[].lastOffset",
             "responses[].partitions[].acquiredRecords[].deliveryCount"),
    ] = ()  # fmt: skip


@message("ShareAcknowledgeRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class ShareAcknowledge:
    member: Annotated[str, wire("memberId as member")]
    epoch: Annotated[int, wire("shareSessionEpoch")]
    topics: Annotated[tuple[Topic, ...], wire("topics[]")]
    renews: Annotated[bool, wire("isRenewAck")] = False


@message("ShareAcknowledgeResponse")
@dataclass(frozen=True, slots=True)
class ShareAcknowledged:
    error: Annotated[int, wire("errorCode")] = 0
    message: Annotated[str | None, wire("errorMessage")] = None
    errors: Annotated[tuple[int, ...], wire("responses[].partitions[].errorCode")] = ()


def request(event: Fetch | Acknowledge, epoch: int, wait_ms: int = WAIT_MS) -> ShareFetch | ShareAcknowledge:
    """The request of a client. ``epoch``: what that of the conversation stands for."""
    kind, renews = TYPES.get(event.kind), event.kind == "renew"
    batches = () if kind is None else (Batch(event.first, event.last, (kind,)),)
    topics = (Topic(partitions=(Partition(batches=batches),)),) if batches or epoch == 0 else ()
    if isinstance(event, Acknowledge):
        return ShareAcknowledge(event.client, epoch, topics, renews)
    if renews:
        return ShareFetch(event.client, epoch, topics, 0, renews=True, wait_ms=0, min_bytes=0, max_bytes=0)
    return ShareFetch(event.client, epoch, topics, event.most, int(event.strict), wait_ms=wait_ms)
