"""Where Kafka Streams as released does otherwise than KIP-268 means it: each by name, with its releases.

What all releases share, and the draft, is in ``leader`` and ``member``; every branch there asks for one of these. Some
can be foreseen by whoever has read the KIP and the release notes; the others are known from releases only.
"""

from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.release import Release, releases


@final
@dataclass(frozen=True, slots=True)
class Departure:
    id: str
    why: str
    """Requirement or JIRA, and nothing else where neither is known."""
    releases: str
    """That have it, in the grammar of ``core.release``."""
    does: str
    foreseen: bool = False
    """Does it follow from the KIP's text and the release notes? Else it is fitted to what releases do."""

    def __contains__(self, release: Release) -> bool:
        return release in releases(self.releases)


UNFIXED: Final = "0.10.1.0-0.10.2.1, 0.11.0.0-0.11.0.2, 1.0.0-1.0.1, 1.1.0"
"""Releases of metadata version 2 without the fix of KAFKA-6054 (268-41)."""
OWN_VERSION: Final = "2.0.0-2.2.1, 2.3.0"
"""Releases whose leaders tell their own version, as the draft says (268-20)."""

# Who leads

DEAF: Final = Departure(
    "deaf",
    "268-14",
    "0.10.0.0-1.1.1",
    "A leader that receives a version above its own cannot decode it and throws.",
    foreseen=True,
)
ALWAYS_TWO: Final = Departure(
    "always-two",
    "KAFKA-6054, 268-11",
    UNFIXED,
    "A leader answers in version 2 whatever the members use, and one that knows version 1 only throws.",
    foreseen=True,
)
ECHO: Final = Departure(
    "echo",
    "268-30",
    "2.0.0-2.3.1",
    "Where the leader meets a version above its own nothing is assigned afresh: the other members get what they "
    "claimed, and tasks that nobody claimed stay idle until the rebalance that follows.",
)
LEAK: Final = Departure(
    "leak",
    "KAFKA-8649, 268-43",
    OWN_VERSION,
    "That echo gives each consumer what all consumers of its instance claimed, each task once and not once for each "
    "of its partitions.",
)
TAKES_PART: Final = Departure(
    "takes-part",
    "268-31",
    "2.4.0+",
    "A member whose version the leader does not know takes part in the assignment, with what it owns.",
)
IMPROBABLE: Final = Departure(
    "improbable",
    "268-32",
    "2.0.0+",
    "A version above the leader's together with versions below 3 is an error: nobody gets an assignment.",
)
CODED: Final = Departure(
    "coded",
    "268-32",
    "2.7.0+",
    "A leader that cannot assign tells all members error code 3; before, it throws.",
)
COMMON: Final = Departure(
    "common",
    "KAFKA-8649, 268-34",
    "2.2.2, 2.3.1, 2.4.0+",
    "The second int of an assignment is the lowest latest version of all members and the leader, not the leader's own; "
    "and who gets an empty assignment gets it in the version of the others.",
)
ERRORS_IN_LATEST: Final = Departure(
    "errors-in-latest",
    "268-42",
    "2.1.0+",
    "An assignment with an error code is written in the leader's latest version: who does not know that one cannot "
    "decode it, and never sees the code.",
)
ERRORS_FOR_SOME: Final = Departure(
    "errors-for-some",
    "",
    "2.1.0-2.3.1",
    "Members whose version the leader does not know are forgotten where the others are told an error.",
)
SKIPS_WITHOUT_TOPICS: Final = Departure(
    "skips-without-topics",
    "KAFKA-5037",
    "0.10.1.1-2.0.1",
    "A leader that misses a source topic leaves out the tasks that would read it. It throws where the topic is part of "
    "a co-partitioned group, and never returns where the size of a repartition topic hangs on it by two steps.",
)
WAITS_FOR_SIZES: Final = Departure(
    "waits-for-sizes",
    "KAFKA-5037",
    "0.10.0.0-0.10.1.1",
    "A leader never returns either where that size hangs on it by one step.",
)
ONE_STEP: Final = Departure(
    "one-step",
    "",
    "0.10.0.0-0.10.0.1",
    "Only topics that exist give a repartition topic its size: a leader never returns where there is a second "
    "repartition topic behind one that is still to be made.",
)
LETS_UNEVEN_PASS: Final = Departure(
    "lets-uneven-pass",
    "",
    "3.2.0+",
    "Where there are no repartition topics nobody looks whether co-partitioned topics are of one size; before, and "
    "where there are some, the leader throws.",
)
WANDERS: Final = Departure(
    "wanders",
    "KIP-441",
    "2.6.0+",
    "Tasks without state go where the order of the instances puts them, whoever ran them before. All whom the leader "
    "cannot read are an instance with a random place in that order.",
)
STANDBYS_FOR_ALL: Final = Departure(
    "standbys-for-all",
    "",
    "0.10.0.0-2.5.1",
    "Tasks without state get standbys too.",
)

# Who follows

SILENT: Final = Departure(
    "silent",
    "268-36",
    OWN_VERSION,
    "Nobody triggers the last rebalance: the group changes over at the next one that has another cause.",
)
EVERYBODY: Final = Departure(
    "everybody",
    "268-35, 268-37",
    "2.2.2, 2.3.1, 2.4.0+",
    "Each member whose used version rises asks for a rebalance, whoever leads; an assignment below the used version "
    "makes it take the second int, and one whose second int is above its latest is refused with an error.",
)
UNCHECKED: Final = Departure(
    "unchecked",
    "KAFKA-8649, 268-33",
    OWN_VERSION,
    "A member takes the leader's version as its own without a look at what it knows, and throws when it subscribes.",
)
PROBES_IN_VAIN: Final = Departure(
    "probes-in-vain",
    "268-24",
    OWN_VERSION,
    "A member that gets a lower version from a leader that knows its own one probes, in that same version: as long as "
    "an old member is there, it never ends.",
)
NOT_APPLIED: Final = Departure(
    "not-applied",
    "KAFKA-8972, 268-44",
    "2.0.0-2.3.1",
    "A member that is about to rejoin with another version keeps its old tasks, though its consumer already has the "
    "new partitions.",
)
STAYS_IN: Final = Departure(
    "stays-in",
    "268-18",
    "2.6.0+",
    "A member that rejoins asks its consumer to, and stays in the group: if its subscription has not changed, the "
    "coordinator may skip the rebalance (2.6.0, KAFKA-10455, 268-45). Before, it leaves and comes back.",
)
LOOKS_FOR_ITSELF: Final = Departure(
    "looks-for-itself",
    "KAFKA-9568",
    "2.6.0+",
    "A member with an end point that is not among those of the assignment rejoins.",
)
PAIRS_LOOSELY: Final = Departure(
    "pairs-loosely",
    "",
    "0.10.0.0-0.10.1.1",
    "More tasks than partitions are no error.",
)

# What may be configured

REFUSES_LAST: Final = Departure(
    "refuses-last",
    "268-55",
    "3.5.0-3.5.1, 3.6.0-3.6.1",
    "upgrade.from of the line before is refused: 3.5 by its configuration, and 3.4 when the assignor is configured.",
)

DEPARTURES: Final = (
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


def departures(release: Release, fitted: bool = True) -> frozenset[Departure]:
    """Those of a release; without the fitted ones, what one would foresee of it."""
    return frozenset(each for each in DEPARTURES if release in each and (fitted or each.foreseen))
