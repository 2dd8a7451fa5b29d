"""What a script does to topics: that they exist, their records, their leaders, and what nodes know of all that."""

import asyncio
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Groups
from kipcheck.conformance.live.server.log_api import LogApi
from kipcheck.conformance.live.server.topics import (
    NO_LEADER,
    NODE,
    RECORD_MS,
    Aborted,
    Log,
    Topics,
    one_record,
)
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.client import log_ops
from kipcheck.conformance.wire.record_batches import CONTROL, TRANSACTIONAL, Record, RecordBatch, encode

PRODUCER: Final = 77
"""The id of the producer that writes transactions."""
NUMBER: Final = 5
"""Records in a batch, or offsets of one that was compacted."""
LEFT: Final = (0, 2)
"""The records of a batch that compaction leaves."""
GONE: Final = 3
"""Offsets after them for which it leaves no batch."""
NO_ID: Final = uuid.UUID(int=0)
ABORT, COMMIT = 0, 1
"""Types of the markers that end transactions (class ``ControlRecordType``)."""


class ScriptedLog:
    def __init__(self, sizes: Iterable[tuple[str, int]], topics: Topics, log: LogApi, groups: Groups) -> None:
        """``sizes``: the number of partitions of each topic, when it is created."""
        self.sizes = dict(sizes)
        self.topics = topics
        self.log = log
        self.groups = groups
        self._lags: dict[str, float | None] = {}
        """What answers to Metadata lack, and until when; None: ``_lasts_s`` from the next answer on."""
        self._lasts_s: dict[str, float] = {}
        self._timers: list[asyncio.TimerHandle] = []

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    # Topics

    def create(self, name: str) -> bool:
        """Returns whether it is new."""
        if name in self.topics.by_name:
            return False
        self.topics.create(name, self.sizes[name])
        return True

    def delete(self, name: str) -> bool:
        """With its committed offsets. Returns whether it was there."""
        if name not in self.topics.by_name:
            return False
        self.topics.delete(name)
        self.groups.forget(name)
        self.log.grew()
        return True

    # Records

    def write(self, kind: log_ops.Kept) -> None:
        """Records of a kind, to each partition of each topic."""
        for topic in self.topics.by_name.values():
            for log, epoch in topic.logs:
                for data, end in _batches(kind, topic.name, log.end, epoch):
                    log.add(data, end, epoch)
                if kind == "aborted":
                    _note_aborted(log)
            if kind != "marker":
                self.topics.grow(topic.name)
        self.log.grew()

    def trim(self, records: int) -> dict[str, int]:
        """Returns the first offset of each partition."""
        starts: dict[str, int] = {}
        for topic in self.topics.by_name.values():
            for log, _ in topic.logs:
                log.trim(log.end - records)
            starts |= {partition_name((topic.name, at)): topic.log_of(at).start for at in range(topic.partitions)}
        return starts

    # Leaders

    def elect(self, partitions: Iterable[int], nodes: int, ms: int) -> None:
        """The next one of so many nodes leads partitions of each topic, all if none are named."""
        wanted = frozenset(partitions)
        elected = []
        for topic in self.topics.by_name.values():
            for number in range(topic.partitions):
                if number in wanted or not wanted:
                    node = (max(topic.leader_of(number).node, 0) + 1) % nodes
                    elected.append((topic, number, node))
                    topic.elect(number, NO_LEADER if ms else node)

        def done() -> None:
            for topic, number, node in elected:
                topic.elect(number, node)
            self.log.grew()

        if ms:
            self._timers.append(asyncio.get_running_loop().call_later(ms / 1000, done))
        self.log.grew()

    # Metadata

    def lag(self, what: str, ms: int) -> None:
        self._lags[what], self._lasts_s[what] = None, ms / 1000

    def as_known(self, request: Received, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a Metadata as of a node that lags."""
        now = asyncio.get_running_loop().time()
        for what in [*self._lags]:
            until_s = self._lags[what]
            if until_s is None:
                self._lags[what] = now + self._lasts_s[what]
            elif now > until_s:
                del self._lags[what]
        if "node" in self._lags:
            body = _without_other_nodes(request, body)
        if "topic" in self._lags:
            asked = request.body["topics"]
            body = {**body, "topics": [_unknown(request, each) for each in body["topics"]] if asked else []}
        if "leader" in self._lags:
            body = {**body, "topics": [self._led_before(each) for each in body["topics"]]}
        return body

    def _led_before(self, described: Mapping[str, Any]) -> dict[str, Any]:
        topic, parts = self.topics.by_name.get(described["name"] or ""), []
        for part in described["partitions"]:
            before = topic.leaders.get(part["partitionIndex"], [])[:-1] if topic is not None else []
            known = [leader for leader in before if leader.node != NO_LEADER][-1:]
            old = {"errorCode": 0, "leaderId": NODE + known[0].node, "leaderEpoch": known[0].epoch} if known else {}
            parts.append({**part, **old})
        return {**described, "partitions": parts}


def _unknown(request: Received, described: Mapping[str, Any]) -> dict[str, Any]:
    by_id = any(each["name"] is None for each in request.body["topics"])
    error = KafkaError.UNKNOWN_TOPIC_ID if by_id else KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    asked = {"name": None} if by_id else {"topicId": NO_ID} if "topicId" in described else {}
    return {**described, **asked, "errorCode": error, "partitions": []}


def _without_other_nodes(request: Received, body: Mapping[str, Any]) -> dict[str, Any]:
    """A node knows itself. Partitions that another one leads have no leader
    (``MetadataCache.getPartitionMetadata``)."""
    known = [node for node in body["brokers"] if (node["host"], node["port"]) == request.reached]
    ids = {node["nodeId"] for node in known}
    lost = {"errorCode": KafkaError.LEADER_NOT_AVAILABLE, "leaderId": NO_LEADER}
    topics = [
        {**topic, "partitions": [part if part["leaderId"] in ids else {**part, **lost} for part in topic["partitions"]]}
        for topic in body["topics"]
    ]
    return {**body, "brokers": known, "topics": topics}


# Batches


def _batches(kind: log_ops.Kept, topic: str, base: int, epoch: int) -> Iterator[tuple[bytes, int]]:
    """Each batch with the offset after it."""
    match kind:
        case "batch":
            yield _batch(topic, base, range(NUMBER), epoch), base + NUMBER
        case "gap":
            yield one_record(topic, base, epoch), base + 1
            yield _batch(topic, base + 1, LEFT, epoch), base + 1 + NUMBER
            yield one_record(topic, base + 1 + NUMBER + GONE, epoch), base + 2 + NUMBER + GONE
        case "empty":
            yield _batch(topic, base, (), epoch), base + NUMBER
        case "control" | "aborted" | "marker":
            yield _batch(topic, base, range(NUMBER), epoch, TRANSACTIONAL), base + NUMBER
            end = ABORT if kind == "aborted" else COMMIT
            yield _marker(base + NUMBER, end, epoch), base + NUMBER + 1


def _batch(topic: str, base: int, left: Iterable[int], epoch: int, attributes: int = 0) -> bytes:
    records = tuple(Record(base + at, RECORD_MS, value=f"{topic} {base + at}".encode()) for at in left)
    producer = (
        {"producer_id": PRODUCER, "producer_epoch": 0, "base_sequence": base} if attributes or not records else {}
    )
    return encode(RecordBatch(base, base + NUMBER - 1, RECORD_MS, RECORD_MS, records, epoch,
                              attributes=attributes, **producer))  # fmt: skip


def _marker(offset: int, type: int, epoch: int) -> bytes:
    """Source: classes ``ControlRecordType`` and ``EndTransactionMarker``."""
    record = Record(offset, RECORD_MS, struct.pack(">hh", 0, type), struct.pack(">hi", 0, 0))
    return encode(RecordBatch(offset, offset, RECORD_MS, RECORD_MS, (record,), epoch, PRODUCER, 0, -1,
                              TRANSACTIONAL | CONTROL))  # fmt: skip


def _note_aborted(log: Log) -> None:
    log.aborted.append(Aborted(PRODUCER, log.end - NUMBER - 1, log.end))
