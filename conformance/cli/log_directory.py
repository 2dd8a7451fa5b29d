"""Reads the log directory of a broker: the formats of its records and files, and which releases read all of them.

Nothing is written. The records are those of __consumer_offsets and __transaction_state, the files those beside a log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.core.release import Release, lines, releases
from kipcheck.conformance.core.releases_table import span
from kipcheck.conformance.wire import log_files, record_batches
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.record_batches import Record
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.conformance.wire.stored_records import newest_readable

GROUPS, TRANSACTIONS = "__consumer_offsets-", "__transaction_state-"
OLD_KEYS: Final = ("OffsetCommit", "GroupMetadata", "TransactionLog")
"""Records that every coordinator loads; those of other kinds were unreadable before KIP-915."""


@dataclass(frozen=True, slots=True)
class Place:
    file: Path
    offset: int
    """In bytes."""

    def __str__(self) -> str:
        return f"{self.file} at byte {self.offset}"


@dataclass(slots=True)
class Contents:
    """The formats of a directory."""

    first: dict[tuple[str, int], Place] = field(default_factory=dict)
    """Format and version -> where it is first."""
    count: dict[tuple[str, int], int] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """Files that cannot be read, each with the reason."""

    def add(self, format: str, version: int, place: Place) -> None:
        self.first.setdefault((format, version), place)
        self.count[format, version] = self.count.get((format, version), 0) + 1

    def unread(self, release: Release) -> list[tuple[str, int]]:
        """The formats that a release cannot read."""
        return [each for each in sorted(self.first) if not _reads(release, *each)]


def _reads(release: Release, format: str, version: int) -> bool:
    known = format.startswith(OLD_KEYS) or format in log_files.VERSIONS or format == record_batches.NAME
    if not known and release in releases(span("skips-unknown-group-keys")):
        return True
    newest = newest_readable(format, release) if known else None
    if newest is None:
        # A release without such files, or without transactions, does not look for them.
        return format in log_files.VERSIONS or format.startswith("TransactionLog")
    return version <= newest


def read(folder: Path) -> Contents:
    """Errors: NotADirectoryError, and LookupError for a directory that is none of a broker."""
    if not folder.is_dir():
        raise NotADirectoryError(folder)
    found = Contents()
    partitions = [each for each in sorted(folder.iterdir()) if each.is_dir() and any(each.glob("*.log"))]
    if not partitions and not (folder / "meta.properties").is_file():
        raise LookupError(f"{folder} is no log directory: it has no meta.properties, and no folder with a log")
    for file in sorted([*folder.glob("*"), *(each for one in partitions for each in one.iterdir())]):
        kind = log_files.kind_of(file.name)
        if kind is not None and file.is_file():
            _file(found, kind, file)
        elif file.suffix == ".log" and file.parent.name.startswith((GROUPS, TRANSACTIONS)):
            _segment(found, file)
    return found


def _file(found: Contents, kind: str, file: Path) -> None:
    try:
        data = file.read_bytes()
        if not data and kind == log_files.CLEANER:
            return  # as a broker creates it
        found.add(kind, log_files.decode(kind, data)["version"], Place(file, 0))
    except (OSError, Refused) as wrong:
        found.damage.append(f"{file}: {wrong}")


def _segment(found: Contents, file: Path) -> None:
    """Records of a coordinator. What follows a damaged batch is not read."""
    place = 0
    try:
        data = file.read_bytes()
        while place < len(data) and data[place : place + record_batches.LEAST].strip(b"\0"):
            end = place + record_batches.OVERHEAD + int.from_bytes(data[place + 8 : place + 12], "big")
            for batch in record_batches.decode(data[place:end]):
                found.add(record_batches.NAME, record_batches.MAGIC, Place(file, place))
                if not batch.control:
                    for record in batch.records:
                        _record(found, record, Place(file, place))
            place = end
    except NotImplementedError as compressed:
        found.damage.append(f"{Place(file, place)}: {compressed}")
    except OSError as wrong:
        found.damage.append(f"{file}: {wrong}")
    except Refused as wrong:
        at = place + (wrong.offset or 0)
        found.damage.append(f"{Place(file, at)}: {wrong.why}")


def _record(found: Contents, record: Record, place: Place) -> None:
    of = TRANSACTIONS if place.file.parent.name.startswith(TRANSACTIONS) else GROUPS
    if record.key is None or len(record.key) < 2:
        found.damage.append(f"{place}: a record without the version of its key")
        return
    key = int.from_bytes(record.key[:2], "big", signed=True)
    name = _names(of).get(key, f"record {key}")
    if record.value is not None:
        found.add(f"{name}Value" if key in _names(of) else name, int.from_bytes(record.value[:2], "big"), place)


@cache
def _names(of: str) -> Mapping[int, str]:
    """Version of the key -> the record, as messages are called."""
    if of == TRANSACTIONS:
        return {0: "TransactionLog"}
    newest = edition("apache")
    keys = [each for each in messages(newest) if each.endswith("Key") and each != "TransactionLogKey"]
    return {layout.version: each.removesuffix("Key") for each in keys for layout in spec(newest, each)}


def verdicts(found: Contents, wanted: tuple[Release, ...]) -> Mapping[str, list[tuple[str, int]]]:
    """By release the formats that it cannot read; without a release every line."""
    asked = wanted or tuple(map(Release.parse, lines()))
    return {str(each): found.unread(each) for each in asked}


def text(folder: Path, found: Contents, wanted: tuple[Release, ...]) -> Iterator[str]:
    yield f"{folder}: {len(found.first)} formats"
    width = max((len(format) for format, _ in found.first), default=0)
    for (format, version), place in sorted(found.first.items()):
        yield f"  {format:<{width}}  version {version}  {found.count[format, version]:>6} times  first: {place}"
    yield from (f"damaged: {each}" for each in found.damage)
    judged = verdicts(found, wanted)
    able = [release for release, unread in judged.items() if not unread]
    if wanted:
        yield from (f"{release} reads all of it" for release in able)
    else:
        yield f"read by {', '.join(able) or 'no release'}"
    for release, unread in judged.items():
        for format, version in unread if wanted else ():
            yield f"{release} cannot read {format} {version}: {found.first[format, version]}"


def as_json(folder: Path, found: Contents, wanted: tuple[Release, ...]) -> Mapping[str, Any]:
    return {
        "directory": str(folder),
        "formats": [
            {"format": format, "version": version, "count": found.count[format, version],
             "file": str(place.file), "offset": place.offset}
            for (format, version), place in sorted(found.first.items())
        ],
        "damage": found.damage,
        "releases": {
            release: {"reads": not unread, "unread": [{"format": format, "version": version}
                                                       for format, version in unread]}
            for release, unread in verdicts(found, wanted).items()
        },
    }  # fmt: skip
