"""What was read in the log directory of a broker, what was not, and where each thing is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kipcheck.conformance.log_directory.group_state import GroupState


@dataclass(frozen=True, slots=True)
class Place:
    file: Path
    offset: int | None = None
    """In bytes; None: the whole file or folder."""

    def __str__(self) -> str:
        return str(self.file) if self.offset is None else f"{self.file} at byte {self.offset}"


class Kind(StrEnum):
    """What decides whether a release reads a format."""

    FILE = "file"
    """A file beside a log."""
    BATCH = "batch"
    QUORUM = "quorum"
    """``meta.properties``, ``quorum-state``."""
    METADATA = "metadata"
    """A record of the metadata log."""
    CONTROL = "control"
    """A control record of the metadata log."""
    GROUPS = "groups"
    TRANSACTIONS = "transactions"
    SHARES = "shares"


@dataclass(frozen=True, slots=True, order=True)
class Format:
    name: str
    version: int
    kind: Kind
    type: int = -1
    """Of a record."""


@dataclass(slots=True)
class Count:
    first: Place
    number: int = 1


class Source(StrEnum):
    """Where a level is recorded."""

    BOOTSTRAP = "bootstrap.checkpoint"
    CHECKPOINT = "checkpoint"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a feature that a node reads when it starts: not only the newest one counts."""

    feature: str
    level: int
    source: Source
    place: Place
    data: bytes = b""
    """The message; empty for kraft.version, which a control record has."""


@dataclass(slots=True)
class MetadataLog:
    """The metadata log, as a node loads it: the newest checkpoint, and the log from the end of it on."""

    checkpoint: Path | None = None
    """The newest one; None without any."""
    end: int = 0
    """The first offset that the checkpoint does not contain."""
    older: int = 0
    """Records before that offset, which no node reads again."""
    voters: frozenset[int] | None = None
    """Of the newest VotersRecord."""


@dataclass(slots=True)
class Contents:
    folder: Path
    clean: bool
    """Whether the broker stopped cleanly: ``.kafka_cleanshutdown`` is there."""
    formats: dict[Format, Count] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    """Each with file, offset and reason. What follows in the same file is not read."""
    tails: list[str] = field(default_factory=list)
    """Incomplete ends of logs, which the recovery of a broker that was killed cuts off."""
    unknown: dict[str, Count] = field(default_factory=dict)
    """Files, folders and records that kipcheck does not know: no release has a verdict then."""
    unread: dict[str, Count] = field(default_factory=dict)
    """What kipcheck knows and cannot read, such as compressed records: no release has a verdict then."""
    skipped: dict[str, int] = field(default_factory=dict)
    """What is not read since it does not decide whether a release opens the directory."""
    levels: list[Level] = field(default_factory=list)
    epochs: list[str] = field(default_factory=list)
    """Leader epochs of batches that the checkpoint beside them does not have."""
    properties: Mapping[str, Any] | None = None
    quorum: Mapping[str, Any] | None = None
    metadata: MetadataLog | None = None
    groups: GroupState = field(default_factory=GroupState)

    def add(self, format: Format, place: Place) -> None:
        _count(self.formats, format, place)

    def not_known(self, what: str, place: Place) -> None:
        _count(self.unknown, what, place)

    def not_read(self, what: str, place: Place) -> None:
        _count(self.unread, what, place)

    def skip(self, what: str, number: int = 1) -> None:
        self.skipped[what] = self.skipped.get(what, 0) + number

    @property
    def kraft(self) -> bool:
        return self.metadata is not None or bool(self.properties and self.properties["version"])

    @property
    def votes(self) -> bool | None:
        """Whether the node is a voter of the quorum; None where no file says so."""
        number = (self.properties or {}).get("nodeId")
        static = (self.quorum or {}).get("currentVoters")
        voters = frozenset(static) if static else self.metadata and self.metadata.voters
        return None if number is None or not voters else number in voters


def _count(counts: dict[Any, Count], key: Any, place: Place) -> None:
    if found := counts.get(key):
        found.number += 1
    else:
        counts[key] = Count(place)
