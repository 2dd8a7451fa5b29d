"""The topics of a broker on loopback: ids, partitions, and a few records in each."""

import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, final

RECORDS: Final = 10
"""Records of a partition, at offsets 0 to 9."""
LEADER_EPOCH: Final = 0
NAME_LENGTH: Final = 249
MOST_PARTITIONS: Final = 10_000
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_CRC32C_POLYNOMIAL: Final = 0x82F63B78
"""0x1EDC6F41 with its bits reversed."""


@final
@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    id: uuid.UUID
    records: tuple[bytes, ...] = ()
    """Record batches, the same for each partition: one record each."""

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return len(self.records)


@final
@dataclass(slots=True)
class Topics:
    by_name: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[uuid.UUID, Topic] = field(default_factory=dict)

    @classmethod
    def of(cls, wanted: Iterable[tuple[str, int]], records: int = RECORDS) -> "Topics":
        """Topics by name and number of partitions. Their ids depend on their names only."""
        found = cls()
        for name, partitions in wanted:
            id = uuid.uuid5(uuid.NAMESPACE_OID, f"kipcheck/{name}")
            batches = tuple(batch(offset, [f"{name} {offset}".encode()]) for offset in range(records))
            found.by_name[name] = found.by_id[id] = Topic(name, partitions, id, batches)
        return found

    def find(self, name: str | None, id: uuid.UUID | None) -> Topic | None:
        """By name, if there is one, else by id."""
        return self.by_name.get(name) if name else self.by_id.get(id) if id else None

    @property
    def sizes(self) -> dict[str, int]:
        return {each.name: each.partitions for each in self.by_name.values()}


def parse_topic(text: str) -> tuple[str, int]:
    """``t:3``: name and partitions; without a number one partition. Errors: ValueError with the valid form."""
    name, _, number = text.rpartition(":") if ":" in text else (text, "", "1")
    if not name or len(name) > NAME_LENGTH or not _LEGAL.issuperset(name) or name in (".", ".."):
        raise ValueError(f"invalid topic {text!r}: use NAME:PARTITIONS, the name of letters, digits, '.', '_' and '-'")
    if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_PARTITIONS:
        raise ValueError(f"invalid number of partitions in {text!r}: use 1 to {MOST_PARTITIONS}, as in {name}:3")
    return name, int(number)


def batch(base_offset: int, values: Sequence[bytes], timestamp_ms: int = 0) -> bytes:
    """A record batch with magic 2, uncompressed, with records without keys and headers (KIP-98)."""
    records = b"".join(_record(delta, value) for delta, value in enumerate(values))
    no_producer = struct.pack(">qhi", -1, -1, -1)
    last = len(values) - 1
    body = struct.pack(">hiqq", 0, last, timestamp_ms, timestamp_ms) + no_producer
    body += struct.pack(">i", len(values)) + records
    head = struct.pack(">ib", LEADER_EPOCH, 2) + struct.pack(">I", crc32c(body))
    return struct.pack(">qi", base_offset, len(head) + len(body)) + head + body


def _record(delta: int, value: bytes) -> bytes:
    body = b"\0" + _varint(0) + _varint(delta) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    """A zigzag varint."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


@cache
def _crc32c_table() -> tuple[int, ...]:
    """The remainder of each byte."""
    found = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CRC32C_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), as RFC 3720 defines it."""
    value, table = 0xFFFFFFFF, _crc32c_table()
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF
