"""Which releases can open a log directory: what each of them cannot read, and what leaves it open."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, lines, releases
from kipcheck.conformance.log_directory.contents import Contents, Format, Kind, Level, Place, Source
from kipcheck.conformance.protocols.features.model.kraft_rules import DISABLED, METADATA, Rules
from kipcheck.conformance.wire import metadata_records, quorum_files
from kipcheck.conformance.wire.coordinator_records import STABLE
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.metadata_records import FEATURE
from kipcheck.conformance.wire.schema import spec, stable_versions
from kipcheck.conformance.wire.stored_records import newest_readable

HAS_KRAFT: Final = releases("2.8.0+")


@dataclass(frozen=True, slots=True)
class Unread:
    """A format, or the level of a feature, that a release cannot read."""

    format: str
    version: int
    place: Place
    why: str = ""
    level: Level | None = None

    def __str__(self) -> str:
        what = f"{self.level.feature} {self.level.level}" if self.level else f"{self.format} {self.version}"
        return f"{what}{f' ({self.why})' if self.why else ''}: {self.place}"


@dataclass(frozen=True, slots=True)
class Verdict:
    unread: tuple[Unread, ...]
    open: tuple[str, ...]
    """Why nothing is certain if ``unread`` is empty."""

    @property
    def reads(self) -> bool | None:
        """None: no verdict."""
        return False if self.unread else None if self.open else True


def verdicts(found: Contents, wanted: tuple[Release, ...] = ()) -> Mapping[str, Verdict]:
    """By release; without a release every line."""
    return {str(each): verdict(found, each) for each in wanted or map(Release.parse, lines())}


def verdict(found: Contents, release: Release) -> Verdict:
    unread = (
        Unread(format.name, format.version, count.first)
        for format, count in sorted(found.formats.items()) if not _reads(release, format)
    )  # fmt: skip
    judged = [_level(found, release, each) for each in found.levels]
    levels = (each for each in judged if isinstance(each, Unread))
    open_levels = (each for each in judged if isinstance(each, str))
    return Verdict(
        (*unread, *levels), tuple(dict.fromkeys([*doubts(found), *_doubts_of(found, release), *open_levels]))
    )


def _has(behaviour: str, release: Release) -> bool:
    return release in releases(span(behaviour))


def _reads(release: Release, format: Format) -> bool:
    match format.kind:
        case Kind.FILE | Kind.BATCH:
            newest = newest_readable(format.name, release)
            return newest is None or format.version <= newest  # a release without such files does not look for them
        case Kind.QUORUM:
            newest = quorum_files.newest_readable(format.name, release)
            return newest is None or format.version <= newest
        case Kind.METADATA | Kind.CONTROL if release not in HAS_KRAFT:
            return False
        case Kind.METADATA:
            known = metadata_records.known_versions("metadata", format.type, release)
            return known is not None and format.version in known
        case Kind.CONTROL:
            versions = stable_versions(format.name, str(release))
            skipped = _has("control-records-skipped", release) or _has("kraft-preview", release)
            return skipped or (versions is not None and format.version in versions)
        case Kind.GROUPS | Kind.TRANSACTIONS | Kind.SHARES:
            return _reads_record(release, format)
    assert_never(format.kind)


def _reads_record(release: Release, format: Format) -> bool:
    """A record of a coordinator. Before KIP-915 an unknown key was unreadable, since then it is skipped; only the
    coordinators in Java know other keys than the first three."""
    if format.name.startswith(STABLE):
        newest = newest_readable(format.name, release)
        # A release without transactions does not look for them.
        return format.kind is Kind.TRANSACTIONS if newest is None else format.version <= newest
    if format.kind is Kind.SHARES or release in releases(span("java", "coordinator")):
        known = metadata_records.known_versions(str(format.kind), format.type, release)
        known = known or stable_versions(format.name, str(release))
        return known is None or format.version in known
    return _has("skips-unknown-group-keys", release)


def _level(found: Contents, release: Release, level: Level) -> Unread | str | None:
    """What a release does with a level: what it cannot read, a doubt, or None."""
    refused = partial(Unread, FEATURE if level.data else "KRaftVersionRecord", 0, level.place, level=level)
    if release not in HAS_KRAFT:
        return refused("no KRaft")
    if _has("kraft-preview", release):
        return None if not level.data or _is_layout_of(release, level.data) else refused("another layout")
    rules = Rules.of(str(release))
    supported = rules.supported.get(level.feature, DISABLED)
    if level.source is Source.BOOTSTRAP:
        if level.feature != METADATA:
            return None  # replayed only where the log is empty
        supported = supported._replace(low=max(supported.low, rules.first_bootstrap))
    if supported.holds(level.level):
        return None
    if level.feature != METADATA and level.data and found.votes is not True:
        # Only controllers compare it with what they support; a broker does when it registers with one.
        return None if found.votes is False else f"{level.feature} {level.level}: whether the node is a controller"
    return refused(f"it supports {supported}" if supported != DISABLED else "unknown to it")


def _is_layout_of(release: Release, data: bytes) -> bool:
    try:
        spec(edition(f"apache@{release}"), FEATURE).at(0).decode(data)
    except Refused:
        return False
    return True


def doubts(found: Contents) -> Iterator[str]:
    """What leaves every release without a verdict."""
    if found.damage:
        yield "damage"
    yield from (f"unknown: {each}" for each in found.unknown)
    yield from (f"not read: {each}" for each in found.unread)
    if found.properties is None and not found.damage:
        yield "no meta.properties"
    if found.kraft and found.metadata is None:
        yield "the metadata log, with the levels of features, is in another directory"
    elif found.kraft and not any(each.feature == METADATA for each in found.levels):
        yield "no level of metadata.version in checkpoints and log"
    if found.epochs and not found.clean:
        yield "leader epochs that recovery may add or drop"


def _doubts_of(found: Contents, release: Release) -> Iterator[str]:
    zookeeper = found.properties is not None and not found.properties["version"]
    if found.kraft and _has("kraft-preview", release):
        yield "KRaft was a preview, whose levels of features are not known"
    if zookeeper and found.metadata and release in HAS_KRAFT and not _has("migrated-meta-properties", release):
        yield "meta.properties of ZooKeeper beside a metadata log"
    if zookeeper and not found.metadata and not _has("zookeeper", release):
        yield "the directory is one of a cluster with ZooKeeper, which this release does not support"
