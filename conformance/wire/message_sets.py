"""Message sets (magic 0 and 1): what the records of Fetch 0 to 3 and Produce 0 to 2 consist of.

=============  =======================================================================================
bytes          field
=============  =======================================================================================
int64, int32   offset; bytes that follow the length
uint32, int8   CRC-32 of all that follows it; magic, 0 or 1
int8           attributes: compression (bits 0-2), with magic 1 log append time (3)
int64          with magic 1: the timestamp, ms since 1970
bytes, bytes   key and value, each after its length, an int32; a length of -1 is null
=============  =======================================================================================

A set has no length and no end of its own: it may stop inside a message, which readers leave out. A compressed message
has a set in its value; these are not read.

Source: KIP-32; classes ``LegacyRecord`` and ``AbstractLegacyRecordBatch``.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Final

from kipcheck.conformance.wire.errors import Entries, Refused
from kipcheck.conformance.wire.record_batches import COMPRESSION, OVERHEAD, Head, Record, head

NAME: Final = "MessageSet"
CRC: Final = 4
NO_TIMESTAMP: Final = -1


def encode(records: Iterable[Record], magic: int) -> bytes:
    """Headers are left out, and with magic 0 timestamps. Errors: ``Refused`` for a number that is out of range."""
    try:
        return b"".join(_message(each, magic) for each in records)
    except struct.error as wrong:
        raise Refused("range", str(wrong), message=NAME, version=magic) from None


def _message(record: Record, magic: int) -> bytes:
    timestamp = struct.pack(">q", record.timestamp) if magic else b""
    body = bytes((magic, 0)) + timestamp + _bytes(record.key) + _bytes(record.value)
    return struct.pack(">qiI", record.offset, CRC + len(body), zlib.crc32(body)) + body


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def decode(data: bytes, entries: Entries | None = None) -> tuple[Record, ...]:
    """The records of whole messages; one that is cut off at the end is left out.

    ``entries``: those that are accepted; more are ``TooManyEntries``. Errors: ``Refused`` with the offset in ``data``:
    class ``version`` for another magic, ``checksum`` for a wrong CRC; NotImplementedError for a compressed message.
    """
    found, at = [], 0
    while whole := head(data, at):
        if entries is not None:
            entries.take(1)
        found.append(_record(data, whole))
        at = whole.end
    return tuple(found)


def _record(data: bytes, message: Head) -> Record:
    at, magic = message.at + OVERHEAD + CRC, message.magic
    if magic > 1:
        raise _refused("version", f"magic {magic} where 0 or 1 belongs", magic, at)
    crc = int.from_bytes(data[at - CRC : at], "big")
    if (found := zlib.crc32(data[at : message.end])) != crc:
        raise _refused("checksum", f"CRC {crc:08x} where the bytes have {found:08x}", magic, at - CRC)
    if message.attributes & COMPRESSION:
        raise NotImplementedError(f"compression {message.attributes & COMPRESSION} of messages")
    timestamp = struct.unpack_from(">q", data, at + 2)[0] if magic else NO_TIMESTAMP
    key, at = _sized(data, at + (10 if magic else 2), message)
    value, at = _sized(data, at, message)
    if at != message.end:
        raise _refused("trailing", f"{message.end - at} bytes after the value", magic, at)
    return Record(message.base_offset, timestamp, key, value)


def _sized(data: bytes, at: int, message: Head) -> tuple[bytes | None, int]:
    """Bytes after their length, None for -1; and the offset after them."""
    start, end = at + 4, message.end
    size = int.from_bytes(data[at:start], "big", signed=True)
    if size == -1 and start <= end:
        return None, start
    if not 0 <= size <= end - start:
        raise _refused("length", f"length {size} runs past the end of the message", message.magic, at)
    return data[start : start + size], start + size


def _refused(kind: str, why: str, magic: int, offset: int) -> Refused:
    return Refused(kind, why, message=NAME, version=magic, offset=offset)
