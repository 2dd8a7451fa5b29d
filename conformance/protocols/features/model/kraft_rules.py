"""What the KRaft controllers of a release support, and how they judge updates (class FeatureControlManager)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since, span, table
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours, releases
from kipcheck.conformance.protocols.features.model.ranges import Range

METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"
FIRST: Final = Release.parse(since("java-controller-runs"))
"""The first release that runs without ZooKeeper in production."""
DISABLED: Final = Range(0, 0)
"""What a node supports of a feature that it does not declare."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Errors of ``of``: ValueError for a release before 3.3.0."""

    release: str
    all_or_nothing: bool
    undeclared_refused: bool
    """A broker that does not declare the feature forbids every level, 0 too."""
    registered_controllers: bool
    """Controllers declare levels; before, they are known by their ApiVersions responses."""
    asks_unregistered: bool
    """Whether a leader compares a level with controllers also where they do not register (584-77); no release does."""
    known_only: bool
    kraft_version_unused: bool
    kraft_version_apart: bool
    """Clients are shown the level that the quorum was formatted with; controllers judge updates as if it were 0."""
    kraft_version_in_quorum: bool
    refused_keeps_kraft_version: bool
    """A breach (584-40): after a refused request an upgrade of kraft.version that was judged before stays."""
    undeclared_finalized_refused: bool
    not_finalized_is_0: bool
    """At registration: a broker has to support level 0 of a feature that it declares and that is not finalized."""
    metadata_is_declared: bool
    """Or the registration of a broker is invalid."""
    first_bootstrap: int
    """The least metadata.version that a cluster can have."""
    supported: Mapping[str, Range] = field(hash=False)
    """By this release's own binaries. Range 0 to 0: the name is known, and not declared."""
    needs: Mapping[tuple[str, int], int] = field(hash=False)
    """Feature and level -> the least metadata.version that it needs."""

    @classmethod
    def of(cls, release: str) -> "Rules":
        return _rules(release)

    @classmethod
    def of_edition(cls, edition: Edition) -> "Rules":
        """An exact release has its own rules, ``apache`` those of a controller that does what is owed."""
        return cls.of(edition.release) if edition.exact else cls.owed()

    @classmethod
    def owed(cls) -> "Rules":
        """Of the newest release, without its breach, and with the question that it leaves out."""
        return replace(cls.of(NEWEST), refused_keeps_kraft_version=False, asks_unregistered=True)

    @property
    def newest(self) -> int:
        """The highest metadata.version."""
        return self.supported[METADATA].high

    def defaults(self) -> dict[str, int]:
        """The levels of a new cluster at the highest metadata.version; kraft.version is 0 there."""
        found = {METADATA: self.newest}
        for each in table()["feature-levels"]["defaults"]:
            name, level = each["feature"], each["level"]
            if each["metadata"] <= self.newest and self.supported.get(name, DISABLED).holds(level):
                found[name] = max(level, found.get(name, 0))
        return found

    def declares(self) -> Iterator[tuple[str, Range]]:
        """What a node of this release declares."""
        return ((name, each) for name, each in self.supported.items() if each != DISABLED)

    def declares_only(self, supported: Mapping[str, tuple[int, int]]) -> bool:
        """Whether a node of this release declares exactly these levels."""
        return dict(self.declares()) == supported

    @staticmethod
    def changes_metadata(low: int, high: int) -> bool:
        """Whether a step between these levels of metadata.version changes a record."""
        return any(low < level <= high for level in table()["feature-levels"]["changes-metadata"])

    def registers_controllers(self, metadata: int) -> bool:
        """Whether controllers have to register at this level of metadata.version."""
        least: int = table()["feature-levels"]["registers-controllers"]
        return self.registered_controllers and metadata >= least


@cache
def _rules(release: str) -> Rules:
    at = Release.parse(release)
    if at < FIRST:
        raise ValueError(f"release {release} has no KRaft controller of feature versions; the first is {FIRST}")

    def has(name: str) -> bool:
        return at in releases(span(name, "controller"))

    supported = {name: found for name, each in table()["features"].items() if (found := _range(at, each))}
    needs = {(each["feature"], each["level"]): each["metadata"]
             for each in table()["feature-levels"]["needs"] if at in releases(each["releases"])}  # fmt: skip
    in_quorum = has("known-only") and not has("kraft-version-unused")
    return Rules(
        release,
        asks_unregistered=False,
        kraft_version_in_quorum=in_quorum,
        refused_keeps_kraft_version=in_quorum,
        first_bootstrap=7 if has("first-bootstrap-is-7") else 4,
        supported=supported,
        needs=needs,
        **behaviours(Rules, at, "controller"),
    )


def _range(at: Release, found: Mapping[str, Any]) -> Range | None:
    """Of a feature, in a release."""
    before = [Release.parse(each) for each in found if Release.parse(each) <= at]
    return Range(*found[str(max(before))]) if before else None
