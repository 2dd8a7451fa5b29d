"""Reads the segments of a partition: heads of all batches, and the records of topics that a node loads itself."""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.log_directory.contents import Contents, Format, Kind, Place
from kipcheck.conformance.wire import record_batches
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import MAGIC, Bytes, Head, RecordBatch

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
OFFSET: Final = 20
"""Digits of the offset in the name of a segment."""


def base_offset(file: Path) -> int:
    """The first offset of a segment, or that of a producer snapshot, from the name."""
    return int(file.name[:OFFSET])


@dataclass(slots=True)
class EpochStarts:
    """The first offset of each leader epoch in the batches of a partition."""

    log_start: int
    """Batches before it may still be in the first segment, and count no more."""
    found: dict[int, tuple[int, Place]] = field(default_factory=dict)

    def add(self, head: Head, file: Path) -> None:
        if head.leader_epoch >= 0 and head.last_offset >= self.log_start:
            first = max(head.base_offset, self.log_start)
            self.found.setdefault(head.leader_epoch, (first, Place(file, head.at)))

    def missing(self, checkpoint: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """What the entries of ``leader-epoch-checkpoint`` lack of the epochs in the batches (KAFKA-10432)."""
        starts = {each["epoch"]: each["startOffset"] for each in checkpoint}
        for epoch, (offset, place) in sorted(self.found.items()):
            if epoch not in starts:
                why = "leader-epoch-checkpoint does not have it (KAFKA-10432)"
                yield f"{place}: leader epoch {epoch} begins at offset {offset}, and {why}"
            elif starts[epoch] > offset:
                why = f"leader-epoch-checkpoint has {starts[epoch]}"
                yield f"{place}: leader epoch {epoch} begins at offset {offset}, and {why}"


def heads(found: Contents, file: Path, last: bool) -> Iterator[tuple[Bytes, Head]]:
    """The heads of a segment or checkpoint up to its end, or to the first damage.

    ``last``: whether the recovery of a broker that was killed cuts off an incomplete batch at the end.
    """
    try:
        with file.open("rb") as stream:
            if not stream.seek(0, 2):
                return
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as wrong:
        found.damage.append(unreadable(wrong, file))
        return
    at = 0
    while at < len(data):
        try:
            head = None if _is_zero(data, at) else record_batches.head(data, at)
        except Refused as wrong:
            found.damage.append(f"{Place(file, wrong.offset or at)}: {wrong.why}")
            return
        if head is None:
            _incomplete(found, file, data, at, last)
            return
        found.add(Format(record_batches.NAME, head.magic, Kind.BATCH), Place(file, at))
        yield data, head
        at = head.end


def _is_zero(data: Bytes, at: int) -> bool:
    """Whether nothing but zeros follows, as in a file that a broker allocated before it was killed."""
    return not data[at : at + record_batches.LEAST].strip(b"\0") and not data[at:].strip(b"\0")


def _incomplete(found: Contents, file: Path, data: Bytes, at: int, last: bool) -> None:
    left = len(data) - at
    if last and not found.clean:
        _tail(found, file, at, left)
    elif _is_zero(data, at):
        found.damage.append(f"{Place(file, at)}: {left} zeros where a batch belongs")
    elif left < record_batches.UP_TO_MAGIC:
        found.damage.append(f"{Place(file, at)}: {left} bytes, which are no head of a batch")
    else:
        length = int.from_bytes(data[at + 8 : at + record_batches.OVERHEAD], "big", signed=True)
        after = left - record_batches.OVERHEAD
        found.damage.append(f"{Place(file, at + 8)}: a batch of length {length}, and {after} bytes follow")


def _tail(found: Contents, file: Path, at: int, left: int) -> None:
    found.tails.append(f"{Place(file, at)}: {left} bytes of an incomplete batch")


def decoded(found: Contents, file: Path, last: bool, epochs: EpochStarts | None = None) -> Iterator[RecordBatch]:
    """The batches with their records. A message set before magic 2 and a compressed batch are counted as not read."""
    for data, head in heads(found, file, last):
        if epochs:
            epochs.add(head, file)
        place = Place(file, head.at)
        if head.magic < MAGIC:
            found.not_read(f"message sets of magic {head.magic} in {file.parent.name}", place)
        elif head.compression:
            codec = CODECS[head.compression] if head.compression < len(CODECS) else str(head.compression)
            found.not_read(f"batches compressed with {codec} in {file.parent.name}", place)
        else:
            try:
                batch = record_batches.decode_one(data, head)
            except Refused as wrong:
                if last and not found.clean and head.end == len(data) and wrong.kind == "checksum":
                    _tail(found, file, head.at, len(data) - head.at)
                else:
                    found.damage.append(f"{Place(file, wrong.offset or head.at)}: {wrong.why}")
                return
            yield batch
