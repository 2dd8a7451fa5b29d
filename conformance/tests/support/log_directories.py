"""Writes log directories of brokers, as small as a test needs them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.wire import layout, metadata_records, record_batches
from kipcheck.conformance.wire.log_files import EPOCHS, METADATA, encode
from kipcheck.conformance.wire.primitives import uvarint
from kipcheck.conformance.wire.record_batches import CONTROL, TRANSACTIONAL, Record, RecordBatch

SEGMENT = f"{0:020}.log"
KRAFT = b"#\nnode.id=1\ndirectory.id=P5_LQuAbxDQ_Zk8PQ-lXBQ\nversion=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"
ZOOKEEPER = b"#\nbroker.id=1\nversion=0\ncluster.id=ksDSg9ttSJ2E0q6icsdEqA\n"
QUORUM = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
    b'"data_version":0}'
)
TYPES = {name: number for number, name in metadata_records.names("metadata").items()}


def batch(
    offset: int,
    records: Iterable[tuple[bytes | None, bytes | None]],
    *,
    epoch: int = 0,
    producer: int = -1,
    attributes: int = 0,
) -> bytes:
    """A batch of keys and values, with offsets from ``offset`` on."""
    made = tuple(Record(offset + at, 0, key, value) for at, (key, value) in enumerate(records))
    return record_batches.encode(
        RecordBatch(offset, made[-1].offset, 0, 0, made, epoch, producer, attributes=attributes)
    )


def control(offset: int, message: str, value: Mapping[str, Any], version: int = 0) -> bytes:
    """A control batch of the metadata log."""
    number = next(number for number, name in metadata_records.CONTROL.items() if name == message)
    data = layout(APACHE, message, version).encode({"version": version, **value})
    return batch(offset, [(b"\0\0" + number.to_bytes(2, "big"), data)], attributes=CONTROL)


def marker(offset: int, producer: int, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    ends = [(bytes((0, 0, 0, commit)), bytes(6))]
    return batch(offset, ends, producer=producer, attributes=CONTROL | TRANSACTIONAL)


def framed(number: int, version: int, message: bytes) -> bytes:
    return uvarint(metadata_records.FRAME) + uvarint(number) + uvarint(version) + message


def metadata(offset: int, *values: bytes, epoch: int = 1) -> bytes:
    """A batch of framed records."""
    return batch(offset, [(None, each) for each in values], epoch=epoch)


def level(feature: str, number: int) -> bytes:
    message = layout(APACHE, "FeatureLevelRecord", 0).encode({"name": feature, "featureLevel": number})
    return framed(TYPES["FeatureLevelRecord"], 0, message)


def checkpoint(*values: bytes) -> bytes:
    """A checkpoint of the metadata log, with header and footer."""
    return (
        control(0, "SnapshotHeaderRecord", {"lastContainedLogTimestamp": 0})
        + metadata(1, *values)
        + control(1 + len(values), "SnapshotFooterRecord", {})
    )


@dataclass(frozen=True, slots=True)
class LogDirectory:
    folder: Path

    def write(self, path: str, data: bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        return file

    def partition(self, name: str, log: bytes, epochs: Mapping[int, int] | None = None) -> Path:
        """The log of a partition in one segment, with the files beside it. ``epochs``: epoch -> first offset."""
        entries = [{"epoch": epoch, "startOffset": start} for epoch, start in (epochs or {}).items()]
        self.write(f"{name}/leader-epoch-checkpoint", encode(EPOCHS, {"version": 0, "entries": entries}))
        topic = {"version": 0, "topicId": "lv6QZCCBQFysnLmkF7Ckkw"}
        self.write(f"{name}/partition.metadata", encode(METADATA, topic))
        return self.write(f"{name}/{SEGMENT}", log)

    def kraft(self, log: bytes, bootstrap: bytes | None = None, clean: bool = True) -> Path:
        """A node that is broker and controller, with this metadata log in leader epoch 1."""
        self.write("meta.properties", KRAFT)
        if clean:
            self.write(".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":14}')
        if bootstrap is not None:
            self.write("bootstrap.checkpoint", bootstrap)
        self.write("__cluster_metadata-0/quorum-state", QUORUM)
        return self.partition("__cluster_metadata-0", log, {1: 0})
