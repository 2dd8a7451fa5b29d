"""Which version of a coordinator's record, or of a file beside a log, a release writes, and which one it reads.

The inter-broker version (in KRaft metadata.version) selects the version of the records of groups and offsets up to
4.0, and from 4.1.0 on an offset commit is written in its newest version whatever the cluster has finalized. The
table is in ``core/data/releases.toml``; tests compare it with the functions that brokers write and read with.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, total_ordering
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import patches, table
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.schema import spec

LAST: Final = 1 << 16
"""Stands for the last version of a line: ``2.1`` is 2.1-IV2 in the releases of that line."""
NAME: Final = re.compile(r"(0\.\d{1,3}\.\d{1,3}|[1-9]\d{0,3}\.\d{1,3})(?:-IV(\d{1,3})|(?:\.\d{1,3})*)")


@total_ordering
@dataclass(frozen=True, slots=True)
class InterBroker:
    """An inter-broker version or metadata.version."""

    line: tuple[int, ...]
    step: int

    @classmethod
    def parse(cls, text: str) -> "InterBroker":
        """``2.1-IV0``, ``2.1``, ``2.1.0`` as well, ``0.10.1-IV2``. Errors: ValueError."""
        found = NAME.fullmatch(text)
        if found is None:
            raise ValueError(f"invalid inter-broker version {text!r}: use 2.1, 2.1-IV0 or 0.10.2")
        line = tuple(map(int, found[1].split(".")))
        return cls(line, LAST if found[2] is None else int(found[2]))

    @classmethod
    def of(cls, release: Release) -> "InterBroker":
        """The newest one that the release knows, and its default with ZooKeeper."""
        return cls.parse(str(release))

    def first_release(self) -> Release | None:
        """The oldest known release of its line, which may run at this version; None for an unknown line."""
        lines = ((each, Release.parse(each).numbers) for each in patches())
        return next((Release.parse(each) for each, numbers in lines if numbers[: len(self.line)] == self.line), None)

    def __lt__(self, other: "InterBroker") -> bool:
        return (self.line, self.step) < (other.line, other.step)

    def __str__(self) -> str:
        name = ".".join(map(str, self.line))
        return name if self.step == LAST else f"{name}-IV{self.step}"


@cache
def version_counts() -> Mapping[str, int]:
    """Line -> the number of its versions, ``-IV0`` and on; 0: the line alone is a name.

    Some releases know versions of later lines, too, which are for tests.
    """
    found: dict[str, int] = dict(table()["inter-broker-versions"])
    for name in table()["feature-levels"]["metadata-names"]:
        line, _, step = name.partition("-IV")
        found[line] = int(step) + 1
    return found


def messages() -> tuple[str, ...]:
    """The values of records of which the table has the versions."""
    return tuple(table()["records"])


def log_files() -> tuple[str, ...]:
    """The formats of log directories of which the table has the versions: files beside a log, and its batches."""
    return tuple(table()["files"])


def _declared(message: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = table()["records"].get(message) or table()["files"][message]
    return found


def written(
    message: str,
    release: Release,
    inter_broker: InterBroker,
    *,
    expiring: bool = False,
    transactions: int | None = None,
    message_format: InterBroker | None = None,
) -> int | None:
    """The version that a broker of the release writes; None before there was such a record or file.

    ``expiring``: an offset commit with a retention time of its own. ``transactions``: the finalized level of
    transaction.version; None for the usual one of the release. ``message_format``: log.message.format.version; None
    for the inter-broker version.
    """
    found = _declared(message)
    if expiring and "expiring" in found:
        version: int = found["expiring"]
        return version
    if (levels := found.get("transaction-version")) and release >= Release.parse(levels["since"]):
        version = levels["versions"][levels["usual"] if transactions is None else transactions]
        return version
    for since, chosen in reversed(found.get("release", {}).items()):
        if release >= Release.parse(since):
            version = chosen
            return version
    gate, by_setting = inter_broker, found.get("inter-broker", {})
    if by_format := found.get("message-format"):
        by_setting = by_format
        if message_format is not None and inter_broker < _first_of(found["fixed-from"]):
            gate = message_format
    reached = [chosen for since, chosen in by_setting.items() if InterBroker.parse(since) <= gate]
    return reached[-1] if reached else None


def _first_of(line: str) -> InterBroker:
    return InterBroker.parse(f"{line}-IV0")


def thresholds(message: str, after: InterBroker, to: InterBroker) -> dict[InterBroker, int]:
    """The inter-broker versions above one and up to another that change what is written."""
    found = {InterBroker.parse(since): chosen for since, chosen in _declared(message).get("inter-broker", {}).items()}
    return {since: chosen for since, chosen in found.items() if after < since <= to}


def first_release(file: str) -> str:
    """The first release with a file beside a log. Errors: KeyError for another message."""
    since: str = next(iter(table()["files"][file]["reads"]))
    return since


def newest_readable(message: str, release: Release) -> int | None:
    """None for a release without such a record or file."""
    if reads := table()["files"].get(message, {}).get("reads"):
        return max((version for since, version in reads.items() if release >= Release.parse(since)), default=None)
    try:
        return max(each.version for each in spec(edition(f"apache@{release}"), message))
    except (LookupError, ValueError):
        return None


def readable_before(message: str, inter_broker: InterBroker) -> int | None:
    """The newest version that every release reads that may run at that inter-broker version; None: nothing is known."""
    first = inter_broker.first_release()
    return None if first is None else newest_readable(message, first)
