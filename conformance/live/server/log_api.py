"""Reading of topics: ListOffsets, Fetch and OffsetForLeaderEpoch."""

import asyncio
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.fetch_sessions import IDS_SINCE, Key, topic_field
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.fetch_sessions import FetchSessions, Wanted
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.topics import NO_LEADER, NODE, RECORD_MS, Leader, Log, Topic, Topics, nodes
from kipcheck.conformance.wire import message_sets
from kipcheck.conformance.wire.record_batches import decode

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
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
LEADERS_SINCE: Final = 16
"""Fetch whose answer names the leader of a partition that is elsewhere (KIP-951)."""
OF_SESSIONS: Final = (Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH)
MOVED: Final = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)
READ_COMMITTED: Final = 1
"""The isolation level of a client that is sent no open transaction, and is sent which ones were aborted."""
LARGEST_CONVERTED: Final = 64 << 10
"""The same for a version that gets its records in an older format: converting them holds up all other clients."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A Fetch for which there are no records yet."""

    request: Received
    wanted: Wanted
    answer: Answer
    timer: asyncio.TimerHandle | None = None


class LogApi:
    def __init__(self, topics: Topics, pads: bool, addresses: Callable[[Received], Sequence[tuple[str, int]]]) -> None:
        """``pads``: whether the release fills up what it converts: see ``_converted``. ``addresses``: of all nodes of
        the cluster."""
        self.topics = topics
        self.pads = pads
        self.addresses = addresses
        self.sessions = FetchSessions()
        self._waiting: list[_Waiting] = []

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            "ListOffsetsRequest": self.list_offsets,
            "FetchRequest": self.fetch,
            "OffsetForLeaderEpochRequest": self.ends_of_epochs,
        }

    def list_offsets(self, request: Received, answer: Answer) -> None:
        answer({"topics": [self._listed(request, each) for each in request.body["topics"]]})

    def _listed(self, request: Received, asked: Mapping[str, Any]) -> dict[str, Any]:
        topic = self.topics.find(asked["name"], None)
        parts = []
        for part in asked["partitions"]:
            error = self.error(request, topic, part["partitionIndex"], part)
            if request.version < TIMESTAMPS_SINCE:
                parts.append(_offsets(topic, part, error))
                continue
            found = _offset(topic, part, error)
            if request.version >= LEADER_EPOCH_SINCE:
                epoch = _epoch_at(topic, found["partitionIndex"], found["offset"])
                found["leaderEpoch"] = epoch
            parts.append(found)
        return {"name": asked["name"], "partitions": parts}

    def ends_of_epochs(self, request: Received, answer: Answer) -> None:
        topics = []
        for asked in request.body["topics"]:
            topic, parts = self.topics.find(asked["topic"], None), []
            for part in asked["partitions"]:
                error = self.error(request, topic, part["partition"], part)
                at = topic.log_of(part["partition"]).end_of(part["leaderEpoch"]) if topic and not error else (-1, -1)
                parts.append({"errorCode": error, "partition": part["partition"], "leaderEpoch": at[0],
                              "endOffset": at[1]})  # fmt: skip
            topics.append({"topic": asked["topic"], "partitions": parts})
        answer({"topics": topics})

    def error(
        self, request: Received, topic: Topic | None, index: int, asked: Mapping[str, Any],
        unknown: int = Error.UNKNOWN_TOPIC_OR_PARTITION,
    ) -> int:  # fmt: skip
        """Why this node does not read that partition for a client, which may name the epoch of its leader.

        ``unknown``: the error for a topic that does not exist. Source: ``Partition.getLocalLog``.
        """
        if topic is None:
            return unknown
        if not 0 <= index < topic.partitions:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        leader, epoch = topic.leader_of(index), asked.get("currentLeaderEpoch", -1)
        if leader.node == NO_LEADER and self._is_at(request, topic.leaders[index][-2]):
            return Error.KAFKA_STORAGE_ERROR  # why there is none
        if 0 <= epoch != leader.epoch:
            return Error.FENCED_LEADER_EPOCH if epoch < leader.epoch else Error.UNKNOWN_LEADER_EPOCH
        return Error.NONE if self._is_at(request, leader) else Error.NOT_LEADER_OR_FOLLOWER

    def _is_at(self, request: Received, leader: Leader) -> bool:
        """Whether the request reached that leader."""
        return leader.node != NO_LEADER and self.addresses(request)[leader.node] == request.reached

    def refuse(self, request: Received, answer: Answer, error: Error) -> None:
        """Answers a Fetch with an error of its session, or of each partition."""
        if error in OF_SESSIONS:
            self.sessions.forget()
        wanted = error if error in OF_SESSIONS else self.sessions.begin(request)
        if isinstance(wanted, Error):
            return answer(_refused(wanted))
        answer(_fetch_response(request, wanted, {key: _partition(key[1], error) for key in wanted.partitions}))

    def fetch(self, request: Received, answer: Answer) -> None:
        """Answers at once if there are records or errors, else when a topic grew, or after the longest time that the
        client waits."""
        wanted = self.sessions.begin(request)
        if isinstance(wanted, Error):
            return answer(_refused(wanted))
        found = self._fetched(request, wanted)
        wait_s = min(max(request.body["maxWaitMs"], 0) / 1000, LONGEST_WAIT_S)
        if _is_due(found) or not request.body["minBytes"] or not wait_s:
            return answer(self._response(request, wanted, found))
        waiting = _Waiting(request, wanted, answer)
        waiting.timer = asyncio.get_running_loop().call_later(wait_s, self._end, waiting)
        self._waiting.append(waiting)

    def grew(self) -> None:
        """A topic has new records, or a partition another leader: answers each waiting Fetch that this concerns."""
        for each in tuple(self._waiting):
            if _is_due(self._fetched(each.request, each.wanted)):
                self._end(each)

    def _end(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        if waiting.timer is not None:
            waiting.timer.cancel()
        found = self._fetched(waiting.request, waiting.wanted)
        waiting.answer(self._response(waiting.request, waiting.wanted, found))

    def _fetched(self, request: Received, wanted: Wanted) -> dict[Key, dict[str, Any]]:
        """The partitions of the response."""
        most = LARGEST_ANSWER if request.version >= MAGIC_2_SINCE else LARGEST_CONVERTED
        room = min(max(request.body.get("maxBytes", most), 0), most)
        by_id = request.version >= IDS_SINCE
        unknown = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
        found: dict[Key, dict[str, Any]] = {}
        is_first = True
        for (name, index), asked in wanted.partitions.items():
            topic = self.topics.by_id.get(name) if isinstance(name, uuid.UUID) else self.topics.by_name.get(name)
            error = self.error(request, topic, index, asked, unknown)
            if error or topic is None:
                made = self._elsewhere(request, topic, index, error)
            else:
                made = self._read(request, topic.log_of(index), asked, room, is_first)
            room -= len(made["records"] or b"")
            is_first = is_first and not (made["records"] or made["errorCode"])
            found[name, index] = made
        return found

    def _elsewhere(self, request: Received, topic: Topic | None, index: int, error: int) -> dict[str, Any]:
        made = _partition(index, error)
        if topic is not None and request.version >= LEADERS_SINCE and error in MOVED:
            node, epoch = topic.leader_of(index)
            id = node if node == NO_LEADER else NODE + node
            made["currentLeader"] = {"leaderId": id, "leaderEpoch": epoch}
        return made

    def _read(self, request: Received, log: Log, asked: Mapping[str, Any], room: int, is_first: bool) -> dict[str, Any]:
        """A partition of the response. ``is_first``: no partition before it has records or an error."""
        version, index, offset = request.version, asked["partition"], asked["fetchOffset"]
        if not log.start <= offset <= log.end:
            return _partition(index, Error.OFFSET_OUT_OF_RANGE)
        most, place = max(asked["partitionMaxBytes"], 0), log.place(offset)
        fits = version >= WHOLE_BATCH_SINCE or (offset < log.end and len(log.batches[place]) <= most)
        records = _taken(log, place, min(room, most), is_first and fits)
        if version < MAGIC_2_SINCE and records:
            try:
                records = _converted(records, offset, int(version >= MAGIC_1_SINCE), self.pads)
            except NotImplementedError:
                return _partition(index, Error.UNSUPPORTED_COMPRESSION_TYPE)
        made = {**_partition(index, 0, log.end, records), "logStartOffset": log.start}
        if request.body.get("isolationLevel") == READ_COMMITTED:
            made["abortedTransactions"] = [
                {"producerId": each.producer, "firstOffset": each.first} for each in log.aborted if each.end > offset
            ]
        return made

    def _response(self, request: Received, wanted: Wanted, found: Mapping[Key, dict[str, Any]]) -> dict[str, Any]:
        body = _fetch_response(request, wanted, found)
        if any("currentLeader" in part for part in found.values()):
            body["nodeEndpoints"] = nodes(self.addresses(request))
        return body


def _refused(error: Error) -> dict[str, Any]:
    return {"errorCode": error, "sessionId": 0, "responses": []}


def _is_due(found: Mapping[Key, Mapping[str, Any]]) -> bool:
    """Whether there is anything but empty partitions."""
    return any(part["records"] or part["errorCode"] for part in found.values())


def _fetch_response(request: Received, wanted: Wanted, found: Mapping[Key, dict[str, Any]]) -> dict[str, Any]:
    field = topic_field(request.version)
    topics: dict[str | uuid.UUID, list[dict[str, Any]]] = {}
    for (topic, _), part in wanted.named(found).items():
        topics.setdefault(topic, []).append(part)
    listed = [{field: topic, "partitions": parts} for topic, parts in topics.items()]
    return {"errorCode": 0, "sessionId": wanted.session.id if wanted.session else 0, "responses": listed}


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
    records = [
        each for batch in decode(batches) if not batch.control for each in batch.records if each.offset >= offset
    ]
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


def _epoch_at(topic: Topic | None, index: int, offset: int) -> int:
    """The epoch of the leader that wrote the record; -1 without one."""
    if topic is None or offset < 0:
        return -1
    return next(epoch for epoch, first in reversed(topic.log_of(index).epochs) if first <= offset)


def _offset(topic: Topic | None, asked: Mapping[str, Any], error: int) -> dict[str, Any]:
    """The offset for a timestamp; all records have the same one."""
    index, wanted = asked["partitionIndex"], asked["timestamp"]
    if error or topic is None:
        return _listed_offset(index, error, -1, -1)
    log = topic.log_of(index)
    match wanted:
        case _ if wanted == LATEST:
            return _listed_offset(index, 0, -1, log.end)
        case _ if wanted == EARLIEST:
            return _listed_offset(index, 0, -1, log.start)
        case _ if wanted == MAX_TIMESTAMP and log.end:
            return _listed_offset(index, 0, RECORD_MS, log.end - 1)
        case _ if 0 <= wanted <= RECORD_MS and log.end:
            return _listed_offset(index, 0, RECORD_MS, log.start)
        case _:
            return _listed_offset(index, 0, -1, -1)


def _offsets(topic: Topic | None, asked: Mapping[str, Any], error: int) -> dict[str, Any]:
    """The answer of version 0: the newest offset first, then that at which the only segment of the log begins.

    A time finds both if it is after that of the records, else none, because version 0 compares it with the time at
    which the segment was written last (``UnifiedLog.legacyFetchOffsetsBefore``).
    """
    index, wanted, most = asked["partitionIndex"], asked["timestamp"], asked["maxNumOffsets"]
    if error or topic is None:
        return _listed_offsets(index, error)
    if most < 0:
        return _listed_offsets(index, Error.UNKNOWN_SERVER_ERROR)
    log = topic.log_of(index)
    if wanted == EARLIEST:
        return _listed_offsets(index, 0, [log.start][:most])
    if wanted == LATEST or wanted > RECORD_MS:
        return _listed_offsets(index, 0, ([log.end, log.start] if log.end > log.start else [log.start])[:most])
    return _listed_offsets(index, 0)


def _listed_offsets(index: int, error: int, offsets: Sequence[int] = ()) -> dict[str, Any]:
    return {"partitionIndex": index, "errorCode": error, "oldStyleOffsets": [*offsets]}


def _listed_offset(index: int, error: int, timestamp: int, offset: int) -> dict[str, Any]:
    return {"partitionIndex": index, "errorCode": error, "timestamp": timestamp, "offset": offset}
