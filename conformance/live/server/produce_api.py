"""Writing to topics: Produce. Records are kept as batches of magic 2, whatever format they came in."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.groups import Answer, Handler
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, Topic, Topics
from kipcheck.conformance.wire import message_sets, record_batches
from kipcheck.conformance.wire.errors import Entries, Refused, TooManyEntries

ACKS: Final = (-1, 0, 1)
TOPIC_IDS_SINCE: Final = 13
ONE_BATCH_SINCE: Final = 3
"""Before, records of any format, or none."""
MOST_BYTES: Final = 256 << 10
"""Of records in a request: reading them holds up all other clients."""
MOST_RECORDS: Final = 2_500
"""In a request."""
MOST_WRITTEN: Final = 32 << 20
"""Bytes that clients may write to all topics."""


class _Refusal(Exception):
    """Records that are answered with an error."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


class ProduceApi:
    def __init__(self, topics: Topics, grew: Callable[[], None]) -> None:
        """``grew`` is called when there are new records."""
        self.topics = topics
        self.grew = grew
        self._written = 0

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {"ProduceRequest": self.produce}

    def produce(self, request: Received, answer: Answer) -> None:
        body = request.body
        sizes = (len(part["records"] or b"") for each in body["topicData"] for part in each["partitionData"])
        refused = Error.INVALID_REQUIRED_ACKS if body["acks"] not in ACKS else 0
        refused = refused or (Error.MESSAGE_TOO_LARGE if sum(sizes) > MOST_BYTES else 0)
        before, left = self._written, Entries(MOST_RECORDS)
        answer({"responses": [self._topic(request.version, each, refused, left) for each in body["topicData"]]})
        if self._written > before:
            self.grew()

    def _topic(self, version: int, asked: Mapping[str, Any], refused: int, left: Entries) -> dict[str, Any]:
        """``refused``: the error of the whole request, or 0; ``left``: the records that it may have."""
        by_id = version >= TOPIC_IDS_SINCE
        topic = self.topics.find(None if by_id else asked["name"], asked["topicId"] if by_id else None)
        parts = []
        for part in asked["partitionData"]:
            index, found = part["index"], {"index": part["index"], "errorCode": 0, "baseOffset": -1}
            try:
                if refused:
                    raise _Refusal(refused)
                if topic is None:
                    raise _Refusal(Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
                if not 0 <= index < topic.partitions:
                    raise _Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION)
                base = self._append(version, topic, index, part["records"] or b"", left)
                parts.append({**found, "baseOffset": base})
            except _Refusal as why:
                parts.append({**found, "errorCode": why.error})
        return {**({"topicId": asked["topicId"]} if by_id else {"name": asked["name"]}), "partitionResponses": parts}

    def _append(self, version: int, topic: Topic, partition: int, records: bytes, left: Entries) -> int:
        """The offset of the first record; -1 if there is none. Errors: ``_Refusal``."""
        if self._written + len(records) > MOST_WRITTEN:
            raise _Refusal(Error.KAFKA_STORAGE_ERROR)
        base = topic.log_of(partition).end
        try:
            data, number = _batch(version, records, base, left)
        except TooManyEntries:
            raise _Refusal(Error.MESSAGE_TOO_LARGE) from None
        except Refused:
            raise _Refusal(Error.CORRUPT_MESSAGE) from None
        if not number:
            return -1
        self._written += len(data)
        topic.writable(partition).add(data, base + number)
        return base


def _batch(version: int, records: bytes, base: int, left: Entries) -> tuple[bytes, int]:
    """The batch with these records from that offset on, and their number, 0 for none.

    Errors: ``_Refusal``; ``Refused`` for damaged records; ``TooManyEntries``.
    """
    first = record_batches.head(records, 0)
    if first is not None and first.magic == record_batches.MAGIC:
        return _moved(records, first, base, left)
    if version >= ONE_BATCH_SINCE:
        raise _Refusal(Error.INVALID_RECORD)
    try:
        found = message_sets.decode(records, left)
    except NotImplementedError:
        raise _Refusal(Error.UNSUPPORTED_COMPRESSION_TYPE) from None
    if not found:
        return b"", 0
    times = [each.timestamp for each in found]
    moved = tuple(replace(each, offset=base + place) for place, each in enumerate(found))
    return record_batches.encode(
        record_batches.RecordBatch(base, moved[-1].offset, times[0], max(times), moved, LEADER_EPOCH)
    ), len(found)


def _moved(records: bytes, batch: record_batches.Head, base: int, left: Entries) -> tuple[bytes, int]:
    """The only batch, at another offset, which its checksum does not cover. One that is compressed stays so."""
    count = int.from_bytes(records[record_batches.LEAST - 4 : record_batches.LEAST], "big", signed=True)
    if batch.end != len(records) or count < 1 or batch.last_offset - batch.base_offset + 1 != count:
        raise _Refusal(Error.INVALID_RECORD)
    if batch.attributes & record_batches.CONTROL:
        raise _Refusal(Error.INVALID_RECORD)
    left.take(count)
    with suppress(NotImplementedError):  # then its checksum is right
        record_batches.decode_one(records, batch)
    _, length, _, magic, crc = record_batches.HEAD.unpack_from(records)
    return record_batches.HEAD.pack(base, length, LEADER_EPOCH, magic, crc) + records[record_batches.HEAD.size :], count
