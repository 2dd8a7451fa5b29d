"""The column families of the stores of Kafka Streams, and what they say of the values in a store.

Read in kafka-streams 4.3.1 and 4.4.0 (``RocksDBStore``, ``RocksDBTimestampedStore``,
``RocksDBTimestampedStoreWithHeaders``, ``RocksDBMigratingWindowStoreWithHeaders`` and
``RocksDBMigratingSessionStoreWithHeaders``), and found on disk in the stores that both wrote.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.stores.ops import FORMATS, Format

UNKNOWN: Final = "unknown"
ANY: Final = "key-value, versioned, window or session store"
KEY_VALUE: Final = "key-value store, or a segment of a window store"
SEGMENT: Final = re.compile(r"(?P<store>.+)[.:-]\d+")
"""The name of the directory of a segment, below that of its store: the time or number of its start is last."""


@dataclass(frozen=True, slots=True)
class ColumnFamily:
    name: str
    format: Format | None
    """Of its values; None: it has none of the application."""
    since: str | None
    """The first release that creates it; None: every store has it."""
    kind: str
    """The stores that have it."""
    older: tuple[str, ...] = ()
    """The families from which a store with this one moves values."""


FAMILIES: Final = (
    ColumnFamily("default", "plain", None, ANY),
    ColumnFamily("keyValueWithTimestamp", "timestamped", since("timestamped-stores"), KEY_VALUE, ("default",)),
    ColumnFamily(
        "keyValueWithTimestampAndHeaders", "headers", since("stores-with-headers"), KEY_VALUE,
        ("default", "keyValueWithTimestamp"),
    ),
    ColumnFamily(
        "windowKeyValueWithHeaders", "headers", since("stores-with-headers"), "segment of a window store", ("default",)
    ),
    ColumnFamily(
        "sessionKeyValueWithHeaders", "headers", since("stores-with-headers"), "segment of a session store",
        ("default",),
    ),
    ColumnFamily("offsets", None, since("stores-manage-offsets"), ANY),
)  # fmt: skip
BY_NAME: Final = {each.name: each for each in FAMILIES}


@dataclass(frozen=True, slots=True)
class StoreFormat:
    """What the column families of a store say."""

    name: str
    """``plain``, ``timestamped``, ``both``, ``headers``, ``older and headers``, ``mixed`` or ``unknown``."""
    meaning: str
    kind: str
    """The stores that have these column families."""
    refused_before: str | None
    """Older releases do not know all of its column families; None: unknown, or each release knows them."""

    @property
    def known(self) -> bool:
        return self.name != UNKNOWN


def read_format(filled: Mapping[str, bool]) -> StoreFormat:
    """The format of a store. ``filled``: its column families, and whether each may have values."""
    if strange := [name for name in filled if name not in BY_NAME]:
        return _unknown(f"no release that kipcheck knows creates the column family {', '.join(strange)}")
    there = [BY_NAME[name] for name in filled]
    own = max((each for each in there if each.format), key=lambda each: FORMATS.index(each.format or "plain"))
    for each in there:
        if each.format and each is not own and each.name not in own.older:
            return _unknown(f"no release creates {own.name} and {each.name} in one store")
    older = [name for name in own.older if filled.get(name)]
    name = str(own.format)
    if own.format == "timestamped" and older:
        name = "both"
    elif own.format == "headers" and older:
        name = "mixed" if filled["default"] and "keyValueWithTimestamp" in filled else "older and headers"
    least = max((each.since for each in there if each.since), key=Release.parse, default=None)
    return StoreFormat(name, MEANINGS[name], own.kind, least)


def _unknown(why: str) -> StoreFormat:
    return StoreFormat(UNKNOWN, f"{why}: no verdict", ANY, None)


MEANINGS: Final[Mapping[str, str]] = {
    "plain": (
        "no column family for timestamps or headers, as stores of several kinds have it. If the application opens it "
        "with timestamps (key-value and window stores, from 2.3 on) or with headers (from 4.3 on), values without "
        "timestamps are moved when their keys are read or written; which store it opens is not in the directory"
    ),
    "timestamped": (
        "all values have timestamps. A store with headers (from 4.3 on) opens the directory, and moves a value when "
        "its key is read or written; no store without headers opens it from then on"
    ),
    "both": (
        "values without timestamps may be left. A store with headers (from 4.3 on) refuses the directory until a store "
        "with timestamps has read or written each of them, and no store opens it after such an attempt"
    ),
    "headers": (
        "all values are in the format with headers. A store without headers refuses the directory, in each release up "
        "to 4.4.0: to go back, delete it, and let the task restore it from its changelog"
    ),
    "older and headers": (
        "values without headers may be left, until a store with headers has read or written each of them. A store "
        "without headers refuses the directory, in each release up to 4.4.0: to go back, delete it, and let the task "
        "restore it from its changelog"
    ),
    "mixed": (
        "values without timestamps may be left beside a place for those with timestamps, and a store with headers made "
        "its place, too. If one is left, no store of 4.3.1 or 4.4.0 opens the directory: delete it, and let the task "
        "restore it from its changelog"
    ),
}
"""By the name of the format."""


def kind_of(found: StoreFormat, directory: str, parent: str) -> str | None:
    """The kind of a store, from its format and the names of its directory and of the one above; None: unknown.

    A segment is in ``STORE/STORE.START``, a store without segments in ``rocksdb/STORE``.
    """
    segment = SEGMENT.fullmatch(directory)
    if not found.known:
        return None
    if segment is not None and segment["store"] == parent:
        return {ANY: "segment of a window or session store", KEY_VALUE: "segment of a window store"}.get(
            found.kind, found.kind
        )
    if parent == "rocksdb":
        return {ANY: "key-value or versioned store", KEY_VALUE: "key-value store"}.get(found.kind, found.kind)
    return None if found.kind == ANY else found.kind
