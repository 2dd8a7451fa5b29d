"""The record that a coordinator wrote of a group in the internal topic: it names leader and generation, which no
response contains.

It is read from the end, as far back as ``FARTHEST``: a group that is stable for long has its record among many commits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.inspect.cluster import Address, Cluster, Unanswered
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.coordinator_records import GROUPS, decode_value
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import decode

TOPIC: Final = GROUPS
CHUNKS: Final = (2_000, 20_000, 200_000)
"""How many offsets before the end are read, until the record is found."""
FARTHEST: Final = CHUNKS[-1]
MOST_BYTES: Final = 4 << 20
"""Of a response."""
WAIT_MS: Final = 500
FETCH, LIST_OFFSETS = 11, 6
"""The newest versions with plain names of topics, and without tags."""
END, BEGIN = -1, -2
GROUP_KEY: Final = 2
"""The version of a key, which says that the record is one of a group of the classic protocol."""


@dataclass(frozen=True, slots=True)
class Found:
    generation: int
    leader: str | None
    subscriptions: Mapping[str, bytes]
    """Member id -> what it wrote for the chosen protocol."""


async def newest_record(cluster: Cluster, group: str) -> Found | str:
    """The record, or why there is none. Errors: ``Unanswered``."""
    place = await cluster.leader(TOPIC, group)
    if place is None:
        return f"the user may not read {TOPIC}, or it has no leader"
    number, at = place
    begin, end = await _offset(cluster, at, number, BEGIN), await _offset(cluster, at, number, END)
    upper = end
    for size in CHUNKS:
        lower = max(begin, end - size)
        if found := await _newest(cluster, at, number, group, lower, upper):
            return found
        if lower == begin:
            return f"{TOPIC} has no record of the group"
        upper = lower
    return f"the last {FARTHEST:,} records of {TOPIC} have none of the group"


async def _offset(cluster: Cluster, at: Address, number: int, which: int) -> int:
    part = {"partitionIndex": number, "timestamp": which}
    asked = {"replicaId": -1, "isolationLevel": 0, "topics": [{"name": TOPIC, "partitions": [part]}]}
    places = [f"topics[0].partitions[0].{name}" for name in ("errorCode", "offset")]
    error, offset = await cluster.values(at, "ListOffsets", asked, *places, highest=LIST_OFFSETS)
    if error:
        raise Unanswered(f"ListOffsets of {TOPIC} is answered with error {error}")
    return int(offset)


async def _newest(cluster: Cluster, at: Address, number: int, group: str, lower: int, upper: int) -> Found | None:
    """The last record of the group among these offsets."""
    key = layout(APACHE, "GroupMetadataKey", GROUP_KEY).encode({"group": group})
    newest, offset = None, lower
    while offset < upper:
        records, after = await _fetched(cluster, at, number, offset)
        if after <= offset:
            break
        for record in records:
            if record.key == key and lower <= record.offset < upper:
                newest = None if record.value is None else _read(record.value)
        offset = after
    return newest


async def _fetched(cluster: Cluster, at: Address, number: int, offset: int) -> tuple[list[Any], int]:
    """Records from an offset on, and the offset after them."""
    part = {"partition": number, "fetchOffset": offset, "partitionMaxBytes": MOST_BYTES}
    asked = {
        "replicaId": -1, "maxWaitMs": WAIT_MS, "minBytes": 1, "maxBytes": MOST_BYTES, "isolationLevel": 0,
        "topics": [{"topic": TOPIC, "partitions": [part]}], "forgottenTopicsData": [], "rackId": "",
    }  # fmt: skip
    places = "responses[].partitions[].errorCode", "responses[].partitions[].records"
    error, parts = await cluster.values(at, "Fetch", asked, "errorCode", places, highest=FETCH)
    if error := error or max((error for error, _ in parts), default=0):
        raise Unanswered(f"Fetch of {TOPIC} is answered with error {error}")
    data = b"".join(records or b"" for _, records in parts)
    try:
        batches = decode(data, partial=True)
    except NotImplementedError:
        raise Unanswered(f"{TOPIC} is compressed, which kipcheck does not read") from None
    except Refused as wrong:
        raise Unanswered(f"{TOPIC} cannot be read from offset {offset} on: {wrong}") from None
    after = batches[-1].last_offset + 1 if batches else offset
    return [record for batch in batches if not batch.control for record in batch.records], after


def _read(data: bytes) -> Found | None:
    """None for a version that kipcheck does not know."""
    try:
        _, value = decode_value("GroupMetadata", data)
    except Refused:
        return None
    if value is None:
        return None
    subscriptions = {member["memberId"]: bytes(member["subscription"]) for member in value["members"]}
    return Found(value["generation"], value["leader"], subscriptions)
