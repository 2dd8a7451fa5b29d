"""Record batches (magic 2): what the records of Fetch responses and Produce requests consist of since Kafka 0.11.

=====================  ===========================================================================================
bytes                  field
=====================  ===========================================================================================
int64, int32           base offset; bytes that follow the length
int32, int8, uint32    partition leader epoch; magic, 2; CRC-32C of all that follows it
int16                  attributes: compression (bits 0-2), log append time (3), transactional (4), control (5); with
                       bit 6 the base timestamp is the time from which compaction may remove a tombstone
int32                  offset of the last record, from the base offset
int64, int64           base timestamp and largest timestamp, ms since 1970
int64, int16, int32    producer id, producer epoch, base sequence; -1 for none
int32, records         number of records, and the records
=====================  ===========================================================================================

A record: length, attributes (int8, unused), timestamp and offset from those of the batch, key, value, number of
headers, headers (key, value). All of its numbers but the attributes are varints in zigzag form; a length of -1 is null.

Source: KIP-98; classes ``DefaultRecordBatch`` and ``DefaultRecord``. Compressed batches are not read;
``wire.message_sets`` reads the message sets before magic 2.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import Final, NoReturn, TypeAlias

from kipcheck.conformance.wire.errors import Refused

MAGIC: Final = 2
OVERHEAD: Final = 12
"""Bytes of the base offset and the length, which the length does not count."""
AFTER_CRC: Final = 21
"""Offset of the attributes, the first of the bytes that the CRC covers."""
HEAD: Final = struct.Struct(">qiibI")
BODY: Final = struct.Struct(">hiqqqhii")
LEAST: Final = HEAD.size + BODY.size
"""Bytes of a batch without records."""
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0b111, 1 << 3, 1 << 4, 1 << 5
NAME: Final = "RecordBatch"
UP_TO_MAGIC: Final = 17
LEAST_BY_MAGIC: Final = (26, 34, LEAST)
"""Bytes of the least batch; of a message set with one record that has neither key nor value."""
Bytes: TypeAlias = "bytes | mmap"


@dataclass(frozen=True, slots=True)
class Header:
    key: str
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    timestamp: int
    """As its producer wrote it, ms since 1970; with log append time, that of the batch applies."""
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    attributes: int = 0
    key_at: int = field(default=-1, compare=False)
    """The offset of the key in the bytes that were decoded; -1 for a record that was not decoded."""
    value_at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Head:
    """The fields at the start of a batch, also of a message set of magic 0 or 1."""

    at: int
    """The offset of the batch in the bytes."""
    end: int
    magic: int
    base_offset: int
    last_offset: int
    """That of the last record. Of a compressed message set, which has that offset only, also the base offset."""
    leader_epoch: int
    """-1 before magic 2."""
    attributes: int

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION


@dataclass(frozen=True, slots=True)
class RecordBatch:
    base_offset: int
    last_offset: int
    """At least that of the last record: compaction removes records and keeps it."""
    base_timestamp: int
    max_timestamp: int
    records: tuple[Record, ...]
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    attributes: int = 0

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether its record is a marker that ends a transaction, and not data."""
        return bool(self.attributes & CONTROL)


def batch(
    base_offset: int, values: Sequence[bytes | None], timestamp: int = -1, *, leader_epoch: int = -1
) -> RecordBatch:
    """A batch of records without keys, with consecutive offsets and one timestamp. Errors: ValueError if empty."""
    if not values:
        raise ValueError("a batch has at least one record")
    records = tuple(Record(base_offset + n, timestamp, value=each) for n, each in enumerate(values))
    return RecordBatch(base_offset, records[-1].offset, timestamp, timestamp, records, leader_epoch)


# -- writing


def encode(batch: RecordBatch) -> bytes:
    """Errors: ``Refused`` for a number that is out of range; NotImplementedError for compression."""
    if batch.compression:
        raise NotImplementedError(f"compression {batch.compression} of record batches")
    try:
        records = b"".join(_sized(_record(batch, each)) for each in batch.records)
        body = BODY.pack(
            batch.attributes, batch.last_offset - batch.base_offset, batch.base_timestamp, batch.max_timestamp,
            batch.producer_id, batch.producer_epoch, batch.base_sequence, len(batch.records),
        ) + records  # fmt: skip
        length = LEAST - OVERHEAD + len(records)
        return HEAD.pack(batch.base_offset, length, batch.leader_epoch, MAGIC, crc32c(body)) + body
    except struct.error as wrong:
        raise _refused("range", str(wrong)) from None


def _record(batch: RecordBatch, record: Record) -> bytes:
    out = [
        struct.pack(">b", record.attributes), varint(record.timestamp - batch.base_timestamp, 64),
        varint(record.offset - batch.base_offset), _bytes(record.key), _bytes(record.value),
        varint(len(record.headers)),
    ]  # fmt: skip
    for each in record.headers:
        out += (_sized(each.key.encode()), _bytes(each.value))
    return b"".join(out)


def _sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def _bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else _sized(data)


def varint(number: int, bits: int = 32) -> bytes:
    """A signed number in zigzag form. Errors: ``Refused`` where it has more bits."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _refused("range", f"{number} does not fit {bits} bits")
    folded = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)
    return bytes(out)


# -- reading


def head(data: Bytes, at: int) -> Head | None:
    """The head of the batch, or message set, that begins there; None where the bytes end inside the batch.

    Neither checksum nor records are read. Errors: ``Refused`` for another magic and for a length that is too small.
    """
    if len(data) - at < UP_TO_MAGIC:
        return None
    magic = data[at + UP_TO_MAGIC - 1]
    if magic > MAGIC:
        _refuse("version", f"magic {magic} where 0, 1 or {MAGIC} belongs", at + UP_TO_MAGIC - 1)
    base, length = struct.unpack_from(">qi", data, at)
    if length < (least := LEAST_BY_MAGIC[magic] - OVERHEAD):
        _refuse("length", f"length {length} where a batch has at least {least}", at + 8)
    end = at + OVERHEAD + length
    if end > len(data):
        return None
    if magic < MAGIC:
        return Head(at, end, magic, base, base, -1, data[at + UP_TO_MAGIC])
    attributes, last = struct.unpack_from(">hi", data, at + AFTER_CRC)
    return Head(at, end, magic, base, base + last, int.from_bytes(data[at + 12 : at + 16], "big", signed=True),
                attributes)  # fmt: skip


def decode_one(data: Bytes, head: Head) -> RecordBatch:
    """The batch with that head. Errors: as of ``decode``."""
    return _batch(data, head.at, head.end)


def decode(data: bytes, *, partial: bool = False) -> tuple[RecordBatch, ...]:
    """All batches, which follow each other without gaps.

    ``partial``: the last one may be cut off and is left out then, as in a Fetch response of limited size. Errors:
    ``Refused`` with the offset in ``data``: class ``version`` for another magic, ``checksum`` for a wrong CRC;
    NotImplementedError for a compressed batch.
    """
    found, at = [], 0
    while at < len(data):
        whole = _whole(data, at)
        if whole is None:
            if partial:
                break
            _refuse("truncated", "the bytes end inside a batch", len(data))
        found.append(decode_one(data, whole))
        at = whole.end
    return tuple(found)


def next_offset(data: bytes) -> int | None:
    """The offset after the last whole batch or message, which may be compressed; None if there is none.

    Only lengths and offsets are read. Errors: ``Refused`` as of ``head``.
    """
    at, found = 0, None
    while whole := head(data, at):
        found, at = whole.last_offset + 1, whole.end
    return found


def _whole(data: bytes, at: int) -> Head | None:
    """The head of a batch of magic 2. Errors: ``Refused``."""
    if len(data) - at >= UP_TO_MAGIC and (magic := data[at + UP_TO_MAGIC - 1]) != MAGIC:
        _refuse("version", f"magic {magic} where {MAGIC} belongs", at + UP_TO_MAGIC - 1)
    return head(data, at)


def _batch(data: Bytes, at: int, end: int) -> RecordBatch:
    base_offset, _, leader_epoch, _, crc = HEAD.unpack_from(data, at)
    if (found := crc32c(data[at + AFTER_CRC : end])) != crc:
        _refuse("checksum", f"CRC {crc:08x} where the bytes have {found:08x}", at + AFTER_CRC - 4)
    attributes, last, base_time, max_time, producer, epoch, sequence, count = BODY.unpack_from(data, at + AFTER_CRC)
    if attributes & COMPRESSION:
        raise NotImplementedError(f"compression {attributes & COMPRESSION} of record batches")
    if count < 0:
        _refuse("length", f"{count} records", at + LEAST - 4)
    reader = _Reader(data, at + LEAST, end)
    records = tuple(reader.record(base_offset, base_time) for _ in range(count))
    if reader.at != end:
        _refuse("trailing", f"{end - reader.at} bytes after the last record", reader.at)
    last_offset = base_offset + last
    return RecordBatch(
        base_offset, last_offset, base_time, max_time, records, leader_epoch, producer, epoch, sequence, attributes
    )


class _Reader:
    """The records of a batch, up to ``end``."""

    def __init__(self, data: Bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def record(self, base_offset: int, base_timestamp: int) -> Record:
        start = self.at
        size = self.varint()
        if not 0 <= size <= self.end - self.at:
            _refuse("length", f"a record of {size} bytes, {self.end - self.at} are left", start)
        inner = _Reader(self.data, self.at, self.at + size)
        attributes = inner.int8()
        timestamp, offset = base_timestamp + inner.varint(64), base_offset + inner.varint()
        key = inner.sized()
        key_at = inner.at - len(key or b"")
        value = inner.sized()
        start = inner.at
        if (count := inner.varint()) < 0:
            _refuse("length", f"{count} headers", start)
        headers = tuple(inner.header() for _ in range(count))
        if inner.at != inner.end:
            _refuse("trailing", f"{inner.end - inner.at} bytes after the record", inner.at)
        self.at = inner.end
        return Record(
            offset, timestamp, key, value, headers, attributes, key_at=key_at, value_at=start - len(value or b"")
        )

    def header(self) -> Header:
        start = self.at
        key = self.sized()
        if key is None:
            _refuse("null", "the key of a header is null", start)
        try:
            return Header(key.decode(), self.sized())
        except UnicodeDecodeError as wrong:
            _refuse("text", "the key of a header is not UTF-8", self.at - len(key) + wrong.start)

    def int8(self) -> int:
        if self.at >= self.end:
            _refuse("truncated", "the record ends", self.at)
        self.at += 1
        return int.from_bytes(self.data[self.at - 1 : self.at], signed=True)

    def varint(self, bits: int = 32) -> int:
        start, number, shift = self.at, 0, 0
        while True:
            byte = self.int8() & 0xFF
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                _refuse("varint", f"a varint of more than {bits} bits", start)
        if number >> bits or (byte == 0 and shift > 7):
            _refuse("varint", "a varint with bits or bytes that its number does not need", start)
        return number >> 1 if number % 2 == 0 else -(number >> 1) - 1

    def sized(self) -> bytes | None:
        """Bytes after their length; None for -1."""
        start = self.at
        size = self.varint()
        if size == -1:
            return None
        if not 0 <= size <= self.end - self.at:
            _refuse("length", f"length {size} runs past the end of the record", start)
        self.at += size
        return self.data[self.at - size : self.at]


def _refuse(kind: str, why: str, offset: int) -> NoReturn:
    raise _refused(kind, why, offset)


def _refused(kind: str, why: str, offset: int | None = None) -> Refused:
    return Refused(kind, why, message=NAME, version=MAGIC, offset=offset)


# -- CRC-32C


def crc32c(data: bytes) -> int:
    """The Castagnoli CRC (polynomial 0x1edc6f41, reflected), as ``java.util.zip.CRC32C``."""
    crc, table = 0xFFFF_FFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFF_FFFF


def _table() -> Iterator[int]:
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F6_3B78 if number & 1 else 0)
        yield number


TABLE: Final = tuple(_table())
