"""What the assignor of Kafka Streams does in one release: its numbers, and its departures from what KIP-268 means.

The boundaries are those of SubscriptionInfo, AssignmentInfo, StreamsConfig and StreamsPartitionAssignor, release by
release.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from kipcheck.conformance.core.release import Release, releases
from kipcheck.conformance.models.membership import COOPERATIVE, EAGER
from kipcheck.conformance.models.streams.deviations import REFUSES_LAST, Departure, departures
from kipcheck.conformance.models.streams.members import Misconfigured

ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
CONFIG: Final = "org.apache.kafka.common.config.ConfigException"
FIRST_PROBED: Final = 3
"""The lowest version that says what its sender supports (268-48)."""

LATEST: Final[Mapping[str, int]] = {
    "0.10.0.0": 1, "0.10.1.0": 2, "2.0.0": 3, "2.1.0": 4, "2.4.0": 5, "2.5.0": 6, "2.6.0": 7, "2.6.1": 8, "2.8.0": 9,
    "3.0.0": 10, "3.2.0": 11,
}  # fmt: skip
"""The newest metadata version from that release on."""
NEWEST_VERSION: Final = max(LATEST.values())

LINES: Final = (
    "0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1",
    "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8",
    "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9",
    "4.0", "4.1", "4.2", "4.3",
)  # fmt: skip
"""Values that ``upgrade.from`` ever had, or will have."""
EAGER_LINES: Final = LINES[: LINES.index("2.3") + 1]
"""Those without cooperative rebalancing: with them a member offers the eager protocol only."""
FIXED: Final = "0.10.2.2, 0.11.0.3, 1.0.2, 1.1.1"
"""Releases with the fix of KAFKA-6054 that are older than KIP-268 (268-41)."""

UPGRADES: Final[Mapping[str, str]] = {
    "2.0.0": "1.1", "2.4.0": "2.3", "3.3.0": "3.2", "3.4.0": "3.3", "3.5.0": "3.4", "3.6.0": "3.5", "3.7.0": "3.6",
    "3.8.0": "3.7", "3.9.0": "3.8", "4.0.0": "3.9", "4.1.0": "4.0", "4.2.0": "4.1", "4.3.0": "4.2",
}  # fmt: skip
"""The last value of ``upgrade.from`` from that release on (268-08, 268-55)."""
LATE: Final[Mapping[str, str]] = {"3.5.0-3.5.1": "3.3", "3.6.0-3.6.1": "3.4"}
"""And what it really is, by ``REFUSES_LAST``."""


@final
@dataclass(frozen=True, slots=True)
class Rules:
    release: str
    latest: int
    """The newest metadata version."""
    accepts: tuple[str, ...]
    """Values of ``upgrade.from``; none where there is no such setting, and then it is not looked at."""
    protocols: tuple[str, ...]
    """Rebalance protocols that it offers, unless ``upgrade.from`` says otherwise."""
    explains: bool
    """4.0 and 4.1: it has words of its own for values of ``upgrade.from`` that came before cooperative rebalancing."""
    departures: frozenset[Departure]
    tells_errors: bool
    """From 2.1.0 on: where it cannot assign it says why (KAFKA-5037). Before, and in the draft, it throws."""
    shuts_down: bool
    """From 2.8.0 on: one member's wish to shut down is told to all (KAFKA-9331)."""
    owns: bool
    """From 2.4.0 on: it withholds what another consumer owns still."""
    warms: str
    """What a consumer that waits for such tasks keeps ready meanwhile of those with state: from 2.6.0 on ``all`` of
    them, from 3.5.2 on those that its instance ``had``, before that none."""
    announces: bool
    """From 2.6.0 on: who waits for such a task is told to rejoin at once (KAFKA-10078)."""
    by_offsets: bool
    """From 2.6.0 on: tasks of a member are those with an offset sum, that is with state, whatever the version
    (KAFKA-6145)."""
    spares_topologies: bool
    """From 3.2.0 on: a named topology that misses a source topic is left out, without an error (KAFKA-12648)."""

    @classmethod
    @cache
    def of(cls, release: str, fitted: bool = True) -> "Rules":
        """``fitted``: with all that is known of the release; else what one would foresee of it who has read the KIP,
        and of the releases no more than their metadata versions and settings.

        A release that is not in the tables has the rules of the one before it. Errors: ValueError for what is no
        release, or one before 0.10.0.0.
        """
        at = Release.parse(release)
        if at < Release.parse("0.10.0.0"):
            raise ValueError(f"Kafka Streams begins with 0.10.0.0: there is no {release}")
        departing = departures(at, fitted)

        def since(boundary: str) -> bool:
            return at in releases(f"{boundary}+")

        return cls(
            release=release,
            latest=LATEST[_before(at, LATEST)],
            accepts=_accepted(at, REFUSES_LAST in departing),
            protocols=(COOPERATIVE,) if since("4.0.0") else (EAGER, COOPERATIVE) if since("2.4.0") else (EAGER,),
            explains=since("4.0.0") and not since("4.2.0"),
            departures=departing,
            tells_errors=since("2.1.0"),
            shuts_down=since("2.8.0"),
            owns=since("2.4.0"),
            warms="had" if since("3.5.2") else "all" if since("2.6.0") else "",
            announces=since("2.6.0"),
            by_offsets=since("2.6.0"),
            spares_topologies=since("3.2.0"),
        )

    def __contains__(self, departure: Departure) -> bool:
        return departure in self.departures

    def used(self, upgrade_from: str | None) -> int:
        """The version in which a member subscribes that has just started (268-10). Errors: ``Misconfigured``."""
        if upgrade_from is None or not self.accepts:
            return self.latest
        if upgrade_from not in self.accepts:
            # That of 3.5.0 and 3.5.1 is the assignor's, which does not know what the configuration lets pass.
            late = REFUSES_LAST in self and upgrade_from == "3.4"
            raise Misconfigured(self.refusal(upgrade_from), ILLEGAL_ARGUMENT if late else CONFIG)
        if upgrade_from == "0.10.0":
            return 1
        return 2 if LINES.index(upgrade_from) <= LINES.index("1.1") else self.latest

    def refusal(self, upgrade_from: str) -> str:
        if self.explains and upgrade_from in EAGER_LINES:
            return f"no live upgrade from {upgrade_from}, which rebalances eagerly: upgrade to 3.9 first, or stop all"
        return f"invalid value {upgrade_from!r} of upgrade.from: it is none of {', '.join(self.accepts)}"

    def supports(self, upgrade_from: str | None) -> tuple[str, ...]:
        """Rebalance protocols that a member offers (268-38, 268-39)."""
        if upgrade_from in EAGER_LINES and EAGER in self.protocols:
            return (EAGER,)
        return self.protocols


def _before(at: Release, table: Mapping[str, object]) -> str:
    """The boundary that a release is at, or behind."""
    boundaries = list(table)
    return boundaries[bisect_right([Release.parse(each) for each in boundaries], at) - 1]


def _accepted(at: Release, late: bool) -> tuple[str, ...]:
    if at in releases(FIXED):
        return LINES[:1]
    if at < Release.parse("2.0.0"):
        return ()
    last = UPGRADES[_before(at, UPGRADES)]
    if late:
        last = next((value for span, value in LATE.items() if at in releases(span)), last)
    first = LINES.index("2.4") if at >= Release.parse("4.0.0") else 0
    return LINES[first : LINES.index(last) + 1]
