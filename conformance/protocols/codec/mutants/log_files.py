"""Codecs of the files beside a log with one planted defect each."""

from typing import Any

from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.log_files import EPOCHS, PRODUCER_FIELDS, SNAPSHOT, VERSIONS, encode

PLACE = 30

Value = dict[str, Any]


@mutant("log-files/flaws", "log-files/refuses", "ProducerSnapshot", 1, ...)
class IgnoresChecksums(ReferenceCodec):
    """The checksum of a producer snapshot is not compared."""

    def read(self, layout: Layout, data: bytes) -> Value:
        if layout.message == SNAPSHOT and data.startswith(b"\0\1") and len(data) >= 10:
            rows = max(0, len(data) - 10) // 54
            return {"version": 1, "producerEntries": [dict.fromkeys(PRODUCER_FIELDS, 0)] * rows}
        return super().read(layout, data)


@mutant("log-files/flaws", "log-files/refuses", "LeaderEpochCheckpoint", 0, ...)
class IgnoresCounts(ReferenceCodec):
    """The count of a checkpoint is not compared with its lines."""

    def read(self, layout: Layout, data: bytes) -> Value:
        if layout.message == EPOCHS and data.startswith(b"0\n"):
            lines = data.split(b"\n")
            data = b"\n".join([lines[0], b"%d" % max(0, len(lines) - 3), *lines[2:]])
        return super().read(layout, data)


@mutant("log-files/round-trip", "log-files/reads", "LeaderEpochCheckpoint", 0, ...)
class ForgetsTheFirstEpoch(ReferenceCodec):
    """The first line of a checkpoint is not read."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        return {**value, "entries": value["entries"][1:]} if layout.message == EPOCHS else value


@mutant("log-files/round-trip", "log-files/writes", "ProducerSnapshot", 1, ...)
class ForgetsTransactions(ReferenceCodec):
    """A snapshot has no offsets at which transactions began."""

    def write(self, layout: Layout, value: Value) -> bytes:
        if layout.message != SNAPSHOT:
            return super().write(layout, value)
        entries = [{**each, "currentTxnFirstOffset": -1} for each in value["producerEntries"]]
        return encode(SNAPSHOT, {"version": VERSIONS[SNAPSHOT], "producerEntries": entries})
