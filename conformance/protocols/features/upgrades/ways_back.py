"""Ways back to an old release: what runs of released nodes showed, and the rule that predicts them.

A run starts a cluster of an old release, restarts it with a new one, raises a level and lowers it, and starts the old
release again: at once, and after a snapshot of the metadata. ``golden/ways_back.json`` has the outcomes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import combinations, pairwise
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import listed, named, patches, table
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.features.model.kraft_rules import DISABLED, METADATA, Rules

FILE: Final = "ways_back.json"
INTER_BROKER: Final = "inter.broker.protocol.version"
NONE: Final = "NONE"
PINNED: Final = "inter.broker.protocol.version, not raised"
TOGETHER: Final = "all levels"
"""Of a plan, raised one after the other, and lowered in the reverse order where controllers lower them."""
BINARIES: Final = "no level"
"""In KRaft: only the release changes."""


@dataclass(frozen=True, slots=True)
class Way:
    """What a run plays."""

    old: str
    new: str
    feature: str
    """A feature, ``TOGETHER`` or ``INTER_BROKER``, which rises; ``BINARIES`` or ``PINNED``: nothing does."""
    nodes: int = 1

    @property
    def name(self) -> str:
        return f"{self.old} {self.new} {self.feature} {self.nodes}"


@dataclass(frozen=True, slots=True)
class Return:
    """What the old release did on the data of the new one."""

    runs: bool
    """Every node runs, and reads all that was written."""
    why: str = ""
    """Otherwise: the message of the node that ended, or what was lost."""


@dataclass(frozen=True, slots=True)
class Played:
    way: Way
    before: int | str
    """The level, or the inter-broker version, of the old release; all levels as text."""
    after: int | str
    """The highest one of the new release."""
    raised: str
    """NONE, or the error of the controller."""
    lowered: str
    at_once: Return
    """Without a snapshot after the lowering; where the level was not lowered, at the raised level."""
    after_snapshot: Return | None
    """None: it was not played, because the level was not lowered, or the run has ZooKeeper."""

    @property
    def outcome(self) -> tuple[object, ...]:
        """Without messages: several threads of a node end at the same record, and any of them logs first."""
        later = None if self.after_snapshot is None else self.after_snapshot.runs
        levels = (self.before, self.after, self.raised == NONE, self.lowered == NONE)
        return self.way, *levels, self.at_once.runs, later


def as_row(found: Played) -> dict[str, Any]:
    row = asdict(found)
    return {**row.pop("way"), **row}


def from_row(row: Mapping[str, Any]) -> Played:
    later = row["after_snapshot"]
    return Played(
        Way(row["old"], row["new"], row["feature"], row["nodes"]), row["before"], row["after"], row["raised"],
        row["lowered"], Return(**row["at_once"]), None if later is None else Return(**later),
    )  # fmt: skip


@cache
def played() -> Mapping[Way, Played]:
    """The recorded runs, from the file."""
    rows = json.loads((files("kipcheck.golden") / FILE).read_text("utf-8"))
    return {each.way: each for each in map(from_row, rows)}


# The rule


@dataclass(frozen=True, slots=True)
class MetadataLog:
    """The levels in ``__cluster_metadata`` of one node. A node that starts applies its newest snapshot, and each record
    after it: a level that was lowered is still there, until a snapshot replaces the records.
    """

    finalized: Mapping[str, int]
    written: Mapping[str, int]
    """The highest level of each feature in the newest snapshot and the records after it."""

    @classmethod
    def of(cls, levels: Mapping[str, int]) -> "MetadataLog":
        return cls(levels, levels)

    def with_level(self, feature: str, level: int) -> "MetadataLog":
        """After a FeatureLevelRecord."""
        written = {**self.written, feature: max(level, self.written.get(feature, 0))}
        return MetadataLog({**self.finalized, feature: level}, written)

    def with_snapshot(self) -> "MetadataLog":
        return MetadataLog(self.finalized, self.finalized)

    def unread_by(self, rules: Rules) -> str:
        """A level at which a node of a release ends; empty if there is none (FeatureControlManager, ``replay``)."""
        for feature, level in self.written.items():
            if not rules.supported.get(feature, DISABLED).holds(level):
                return f"{feature} {level}"
        return ""


class By(StrEnum):
    """How the old release comes back after a level rose."""

    RESTART = "restart"
    """The level is lowered, and the old release restarted."""
    SNAPSHOT = "snapshot"
    """The same, after each node has a snapshot from after the lowering."""
    KEPT = "kept"
    """The level cannot be lowered, and the old release supports it."""
    IMPOSSIBLE = "impossible"
    NOT_RUN = "not run"
    """The rule says that it is possible, and no run has shown it."""

    @property
    def leads_back(self) -> bool:
        return self in (By.RESTART, By.SNAPSHOT, By.KEPT)


def by_rule(old: Rules, levels: Mapping[str, int], feature: str, after: int, lowered: bool) -> By:
    """``levels``: those of the cluster before; ``lowered``: whether the controllers take the level back."""
    log = MetadataLog.of(levels).with_level(feature, after)
    if not lowered:
        return By.IMPOSSIBLE if log.unread_by(old) else By.KEPT
    log = log.with_level(feature, levels.get(feature, 0))
    if not log.unread_by(old):
        return By.RESTART
    return By.IMPOSSIBLE if log.with_snapshot().unread_by(old) else By.SNAPSHOT


def by_run(found: Played) -> By:
    if found.at_once.runs:
        return By.RESTART if found.lowered == NONE else By.KEPT
    return By.SNAPSHOT if found.after_snapshot is not None and found.after_snapshot.runs else By.IMPOSSIBLE


def runs(old: str, new: str, feature: str) -> tuple[Played, ...]:
    """The recorded runs of a feature with any patches of the lines of two releases."""
    lines = (_line(old), _line(new))
    return tuple(
        each for way, each in played().items()
        if way.feature == feature and (_line(way.old), _line(way.new)) == lines
    )  # fmt: skip


def as_run(rule: By, old: str, new: str, feature: str) -> By:
    """The rule where all runs show the same: no way back is promised that was not run."""
    shown = {by_run(each) for each in runs(old, new, feature)}
    return rule if not rule.leads_back or shown == {rule} else By.NOT_RUN


def _line(release: str) -> tuple[int, ...]:
    return Release.parse(release).numbers[:-1]


# What is run


def ways() -> tuple[Way, ...]:
    """All that are to be played, in the order of their worth."""
    with_zookeeper = _pairs("with-zookeeper")
    raised, zookeeper = (*pairwise(_kraft()), *_pairs("jumps")), (*with_zookeeper, *pairwise(_zookeeper()))
    found = [
        *(Way(old, new, METADATA) for old, new in raised),
        *(Way(old, new, BINARIES) for old, new in raised),
        *(Way(old, new, feature) for old, new in with_zookeeper for feature in (INTER_BROKER, PINNED)),
        *(Way(old, new, METADATA, 3) for old, new in raised),
        *(Way(old, new, TOGETHER, nodes) for nodes in (1, 3) for old, new in _pairs("all-lowered")),
        *(way for old, new in raised for way in _of_features(old, new, 1)),
        *(way for old, new in raised for way in _of_features(old, new, 3)),
        *(Way(old, new, BINARIES) for old, new in (*combinations(_kraft(), 2), *_patches())),
        *(Way(old, new, feature) for old, new in zookeeper for feature in (INTER_BROKER, PINNED)),
    ]
    return tuple(dict.fromkeys(found))


def _pairs(name: str) -> list[tuple[str, str]]:
    """Releases over several lines, besides neighbours."""
    return [(old, new) for old, new in table()["ways-back"][name]]


def _of_features(old: str, new: str, nodes: int) -> Iterator[Way]:
    """For each other feature of which the new release supports more than a cluster of the old one has.

    A level that needs a metadata.version which the old release lacks goes back with that one, or not at all.
    """
    rules = Rules.of(new)
    levels = Rules.of(old).defaults()
    for feature, supported in rules.supported.items():
        needs = rules.needs.get((feature, supported.high), 0)
        if feature != METADATA and supported.high > levels.get(feature, 0) and needs <= levels[METADATA]:
            yield Way(old, new, feature, nodes)


def _kraft() -> list[str]:
    """The newest release of each line with KRaft of which the jars of a broker can be resolved."""
    return _newest(listed("controllers"))


def _zookeeper() -> list[str]:
    """The newest release of each line with ZooKeeper whose requests a run can send: from 1.1 on."""
    return _newest(each for each in patches() if Release.parse(each) in releases(f"1.1.0-{named('last-before-4')}"))


def _newest(those: Iterable[str]) -> list[str]:
    return [*{_line(each): each for each in sorted(those, key=patches().index)}.values()]


def _patches() -> Iterator[tuple[str, str]]:
    """Of each line with KRaft, the first release and the one that stands for the line."""
    for newest in _kraft():
        first = next(each for each in patches() if _line(each) == _line(newest))
        if first != newest:
            yield first, newest
