"""The files beside a log as layouts of an edition."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import NEWEST, Release
from kipcheck.conformance.wire import log_files
from kipcheck.conformance.wire.schema import Layout
from kipcheck.conformance.wire.stored_records import newest_readable


class LogFileCodec:
    """The codec of a file, with the interface of a layout's codec. Its values are JSON already."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Errors: ``Refused``."""
        return log_files.encode(self._kind, value)

    def decode(self, data: bytes, /, *, lenient: bool = False) -> dict[str, Any]:
        """Errors: ``Refused``, with path and offset."""
        return log_files.decode(self._kind, data, lenient)

    def decode_lenient(self, data: bytes) -> dict[str, Any]:
        """As brokers read it. Errors: ``Refused``."""
        return log_files.decode(self._kind, data, lenient=True)

    def to_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return dict(value)

    def from_json(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return dict(value)


@dataclass(frozen=True)
class LogFile(Layout):
    """A file of a log directory."""

    @cached_property
    def codec(self) -> LogFileCodec:  # type: ignore[override]
        return LogFileCodec(self.message)


@dataclass(frozen=True, slots=True)
class LogFileSpec:
    """A kind of file, with the only version that it has."""

    name: str
    edition: Edition

    @property
    def versions(self) -> tuple[int, ...]:
        return (log_files.VERSIONS[self.name],)

    def at(self, version: int) -> LogFile:
        """Errors: LookupError with the existing version."""
        if version not in self.versions:
            raise LookupError(f"{self.name} has no version {version} in {self.edition}; it has {self.versions[0]}")
        return LogFile(self.name, version, False, (), edition=str(self.edition))


def log_file_spec(edition: Edition, message: str) -> LogFileSpec:
    """Errors: LookupError for a draft, and for a release from before the file."""
    if edition.standing is not Standing.RELEASED:
        raise LookupError(f"{edition} declares no files of log directories: use apache, or apache@{NEWEST}")
    if message not in log_file_messages(edition):
        raise LookupError(f"{edition} has no {message}")
    return LogFileSpec(message, edition)


def log_file_messages(edition: Edition) -> tuple[str, ...]:
    """The kinds of files that the edition has."""
    if edition.standing is not Standing.RELEASED:
        return ()
    at = Release.parse(edition.release)
    return tuple(each for each in log_files.VERSIONS if newest_readable(each, at) is not None)
