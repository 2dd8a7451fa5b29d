"""The deviations of released Kafka Streams from the intent of KIP-268, each with its releases.

``leader`` and ``member`` implement the common behaviour and the draft; each branch there checks one of these. Some
deviations can be predicted from the KIP and the release notes; the others are known only from releases.
"""

from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import Release, releases


@final
@dataclass(frozen=True, slots=True)
class Deviation:
    id: str
    why: str
    """Requirement ids or JIRA issues; empty if neither is known."""
    releases: str
    """Releases with the deviation, in the grammar of ``releases``."""
    does: str
    foreseen: bool = False
    """Whether it follows from the KIP and the release notes; otherwise it is fitted to the behaviour of releases."""

    def __contains__(self, release: Release) -> bool:
        return release in releases(self.releases)


UNFIXED: Final = span("without-fix-of-kafka-6054")
"""Releases of metadata version 2 without the fix of KAFKA-6054 (268-41)."""
OWN_VERSION: Final = span("own-version-to-members")
"""Releases whose leaders send their own version, as the draft specifies (268-20)."""

# Leaders

DEAF: Final = Deviation(
    "deaf",
    "268-14",
    "0.10.0.0-1.1.1",
    "A leader that receives a version above its own cannot decode it and throws.",
    foreseen=True,
)
ALWAYS_TWO: Final = Deviation(
    "always-two",
    "KAFKA-6054, 268-11",
    UNFIXED,
    "A leader answers in version 2 whatever the members use, and one that knows version 1 only throws.",
    foreseen=True,
)
ECHO: Final = Deviation(
    "echo",
    "268-30",
    "2.0.0-2.3.1",
    "A leader that receives a version above its own assigns nothing new: the other members get the tasks they claimed, "
    "and unclaimed tasks stay idle until the next rebalance.",
)
LEAK: Final = Deviation(
    "leak",
    "KAFKA-8649, 268-43",
    OWN_VERSION,
    "In that case each consumer gets the tasks claimed by all consumers of its instance, with each task listed once, "
    "not once for each of its partitions.",
)
TAKES_PART: Final = Deviation(
    "takes-part",
    "268-31",
    "2.4.0+",
    "A member whose version the leader does not know takes part in the assignment, with the partitions it owns.",
)
IMPROBABLE: Final = Deviation(
    "improbable",
    "268-32",
    "2.0.0+",
    "A version above the leader's together with versions below 3 is an error: no member gets an assignment.",
)
CODED: Final = Deviation(
    "coded",
    "268-32",
    "2.7.0+",
    "A leader that cannot assign sends error code 3 to all members; before, it throws.",
)
COMMON: Final = Deviation(
    "common",
    "KAFKA-8649, 268-34",
    "2.2.2, 2.3.1, 2.4.0+",
    "The second int of an assignment is the lowest latest version of all members and the leader, not the leader's own; "
    "and an empty assignment has the version of the other assignments.",
)
ERRORS_IN_LATEST: Final = Deviation(
    "errors-in-latest",
    "268-42",
    "2.1.0+",
    "An assignment with an error code is written in the leader's latest version: a member without that version cannot "
    "decode it, and never gets the code.",
)
ERRORS_FOR_SOME: Final = Deviation(
    "errors-for-some",
    "",
    "2.1.0-2.3.1",
    "Members whose version the leader does not know get no assignment when the others get an error.",
)
SKIPS_WITHOUT_TOPICS: Final = Deviation(
    "skips-without-topics",
    "KAFKA-5037",
    "0.10.1.1-2.0.1",
    "If a source topic is missing, the leader leaves out the tasks that read it. It throws if the topic is part of a "
    "co-partitioned group, and never returns if the size of a repartition topic depends on it through two steps.",
)
WAITS_FOR_SIZES: Final = Deviation(
    "waits-for-sizes",
    "KAFKA-5037",
    "0.10.0.0-0.10.1.1",
    "The leader also never returns if that size depends on the topic through one step.",
)
ONE_STEP: Final = Deviation(
    "one-step",
    "",
    "0.10.0.0-0.10.0.1",
    "Only existing topics determine the size of a repartition topic: the leader never returns if a repartition topic "
    "depends on another one that does not exist yet.",
)
LETS_UNEVEN_PASS: Final = Deviation(
    "lets-uneven-pass",
    "",
    "3.2.0+",
    "Without repartition topics, the leader does not check that co-partitioned topics have equal sizes; before, and "
    "with repartition topics, it throws.",
)
WANDERS: Final = Deviation(
    "wanders",
    "KIP-441",
    "2.6.0+",
    "Stateless tasks are assigned in the order of the instances, whichever ran them before. All members that the "
    "leader cannot decode form one instance with a random place in that order.",
)
STANDBYS_FOR_ALL: Final = Deviation(
    "standbys-for-all",
    "",
    "0.10.0.0-2.5.1",
    "Stateless tasks get standbys too.",
)

# Members

SILENT: Final = Deviation(
    "silent",
    "268-36",
    OWN_VERSION,
    "No member triggers the last rebalance: the group switches versions at the next rebalance with another cause.",
)
EVERYBODY: Final = Deviation(
    "everybody",
    "268-35, 268-37",
    "2.2.2, 2.3.1, 2.4.0+",
    "Each member whose used version rises requests a rebalance, whichever leads; on an assignment below its used "
    "version it adopts the second int, and it rejects one whose second int is above its latest with an error.",
)
UNCHECKED: Final = Deviation(
    "unchecked",
    "KAFKA-8649, 268-33",
    OWN_VERSION,
    "A member adopts the leader's version even if it does not know it, and throws when it subscribes.",
)
PROBES_IN_VAIN: Final = Deviation(
    "probes-in-vain",
    "268-24",
    OWN_VERSION,
    "A member that gets a lower version from a leader that knows the member's version probes with that same version: "
    "probing does not end while the group has an old member.",
)
NOT_APPLIED: Final = Deviation(
    "not-applied",
    "KAFKA-8972, 268-44",
    "2.0.0-2.3.1",
    "A member that is about to rejoin with another version keeps its old tasks, although its consumer already has the "
    "new partitions.",
)
STAYS_IN: Final = Deviation(
    "stays-in",
    "268-18",
    "2.6.0+",
    "A member rejoins through its consumer, and stays in the group: if its subscription has not changed, the "
    "coordinator may skip the rebalance (2.6.0, KAFKA-10455, 268-45). Before, it leaves and joins again.",
)
LOOKS_FOR_ITSELF: Final = Deviation(
    "looks-for-itself",
    "KAFKA-9568",
    "2.6.0+",
    "A member with an end point that is not among those of the assignment rejoins.",
)
PAIRS_LOOSELY: Final = Deviation(
    "pairs-loosely",
    "",
    "0.10.0.0-0.10.1.1",
    "More tasks than partitions are not an error.",
)

# Configuration

REFUSES_LAST: Final = Deviation(
    "refuses-last",
    "268-55",
    "3.5.0-3.5.1, 3.6.0-3.6.1",
    "upgrade.from of the previous line is rejected: 3.5 by its configuration, and 3.4 when the assignor is configured.",
)

DEVIATIONS: Final = (
    DEAF,
    ALWAYS_TWO,
    ECHO,
    LEAK,
    TAKES_PART,
    IMPROBABLE,
    CODED,
    COMMON,
    ERRORS_IN_LATEST,
    ERRORS_FOR_SOME,
    SKIPS_WITHOUT_TOPICS,
    WAITS_FOR_SIZES,
    ONE_STEP,
    LETS_UNEVEN_PASS,
    WANDERS,
    STANDBYS_FOR_ALL,
    SILENT,
    EVERYBODY,
    UNCHECKED,
    PROBES_IN_VAIN,
    NOT_APPLIED,
    STAYS_IN,
    LOOKS_FOR_ITSELF,
    PAIRS_LOOSELY,
    REFUSES_LAST,
)


UNOWED: Final = frozenset(
    {
        LEAK, ERRORS_IN_LATEST, SKIPS_WITHOUT_TOPICS, WAITS_FOR_SIZES, ONE_STEP, LETS_UNEVEN_PASS, STANDBYS_FOR_ALL,
        UNCHECKED, PROBES_IN_VAIN, REFUSES_LAST,
    }
)  # fmt: skip
"""Deviations that break a requirement, or do what none needs. Others are what requirements demand of these releases;
``ALWAYS_TWO`` breaks one too (268-11) and lies in the codec as well: no drawn script has those releases.
"""


def deviations(release: Release, fitted: bool = True) -> frozenset[Deviation]:
    """The deviations of a release; without ``fitted``, only those predictable from the KIP and the release notes."""
    return frozenset(each for each in DEVIATIONS if release in each and (fitted or each.foreseen))
