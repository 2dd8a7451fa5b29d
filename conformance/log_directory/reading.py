"""Reads the log directory of a broker. Nothing is written.

The records of the topics that a node loads itself are decoded: those of coordinators, and the metadata log. Of other
topics the heads of batches are read. Each file and folder that is not read is counted.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.log_directory import logs, metadata_log
from kipcheck.conformance.log_directory.contents import Contents, Format, Kind, Place
from kipcheck.conformance.log_directory.logs import EpochStarts
from kipcheck.conformance.wire import coordinator_records, log_files, quorum_files
from kipcheck.conformance.wire.coordinator_records import GROUPS, SHARES, STABLE, TRANSACTIONS
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import RecordBatch

CLEAN: Final = ".kafka_cleanshutdown"
UNREAD: Final = (".lock", CLEAN)
"""Files whose contents no broker needs."""
SEGMENT: Final = re.compile(r"\d{20}\.log")
INDEX: Final = re.compile(r"\d{20}\.(index|timeindex|txnindex)")
LEFT: Final = (".tmp", ".deleted", ".cleaned", ".part")
"""Ends of names that brokers give to what they have not finished, or are about to delete. They remove these."""
SWAP: Final = ".swap"
"""The end of the name of a compacted segment, which a broker puts into its place when it starts."""
PARTITION: Final = re.compile(r"(?P<topic>.+)-(?P<number>\d+)(?:\.[0-9a-f]{32}-(?P<state>delete|stray|future))?")
KINDS: Final[Mapping[str, Kind]] = {GROUPS: Kind.GROUPS, TRANSACTIONS: Kind.TRANSACTIONS, SHARES: Kind.SHARES}
DECODED: Final = (*KINDS, metadata_log.TOPIC)
Starts = Mapping[tuple[str, int], int]
"""Topic and partition -> where its log begins."""


def read(folder: Path) -> Contents:
    """Errors: NotADirectoryError, and LookupError for a directory that is not one of a broker."""
    if not folder.is_dir():
        raise NotADirectoryError(folder)
    inside = sorted(folder.iterdir())
    folders = [each for each in inside if each.is_dir()]
    if quorum_files.PROPERTIES not in {each.name for each in inside} and not any(map(_segments, folders)):
        raise LookupError(f"{folder} is no log directory: it has no meta.properties, and no folder with a log")
    found = Contents(folder, clean=(folder / CLEAN).is_file())
    starts: dict[tuple[str, int], int] = {}
    for file in (each for each in inside if not each.is_dir()):
        value = _file(found, file)
        if file.name == "log-start-offset-checkpoint" and value:
            starts = {(each["topic"], each["partition"]): each["offset"] for each in value["entries"]}
    for each in folders:
        _partition(found, each, starts)
    return found


def _segments(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if SEGMENT.fullmatch(each.name) and each.is_file())


def _file(found: Contents, file: Path) -> Mapping[str, Any] | None:
    """The value of a file in the directory, or beside a log; None for one that has none, or is damaged."""
    if not file.is_file():
        found.not_known(f"{file.name}, which is no file", Place(file))
    elif file.name == metadata_log.BOOTSTRAP:
        metadata_log.bootstrap(found, file)
    elif file.name == quorum_files.PROPERTIES:
        found.properties = _quorum_file(found, file)
    elif file.name == quorum_files.QUORUM:
        found.quorum = _quorum_file(found, file)
    elif kind := log_files.kind_of(file.name):
        return _log_file(found, file, kind)
    elif file.name.endswith(SWAP):
        found.not_read("segments that recovery puts into their place (.swap)", Place(file))
    elif file.name.endswith(LEFT):
        found.skip("files that are not finished, or about to be deleted")
    elif INDEX.fullmatch(file.name):
        found.skip("indexes")
    elif file.name not in UNREAD:
        found.not_known(f"file {file.name}", Place(file))
    return None


def _quorum_file(found: Contents, file: Path) -> Mapping[str, Any] | None:
    value = _value(found, file, lambda data: quorum_files.decode(file.name, data))
    if value is not None:
        found.add(Format(file.name, value["version"], Kind.QUORUM), Place(file, 0))
        if value["version"] not in range(quorum_files.KNOWN[file.name] + 1):
            found.not_known(f"{file.name} {value['version']}", Place(file))
    return value


def _log_file(found: Contents, file: Path, kind: str) -> Mapping[str, Any] | None:
    """A checkpoint without contents has no entries, and no version: as a broker creates it."""
    value = _value(found, file, lambda data: log_files.decode(kind, data, lenient=data.strip() in log_files.NO_ENTRIES))
    if value is not None and file.stat().st_size:
        found.add(Format(kind, value["version"], Kind.FILE), Place(file, 0))
    return value


def _value(found: Contents, file: Path, decode: Callable[[bytes], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    try:
        return decode(file.read_bytes())
    except OSError as wrong:
        found.damage.append(unreadable(wrong, file))
    except Refused as wrong:
        found.damage.append(f"{file}: {wrong}")
    return None


def _partition(found: Contents, folder: Path, starts: Starts) -> None:
    named = PARTITION.fullmatch(folder.name)
    if named is None:
        found.not_known(f"folder {folder.name}", Place(folder))
    elif named["state"] in ("delete", "stray"):
        found.skip(f"folders of partitions to be deleted (-{named['state']})")
    else:
        segments = _segments(folder)
        if not segments:
            found.not_known("partition folders without a log", Place(folder))
        begins = starts.get((named["topic"], int(named["number"])), 0)
        epochs = EpochStarts(max(begins, *(logs.base_offset(each) for each in segments[:1]), 0))
        checkpoint = _beside(found, folder, segments)
        _log(found, named["topic"], folder, segments, epochs)
        if checkpoint is not None:
            found.epochs += epochs.missing(checkpoint)


def _beside(found: Contents, folder: Path, segments: list[Path]) -> list[Mapping[str, Any]] | None:
    """Reads the files beside a log. The entries of ``leader-epoch-checkpoint``; None if it is damaged."""
    entries: list[Mapping[str, Any]] | None = []
    for file in sorted(folder.iterdir()):
        if file in segments or (metadata_log.CHECKPOINT.fullmatch(file.name) and file.is_file()):
            continue
        value = _file(found, file)
        if log_files.kind_of(file.name) == log_files.EPOCHS:
            entries = None if value is None else value["entries"]
    return entries


def _log(found: Contents, topic: str, folder: Path, segments: list[Path], epochs: EpochStarts) -> None:
    if topic == metadata_log.TOPIC:
        metadata_log.partition(found, folder, segments, epochs)
        return
    for file in segments:
        if topic in KINDS:
            for batch in logs.decoded(found, file, file == segments[-1], epochs):
                if not _coordinator_records(found, topic, file, batch):
                    break
        else:
            for _, head in logs.heads(found, file, file == segments[-1]):
                epochs.add(head, file)
                found.skip("batches of topics, but for their heads")


def _coordinator_records(found: Contents, topic: str, file: Path, batch: RecordBatch) -> bool:
    """Whether the records could be read."""
    if batch.control:
        if topic == GROUPS:
            found.groups.end(batch, file)
        return True
    for record in batch.records:
        try:
            read = coordinator_records.decode(topic, record)
        except Refused as wrong:
            place = Place(file, wrong.offset or record.key_at)
            if wrong.message.startswith((*STABLE, "record")):
                found.damage.append(f"{place}: {wrong.message}{f' / {wrong.path}' if wrong.path else ''}: {wrong.why}")
                return False
            found.not_read(f"{wrong.message} in the layout of a preview", place)
            continue
        if not read.known:
            found.not_known(f"{topic}: {read.name}", Place(file, record.key_at))
        if read.version is not None:
            found.add(Format(read.format, read.version, KINDS[topic], read.type), Place(file, record.value_at))
        if topic == GROUPS:
            found.groups.add(batch, record, read, file)
    return True
