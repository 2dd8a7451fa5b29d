"""Behaviour of the Kafka Streams assignor by release: versions, settings, and deviations from the intent of KIP-268.

The boundaries are those of SubscriptionInfo, AssignmentInfo, StreamsConfig and StreamsPartitionAssignor, release by
release.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import patches, since, span, table
from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours, judged_lines, releases
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER
from kipcheck.conformance.protocols.streams.model.deviations import REFUSES_LAST, UNOWED, Deviation, deviations
from kipcheck.conformance.protocols.streams.model.members import Misconfigured
from kipcheck.conformance.wire.schema import stable_versions

ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
CONFIG: Final = "org.apache.kafka.common.config.ConfigException"
FIRST_PROBED: Final = 3
"""The lowest version that contains the sender's latest version (268-48)."""

LINES: Final = tuple(each.rpartition(".")[0] for each in judged_lines("streams"))
"""All values of ``upgrade.from`` in any release."""
EAGER_LINES: Final = LINES[: LINES.index("2.3") + 1]
"""Values without cooperative rebalancing: with them a member supports only the eager protocol."""
FIXED: Final = span("fix-of-kafka-6054")
"""Releases with the fix of KAFKA-6054 that are older than KIP-268 (268-41)."""

UPGRADE_FROM: Final[Mapping[str, str]] = table()["upgrade-from"]["last"]
"""Release -> the last value of ``upgrade.from`` since that release (268-08, 268-55)."""
LATE: Final[Mapping[str, str]] = table()["upgrade-from"]["late"]
"""The last value that these releases accept, because of ``REFUSES_LAST``."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    release: str
    latest: int
    """The newest metadata version."""
    accepts: tuple[str, ...]
    """Valid values of ``upgrade.from``; empty if the setting does not exist, and is ignored."""
    protocols: tuple[str, ...]
    """Supported rebalance protocols, unless ``upgrade.from`` restricts them."""
    explains: bool
    """4.0 and 4.1: a separate error message for values of ``upgrade.from`` without cooperative rebalancing."""
    departures: frozenset[Deviation]
    tells_errors: bool
    """Since 2.1.0: a leader that cannot assign sends an error code (KAFKA-5037). Before, and in the draft, throws."""
    shuts_down: bool
    """Since 2.8.0: the leader forwards a member's shutdown request to all members (KAFKA-9331)."""
    owns: bool
    """Since 2.4.0: the leader withholds tasks whose partitions another consumer still owns."""
    warms: str
    """The stateful tasks that a consumer has as standby while they are withheld from it: since 2.6.0 ``all`` of them,
    since 3.5.2 those that its instance ``had``, before 2.6.0 none."""
    announces: bool
    """Since 2.6.0: a consumer that waits for a withheld task has to rejoin at once (KAFKA-10078)."""
    by_offsets: bool
    """Since 2.6.0: the tasks of a member are those with an offset sum, that is the stateful ones, in every version
    (KAFKA-6145)."""
    spares_topologies: bool
    """Since 3.2.0: a named topology with a missing source topic is left out without an error (KAFKA-12648)."""
    mended: bool = False
    """Without the deviations that break a requirement (``owed``)."""

    @classmethod
    @cache
    def of(cls, release: str, fitted: bool = True) -> "Rules":
        """The rules of a release. ``fitted``: with all known deviations; else only those predictable from the KIP, the
        metadata versions and the settings of the releases.

        A release that is not in the tables has the rules of the one before it. Errors: ValueError for an invalid
        release, or one before 0.10.0.0.
        """
        at = Release.parse(release)
        if at < Release.parse(patches()[0]):
            raise ValueError(f"Kafka Streams has no release {release}: use 0.10.0.0 or later")
        deviating = deviations(at, fitted)

        def has(behaviour: str) -> bool:
            return at in releases(span(behaviour, "streams"))

        return cls(
            release=release,
            latest=latest_version(release),
            accepts=_accepted(at, REFUSES_LAST in deviating),
            protocols=_protocols(at),
            departures=deviating,
            warms="had" if has("warms-owned-tasks") else "all" if has("warms-idle-tasks") else "",
            **behaviours(cls, at, "streams"),
        )

    def owed(self) -> "Rules":
        """The rules of the same release if it did all that the requirements owe."""
        at = Release.parse(self.release)
        return replace(self, accepts=_accepted(at, late=False), departures=self.departures - UNOWED, mended=True)

    def __contains__(self, deviation: Deviation) -> bool:
        return deviation in self.departures

    def used(self, upgrade_from: str | None) -> int:
        """The version of a starting member's subscription (268-10). Errors: ``Misconfigured``."""
        if upgrade_from is None or not self.accepts:
            return self.latest
        if upgrade_from not in self.accepts:
            # In 3.5.0 and 3.5.1 the assignor throws, which does not know a value that the configuration accepts.
            late = REFUSES_LAST in self and upgrade_from == "3.4"
            raise Misconfigured(self.refusal(upgrade_from), ILLEGAL_ARGUMENT if late else CONFIG)
        if upgrade_from == LINES[0]:
            return 1
        return 2 if LINES.index(upgrade_from) <= LINES.index("1.1") else self.latest

    def refusal(self, upgrade_from: str) -> str:
        if self.explains and upgrade_from in EAGER_LINES:
            return (
                f"no rolling upgrade from {upgrade_from}, which rebalances eagerly: upgrade to 3.9 first, or stop all "
                "members"
            )
        return f"invalid upgrade.from {upgrade_from!r}: use one of {', '.join(self.accepts)}"

    def supports(self, upgrade_from: str | None) -> tuple[str, ...]:
        """Rebalance protocols that a member supports (268-38, 268-39)."""
        if upgrade_from in EAGER_LINES and EAGER in self.protocols:
            return (EAGER,)
        return self.protocols


def latest_version(release: str) -> int:
    """The newest metadata version of a release."""
    versions = stable_versions("SubscriptionInfo", release)
    assert versions is not None and versions.high is not None
    return versions.high


NEWEST_VERSION: Final = latest_version(NEWEST)


def _protocols(at: Release) -> tuple[str, ...]:
    if at not in releases(span("cooperative-rebalancing")):
        return (EAGER,)
    return (COOPERATIVE,) if at in releases(span("cooperative-streams")) else (EAGER, COOPERATIVE)


def _accepted(at: Release, late: bool) -> tuple[str, ...]:
    if at in releases(FIXED):
        return LINES[:1]
    if at < Release.parse(since("kip-268")):
        return ()
    last = [line for release, line in UPGRADE_FROM.items() if Release.parse(release) <= at][-1]
    if late:
        last = next((value for span, value in LATE.items() if at in releases(span)), last)
    first = LINES.index("2.4") if at in releases(span("cooperative-streams")) else 0
    return LINES[first : LINES.index(last) + 1]
