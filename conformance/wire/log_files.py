"""The files beside a log of a broker: producer snapshots and checkpoints, read and written as brokers do.

=====================  ===============================================================  =========================
file                   contents                                                         class
=====================  ===============================================================  =========================
``OFFSET.snapshot``    int16 version 1, uint32 CRC-32C of what follows, int32 count,    ``ProducerStateManager``
                       and for each producer: int64 id, int16 epoch, int32 last
                       sequence, int64 last offset, int32 offset delta, int64
                       timestamp, int32 coordinator epoch, int64 first offset of its
                       transaction (-1: none)
``leader-epoch-        text: version 0, count, a line ``epoch offset`` for each epoch   ``LeaderEpochCheckpoint
checkpoint``                                                                            File``
``*-offset-            text: version 0, count, a line ``topic partition offset`` each   ``OffsetCheckpointFile``
checkpoint``
``partition.metadata`` text: ``version: 0`` and ``topic_id: ID``, in base64             ``PartitionMetadataFile``
=====================  ===============================================================  =========================

The four have had one version each since they exist. What is read here is what brokers read, except that a partition
twice, an epoch or offset that falls, a checkpoint without a count, another key and bytes after the end are refused,
too. A lenient reader takes these as brokers do, and another version of ``partition.metadata``, which is not compared
from 3.7 on.
"""

import base64
import binascii
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NoReturn

from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import crc32c

SNAPSHOT, EPOCHS, CLEANER, METADATA = (
    "ProducerSnapshot", "LeaderEpochCheckpoint", "CleanerCheckpoint", "PartitionMetadata",
)  # fmt: skip
VERSIONS: Final[Mapping[str, int]] = {SNAPSHOT: 1, EPOCHS: 0, CLEANER: 0, METADATA: 0}
IN_MAPS: Final = {SNAPSHOT: ("producerEntries", ("producerId",)), CLEANER: ("entries", ("topic", "partition"))}
PRODUCER: Final = struct.Struct(">qhiqiqiq")
PRODUCER_FIELDS: Final = (
    "producerId", "epoch", "lastSequence", "lastOffset", "offsetDelta", "timestamp", "coordinatorEpoch",
    "currentTxnFirstOffset",
)  # fmt: skip
HEAD: Final = struct.Struct(">hIi")
ENTRIES: Final = 6
"""The offset of the count in a snapshot, the first byte that the checksum covers."""
INT32, INT64 = 2**31, 2**63
NO_ENTRIES: Final = (b"", b"0")
"""A checkpoint that is empty, or has nothing but its version, is read as one without entries."""
TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

Value = dict[str, Any]


def kind_of(name: str) -> str | None:
    """The kind of a file by its name, or None."""
    if re.fullmatch(r"\d{20}\.snapshot", name):
        return SNAPSHOT
    if name == "leader-epoch-checkpoint":
        return EPOCHS
    if name == "partition.metadata":
        return METADATA
    return CLEANER if name.endswith("-checkpoint") and "offset" in name else None


def decode(kind: str, data: bytes, lenient: bool = False) -> Value:
    """The value of a file. Errors: ``Refused``, with path and offset; KeyError for another kind."""
    return _READERS[kind](bytes(data), lenient)


def encode(kind: str, value: Mapping[str, Any]) -> bytes:
    """The bytes of a file. Errors: ``Refused`` for a value that no broker writes; KeyError for another kind."""
    try:
        data = _WRITERS[kind](value)
    except (LookupError, TypeError, ValueError, AttributeError, struct.error) as wrong:
        if isinstance(wrong, Refused):
            raise
        raise Refused("type", f"no such value: {wrong}", message=kind, version=VERSIONS[kind]) from None
    if decode(kind, data) != {**value}:
        raise Refused("type", "the file would have another value", message=kind, version=VERSIONS[kind])
    return data


def in_order(kind: str, value: Any) -> Any:
    """The value with producers and partitions in a fixed order: brokers keep them in maps. Others stay as they are."""
    field, keys = IN_MAPS.get(kind, ("", ()))
    entries = value.get(field) if isinstance(value, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        return value
    return {**value, field: sorted(entries, key=lambda each: [str(each.get(key)) for key in keys])}


def _refuse(kind: str, of: str, why: str, path: str, offset: int) -> NoReturn:
    raise Refused(of, why, message=kind, version=VERSIONS[kind], path=path, offset=offset)


# The producer snapshot


def _read_snapshot(data: bytes, lenient: bool) -> Value:
    if len(data) < HEAD.size:
        _refuse(SNAPSHOT, "truncated", f"{len(data)} bytes, {HEAD.size} are the least", "", len(data))
    version, checksum, count = HEAD.unpack_from(data)
    if version != VERSIONS[SNAPSHOT]:
        _refuse(SNAPSHOT, "version", f"version {version}, brokers know 1", "version", 0)
    needed = HEAD.size + count * PRODUCER.size
    if count < 0 or needed > len(data):
        _refuse(SNAPSHOT, "length", f"count {count} runs past the end of {len(data)} bytes", "producerEntries", ENTRIES)
    if needed < len(data) and not lenient:
        _refuse(SNAPSHOT, "trailing", f"{len(data) - needed} bytes after the last producer", "", needed)
    if crc32c(data[ENTRIES:]) != checksum:
        _refuse(SNAPSHOT, "checksum", f"{checksum:08x}, the bytes have {crc32c(data[ENTRIES:]):08x}", "crc", 2)
    rows = [PRODUCER.unpack_from(data, HEAD.size + place * PRODUCER.size) for place in range(count)]
    return {"version": version, "producerEntries": [dict(zip(PRODUCER_FIELDS, row, strict=True)) for row in rows]}


def _write_snapshot(value: Mapping[str, Any]) -> bytes:
    entries = b"".join(PRODUCER.pack(*(each[name] for name in PRODUCER_FIELDS)) for each in value["producerEntries"])
    body = struct.pack(">i", len(value["producerEntries"])) + entries
    return struct.pack(">hI", value["version"], crc32c(body)) + body


# Text


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    offset: int


def _lines(kind: str, data: bytes) -> list[_Line]:
    found, place = [], 0
    for line in data.split(b"\n"):
        try:
            found.append(_Line(line.removesuffix(b"\r").decode(), place))
        except UnicodeDecodeError as wrong:
            _refuse(kind, "text", "no UTF-8", "", place + wrong.start)
        place += len(line) + 1
    return found[:-1] if found and not found[-1].text else found


def _whole(kind: str, text: str, bound: int, path: str, offset: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not -bound <= int(text) < bound:
        _refuse(kind, "range", f"{text[:40]!r} where a whole number is wanted", path, offset)
    return int(text)


def _rows(kind: str, data: bytes, fields: Mapping[str, int]) -> Iterator[tuple[_Line, list[str]]]:
    """The lines after version and count, each with its words. ``fields``: name -> bound of its number, 0 for text."""
    lines = _lines(kind, data)
    if len(lines) < 2:
        _refuse(kind, "truncated", "version and count are not there", "", len(data))
    version = _whole(kind, lines[0].text, INT32, "version", 0)
    if version != VERSIONS[kind]:
        _refuse(kind, "version", f"version {version}, brokers know 0", "version", 0)
    count = _whole(kind, lines[1].text, INT32, "count", lines[1].offset)
    if count != len(lines) - 2:
        _refuse(kind, "length", f"count {count}, and {len(lines) - 2} lines follow", "count", lines[1].offset)
    for place, line in enumerate(lines[2:]):
        words = line.text.split()
        if len(words) != len(fields):
            wanted = " ".join(fields)
            _refuse(kind, "type", f"{line.text[:60]!r} where {wanted!r} is wanted", f"[{place}]", line.offset)
        yield line, words


def _entries(kind: str, data: bytes, fields: Mapping[str, int]) -> list[tuple[_Line, Value]]:
    found = []
    for place, (line, words) in enumerate(_rows(kind, data, fields)):
        entry: Value = {
            name: _whole(kind, word, bound, f"[{place}].{name}", line.offset) if bound else word
            for (name, bound), word in zip(fields.items(), words, strict=True)
        }
        found.append((line, entry))
    return found


def _read_epochs(data: bytes, lenient: bool) -> Value:
    if lenient and data.strip() in NO_ENTRIES:
        return {"version": VERSIONS[EPOCHS], "entries": []}
    entries = _entries(EPOCHS, data, {"epoch": INT32, "startOffset": INT64})
    for place, ((_, before), (line, each)) in enumerate(() if lenient else pairwise(entries), 1):
        if each["epoch"] <= before["epoch"] or each["startOffset"] < before["startOffset"]:
            _refuse(EPOCHS, "range", "an epoch or offset falls", f"[{place}]", line.offset)
    return {"version": VERSIONS[EPOCHS], "entries": [each for _, each in entries]}


def _read_cleaner(data: bytes, lenient: bool) -> Value:
    if lenient and data.strip() in NO_ENTRIES:
        return {"version": VERSIONS[CLEANER], "entries": []}
    seen = set()
    entries = _entries(CLEANER, data, {"topic": 0, "partition": INT32, "offset": INT64})
    for place, (line, each) in enumerate(entries):
        key = each["topic"], each["partition"]
        if key in seen and not lenient:
            _refuse(CLEANER, "unknown-field", f"partition {key[0]}-{key[1]} twice", f"[{place}]", line.offset)
        seen.add(key)
    return {"version": VERSIONS[CLEANER], "entries": [each for _, each in entries]}


def _write_lines(value: Mapping[str, Any]) -> bytes:
    entries = value["entries"]
    rows = [value["version"], len(entries), *(" ".join(map(str, each.values())) for each in entries)]
    return "".join(f"{row}\n" for row in rows).encode()


def _read_metadata(data: bytes, lenient: bool) -> Value:
    lines, found = _lines(METADATA, data), []
    for place, key in enumerate(("version", "topic_id")):
        if place >= len(lines):
            _refuse(METADATA, "truncated", f"the line {key!r} is not there", key, len(data))
        name, separator, text = lines[place].text.partition(":")
        if (name != key and not lenient) or not separator:
            _refuse(
                METADATA, "missing", f"{lines[place].text[:60]!r} where {key!r} is wanted", key, lines[place].offset
            )
        found.append((text.strip(), lines[place].offset))
    if len(lines) > 2 and not lenient:
        _refuse(METADATA, "trailing", "lines after the topic id", "", lines[2].offset)
    version = _whole(METADATA, found[0][0], INT32, "version", found[0][1])
    if version != VERSIONS[METADATA] and not lenient:
        _refuse(METADATA, "version", f"version {version}, brokers know 0", "version", 0)
    topic, offset = found[1]
    if not _is_topic_id(topic):
        _refuse(METADATA, "text", f"{topic[:40]!r} is no topic id", "topic_id", offset)
    return {"version": version, "topicId": topic}


def _is_topic_id(text: str) -> bool:
    """16 bytes in base64 without padding, not all zero."""
    try:
        return bool(TOPIC_ID.fullmatch(text)) and any(base64.urlsafe_b64decode(f"{text}=="))
    except binascii.Error:
        return False


def _write_metadata(value: Mapping[str, Any]) -> bytes:
    return f"version: {value['version']}\ntopic_id: {value['topicId']}".encode()


_READERS: Final[Mapping[str, Callable[[bytes, bool], Value]]] = {
    SNAPSHOT: _read_snapshot, EPOCHS: _read_epochs, CLEANER: _read_cleaner, METADATA: _read_metadata,
}  # fmt: skip
_WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {
    SNAPSHOT: _write_snapshot, EPOCHS: _write_lines, CLEANER: _write_lines, METADATA: _write_metadata,
}  # fmt: skip
