"""Reading of topics: ListOffsets and Fetch."""

import asyncio
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, RECORD_MS, Log, Topic, Topics
from kipcheck.conformance.wire import message_sets
from kipcheck.conformance.wire.record_batches import decode

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC_IDS_SINCE: Final = 13
LEADER_EPOCH_SINCE: Final = 4
"""ListOffsets."""
TIMESTAMPS_SINCE: Final = 1
"""ListOffsets with one offset of a partition; before, several."""
MAGIC_1_SINCE, MAGIC_2_SINCE = 2, 4
"""Fetch."""
WHOLE_BATCH_SINCE: Final = 3
"""Fetch with at least one batch, whatever its size (KIP-74)."""
LONGEST_WAIT_S: Final = 60.0
LARGEST_ANSWER: Final = 4 << 20
"""``fetch.max.bytes`` of this broker, whatever the client allows."""
LARGEST_CONVERTED: Final = 64 << 10
"""The same for a version that gets its records in an older format: converting them holds up all other clients."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A Fetch for which there are no records yet."""

    request: Received
    answer: Answer
    timer: asyncio.TimerHandle | None = None


class LogApi:
    def __init__(self, topics: Topics, pads: bool) -> None:
        """``pads``: whether the release fills up what it converts: see ``_converted``."""
        self.topics = topics
        self.pads = pads
        self._waiting: list[_Waiting] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"ListOffsetsRequest": self.list_offsets, "FetchRequest": self.fetch}

    def list_offsets(self, request: Received, answer: Answer) -> None:
        answer({"topics": [self._listed(request.version, each) for each in request.body["topics"]]})

    def _listed(self, version: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        topic = self.topics.find(asked["name"], None)
        if version < TIMESTAMPS_SINCE:
            return {"name": asked["name"], "partitions": [_offsets(topic, each) for each in asked["partitions"]]}
        parts = [_offset(topic, each) for each in asked["partitions"]]
        if version >= LEADER_EPOCH_SINCE:
            parts = [{**each, "leaderEpoch": LEADER_EPOCH if each["offset"] >= 0 else -1} for each in parts]
        return {"name": asked["name"], "partitions": parts}

    def fetch(self, request: Received, answer: Answer) -> None:
        """Answers at once if there are records or errors, else when a topic grew, or after the longest time that the
        client waits.

        Sessions of fetches are not offered: session id 0 makes clients name all partitions in each request.
        """
        topics, found = self._fetched(request)
        wait_s = min(max(request.body["maxWaitMs"], 0) / 1000, LONGEST_WAIT_S)
        if found or not request.body["minBytes"] or not wait_s:
            return answer(_fetch_response(topics))
        waiting = _Waiting(request, answer)
        waiting.timer = asyncio.get_running_loop().call_later(wait_s, self._end, waiting, topics)
        self._waiting.append(waiting)

    def grew(self) -> None:
        """A topic has new records: answers each waiting Fetch that they are for."""
        for each in tuple(self._waiting):
            topics, found = self._fetched(each.request)
            if found:
                self._end(each, topics)

    def _end(self, waiting: _Waiting, topics: list[dict[str, Any]]) -> None:
        self._waiting.remove(waiting)
        if waiting.timer is not None:
            waiting.timer.cancel()
        waiting.answer(_fetch_response(topics))

    def _fetched(self, request: Received) -> tuple[list[dict[str, Any]], bool]:
        """The topics of the response, and whether there is anything but empty partitions."""
        most = LARGEST_ANSWER if request.version >= MAGIC_2_SINCE else LARGEST_CONVERTED
        room = min(max(request.body.get("maxBytes", most), 0), most)
        found, topics = False, []
        for each in request.body["topics"]:
            by_id = request.version >= TOPIC_IDS_SINCE
            topic = self.topics.find(None if by_id else each["topic"], each["topicId"] if by_id else None)
            unknown = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
            parts = []
            for part in each["partitions"]:
                made = self._read(request.version, topic, unknown, part, room, first=not found)
                room -= len(made["records"] or b"")
                found = found or bool(made["records"] or made["errorCode"])
                parts.append(made)
            named = {"topicId": each["topicId"]} if by_id else {"topic": each["topic"]}
            topics.append({**named, "partitions": parts})
        return topics, found

    def _read(
        self, version: int, topic: Topic | None, unknown: int, asked: Mapping[str, Any], room: int, first: bool
    ) -> dict[str, Any]:
        """A partition of the response. ``first``: no partition before it has records or an error."""
        index, offset = asked["partition"], asked["fetchOffset"]
        if topic is None:
            return _partition(index, unknown)
        if not 0 <= index < topic.partitions:
            return _partition(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
        log = topic.log_of(index)
        if not 0 <= offset <= log.end:
            return _partition(index, Error.OFFSET_OUT_OF_RANGE)
        most, place = max(asked["partitionMaxBytes"], 0), log.place(offset)
        fits = version >= WHOLE_BATCH_SINCE or (offset < log.end and len(log.batches[place]) <= most)
        records = _taken(log, place, min(room, most), first and fits)
        if version >= MAGIC_2_SINCE or not records:
            return _partition(index, 0, log.end, records)
        try:
            converted = _converted(records, offset, int(version >= MAGIC_1_SINCE), self.pads)
        except NotImplementedError:
            return _partition(index, Error.UNSUPPORTED_COMPRESSION_TYPE)
        return _partition(index, 0, log.end, converted)


def _fetch_response(topics: list[dict[str, Any]]) -> dict[str, Any]:
    return {"errorCode": 0, "sessionId": 0, "responses": topics}


def _taken(log: Log, place: int, room: int, first: bool) -> bytes:
    """Whole batches from that place on, as far as there is room. ``first``: at least one."""
    found = bytearray()
    for at in range(place, len(log.batches)):
        each = log.batches[at]
        if len(found) + len(each) > room and not (first and not found):
            break
        found += each
    return bytes(found)


def _converted(batches: bytes, offset: int, magic: int, pads: bool) -> bytes:
    """The records from that offset on as messages of magic 0 or 1. Errors: NotImplementedError for compression.

    ``pads``: the size of an answer is that of its batches, and messages are smaller. The rest is an offset of -1, and a
    length that runs past the end (KIP-283, class ``LazyDownConversionRecordsSend``).
    """
    records = [each for batch in decode(batches) for each in batch.records if each.offset >= offset]
    found = message_sets.encode(records, magic)
    left = len(batches) - len(found)
    if pads and left > 0:
        found += struct.pack(">qi", -1, left + 1).ljust(left, b"\0")[:left]
    return found


def _partition(index: int, error: int, end: int = -1, records: bytes = b"") -> dict[str, Any]:
    return {
        "partitionIndex": index,
        "errorCode": error,
        "highWatermark": end,
        "lastStableOffset": end,
        "logStartOffset": 0 if end >= 0 else -1,
        "abortedTransactions": None,
        "preferredReadReplica": -1,
        "records": records,
    }


def _offset(topic: Topic | None, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The offset for a timestamp; all records have the same one."""
    index, wanted = asked["partitionIndex"], asked["timestamp"]
    if topic is None or not 0 <= index < topic.partitions:
        return _listed_offset(index, Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    match wanted:
        case _ if wanted == LATEST:
            return _listed_offset(index, 0, -1, topic.log_of(index).end)
        case _ if wanted == EARLIEST:
            return _listed_offset(index, 0, -1, 0)
        case _ if wanted == MAX_TIMESTAMP and topic.end:
            return _listed_offset(index, 0, RECORD_MS, topic.end - 1)
        case _ if 0 <= wanted <= RECORD_MS and topic.end:
            return _listed_offset(index, 0, RECORD_MS, 0)
        case _:
            return _listed_offset(index, 0, -1, -1)


def _offsets(topic: Topic | None, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of version 0: the newest offset first, then that at which the only segment of the log begins.

    A time finds both if it is after that of the records, else none, because version 0 compares it with the time at
    which the segment was written last (``UnifiedLog.legacyFetchOffsetsBefore``).
    """
    index, wanted, most = asked["partitionIndex"], asked["timestamp"], asked["maxNumOffsets"]
    if topic is None or not 0 <= index < topic.partitions:
        return _listed_offsets(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if most < 0:
        return _listed_offsets(index, Error.UNKNOWN_SERVER_ERROR)
    if wanted == EARLIEST:
        return _listed_offsets(index, 0, [0][:most])
    if wanted == LATEST or wanted > RECORD_MS:
        end = topic.log_of(index).end
        return _listed_offsets(index, 0, ([end, 0] if end else [0])[:most])
    return _listed_offsets(index, 0)


def _listed_offsets(index: int, error: int, offsets: Sequence[int] = ()) -> dict[str, Any]:
    return {"partitionIndex": index, "errorCode": error, "oldStyleOffsets": [*offsets]}


def _listed_offset(index: int, error: int, timestamp: int, offset: int) -> dict[str, Any]:
    return {"partitionIndex": index, "errorCode": error, "timestamp": timestamp, "offset": offset}
