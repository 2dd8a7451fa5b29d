"""Reads the metadata log of KRaft as a node loads it: the newest checkpoint, and the log from the end of it on.

Records before that do not count: a node never replays them again. A record that was followed by another one does: a
node replays both (classes ``KafkaMetadataLog`` and ``FeatureControlManager``). ``bootstrap.checkpoint`` is read at
every start, whatever is in the log (class ``BootstrapDirectory``).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.log_directory import logs
from kipcheck.conformance.log_directory.contents import Contents, Format, Kind, Level, MetadataLog, Place, Source
from kipcheck.conformance.log_directory.logs import EpochStarts, decoded
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT
from kipcheck.conformance.wire import metadata_records
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.metadata_records import FEATURE, Frame
from kipcheck.conformance.wire.record_batches import Record
from kipcheck.conformance.wire.schema import spec

TOPIC: Final = "__cluster_metadata"
BOOTSTRAP: Final = "bootstrap.checkpoint"
CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
PREVIEW: Final = edition(f"apache@{span('kraft-preview').rpartition('-')[2]}")
"""Its layout of FeatureLevelRecord is another one."""
DECODED: Final = (FEATURE, "NoOpRecord")
FOOTER: Final = "SnapshotFooterRecord"


def bootstrap(found: Contents, file: Path) -> None:
    _checkpoint(found, file, Source.BOOTSTRAP)


def partition(found: Contents, folder: Path, segments: Sequence[Path], epochs: EpochStarts) -> None:
    """Reads the folder of the metadata log. ``segments``: in the order of their offsets."""
    names = {each: match for each in folder.iterdir() if (match := CHECKPOINT.fullmatch(each.name)) and each.is_file()}
    newest = max(names, key=lambda each: each.name, default=None)
    log = found.metadata = MetadataLog(newest, int(names[newest][1]) if newest else 0)
    if newest is not None:
        _checkpoint(found, newest, Source.CHECKPOINT)
    if len(names) > 1:
        found.skip("older checkpoints of the metadata log", len(names) - 1)
    if segments and (start := logs.base_offset(segments[0])) > log.end:
        found.damage.append(f"{folder}: the log begins at offset {start}, and no checkpoint has what was before")
    for file in segments:
        for batch in decoded(found, file, file == segments[-1], epochs):
            for record in batch.records:
                if record.offset < log.end:
                    log.older += 1
                elif not _record(found, file, record, batch.control, Source.LOG):
                    return


def _checkpoint(found: Contents, file: Path, source: Source) -> None:
    ended, damage = False, len(found.damage)
    for batch in decoded(found, file, last=False):
        for record in batch.records:
            if not _record(found, file, record, batch.control, source):
                return
            ended = batch.control and metadata_records.control_name(record) == FOOTER
    if not ended and len(found.damage) == damage:
        found.damage.append(f"{Place(file, file.stat().st_size)}: the checkpoint ends without a {FOOTER}")


def _record(found: Contents, file: Path, record: Record, control: bool, source: Source) -> bool:
    """Whether it could be read."""
    try:
        if control:
            _control(found, file, record, source)
        else:
            _data(found, file, record, source)
    except Refused as wrong:
        found.damage.append(f"{Place(file, record.value_at + (wrong.offset or 0))}: {wrong.message}: {wrong.why}")
        return False
    return True


def _control(found: Contents, file: Path, record: Record, source: Source) -> None:
    place = Place(file, record.value_at)
    name, version, value = metadata_records.control_value(record)
    found.add(Format(name, version, Kind.CONTROL, metadata_records.control_type(record)), place)
    if value is None:
        found.not_known(f"{name} {version}", place)
    elif name == "KRaftVersionRecord":
        found.levels.append(Level(KRAFT, value["kRaftVersion"], source, place))
    elif name == "VotersRecord" and found.metadata:
        found.metadata.voters = frozenset(each["voterId"] for each in value["voters"])


def _data(found: Contents, file: Path, record: Record, source: Source) -> None:
    data, place = record.value or b"", Place(file, record.value_at)
    frame = metadata_records.frame(data)
    name = metadata_records.names("metadata").get(frame.type, f"metadata record {frame.type}")
    found.add(Format(name, frame.version, Kind.METADATA, frame.type), place)
    if not metadata_records.is_known("metadata", frame.type, frame.version):
        found.not_known(f"{name} {frame.version}", place)
    elif name in DECODED:
        _decoded(found, name, frame, data[frame.at :], source, place)
    else:
        found.skip("contents of records of the metadata log that are no levels of features")


def _decoded(found: Contents, name: str, frame: Frame, data: bytes, source: Source, place: Place) -> None:
    """Errors: ``Refused``, with the offset in the value of the record."""
    try:
        value = spec(APACHE, name).at(frame.version).decode(data)
    except Refused as wrong:
        if name != FEATURE or not _is_preview(frame.version, data):
            raise wrong.moved(frame.at) from None
        found.not_read(f"{FEATURE} of a preview of KRaft ({span('kraft-preview')})", place)
        return
    if name == FEATURE:
        found.levels.append(Level(value["name"], value["featureLevel"], source, place, data))


def _is_preview(version: int, data: bytes) -> bool:
    try:
        spec(PREVIEW, FEATURE).at(version).decode(data)
    except Refused:
        return False
    return True
