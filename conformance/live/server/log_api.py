"""Reading of topics: ListOffsets and Fetch."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, RECORD_MS, Topic, Topics

UNKNOWN_TOPIC_OR_PARTITION: Final = 3
OFFSET_OUT_OF_RANGE: Final = 1
UNKNOWN_TOPIC_ID: Final = 100
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
TOPIC_IDS_SINCE: Final = 13
LEADER_EPOCH_SINCE: Final = 4
"""ListOffsets."""
LONGEST_WAIT_S: Final = 60.0
LARGEST_ANSWER: Final = 4 << 20
"""``fetch.max.bytes`` of this broker, whatever the client allows."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A Fetch for which there are no records yet."""

    request: Received
    answer: Answer
    timer: asyncio.TimerHandle | None = None


class LogApi:
    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self._waiting: list[_Waiting] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"ListOffsetsRequest": self.list_offsets, "FetchRequest": self.fetch}

    def list_offsets(self, request: Received, answer: Answer) -> None:
        answer({"topics": [self._listed(request.version, each) for each in request.body["topics"]]})

    def _listed(self, version: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        topic = self.topics.find(asked["name"], None)
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
        room = min(max(request.body.get("maxBytes", LARGEST_ANSWER), 0), LARGEST_ANSWER)
        found, topics = False, []
        for each in request.body["topics"]:
            by_id = request.version >= TOPIC_IDS_SINCE
            topic = self.topics.find(None if by_id else each["topic"], each["topicId"] if by_id else None)
            unknown = UNKNOWN_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
            parts = []
            for part in each["partitions"]:
                made = _read(topic, unknown, part, room, first=not found)
                room -= len(made["records"] or b"")
                found = found or bool(made["records"] or made["errorCode"])
                parts.append(made)
            named = {"topicId": each["topicId"]} if by_id else {"topic": each["topic"]}
            topics.append({**named, "partitions": parts})
        return topics, found


def _fetch_response(topics: list[dict[str, Any]]) -> dict[str, Any]:
    return {"errorCode": 0, "sessionId": 0, "responses": topics}


def _read(topic: Topic | None, unknown: int, asked: Mapping[str, Any], room: int, first: bool) -> dict[str, Any]:
    """A partition of the response. ``first``: at least one batch is sent, whatever its size (KIP-74)."""
    index, offset = asked["partition"], asked["fetchOffset"]
    if topic is None:
        return _partition(index, unknown)
    if not 0 <= index < topic.partitions:
        return _partition(index, UNKNOWN_TOPIC_OR_PARTITION)
    if not 0 <= offset <= topic.end:
        return _partition(index, OFFSET_OUT_OF_RANGE, topic.end)
    room = min(room, max(asked["partitionMaxBytes"], 0))
    return _partition(index, 0, topic.end, _taken(topic.records, offset, room, first))


def _taken(batches: Sequence[bytes], begin: int, room: int, first: bool) -> bytes:
    found = bytearray()
    for at in range(begin, len(batches)):
        each = batches[at]
        if len(found) + len(each) > room and not (first and not found):
            break
        found += each
    return bytes(found)


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
        return _listed_offset(index, UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    match wanted:
        case _ if wanted == LATEST:
            return _listed_offset(index, 0, -1, topic.end)
        case _ if wanted == EARLIEST:
            return _listed_offset(index, 0, -1, 0)
        case _ if wanted == MAX_TIMESTAMP and topic.end:
            return _listed_offset(index, 0, RECORD_MS, topic.end - 1)
        case _ if 0 <= wanted <= RECORD_MS and topic.end:
            return _listed_offset(index, 0, RECORD_MS, 0)
        case _:
            return _listed_offset(index, 0, -1, -1)


def _listed_offset(index: int, error: int, timestamp: int, offset: int) -> dict[str, Any]:
    return {"partitionIndex": index, "errorCode": error, "timestamp": timestamp, "offset": offset}
