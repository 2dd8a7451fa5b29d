"""The topologies of conversations about streams groups, by the names of their subtopologies.

A subtopology reads the topic of its name. ``s`` and ``w`` read topic t; ``s`` has a store with a changelog topic of its
own, and ``w`` takes topic u for its changelog, which has another number of partitions. ``r`` reads a repartition topic
that all others write; alone it reads a topic of its name, which does not exist.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kipcheck.conformance.protocols.consumer_group.model import TOPICS

REPARTITIONED: Final = "r"
STATEFUL: Final = ("s", "w")
"""Those with a changelog."""
CHANGELOG: Final = "s-changelog"
"""Of ``s``: the broker creates it, like the repartition topic."""
WRONG: Final = "w"


def source(subtopology: str) -> str:
    """The topic that it reads, unless that is a repartition topic."""
    return "t" if subtopology in STATEFUL else subtopology


def repartitions(topology: Iterable[str]) -> bool:
    names = {*topology}
    return REPARTITIONED in names and len(names) > 1


def missing_sources(topology: Iterable[str]) -> list[str]:
    """The source topics that do not exist. Sorted."""
    names = [*topology]
    internal = (REPARTITIONED,) if repartitions(names) else ()
    return sorted({source(each) for each in names if each not in internal} - {*TOPICS})


def sizes(topology: Iterable[str]) -> Mapping[str, int]:
    """The number of tasks of each subtopology, if all source topics exist and have the right number of partitions."""
    names = [*topology]
    found = {each: TOPICS[source(each)] for each in names if source(each) in TOPICS}
    if repartitions(names):
        found[REPARTITIONED] = max((size for each, size in found.items()), default=0)
    return found


def internal_topics(topology: Iterable[str]) -> Mapping[str, int]:
    """The topics that the broker creates, with their numbers of partitions; none where a source topic is missing."""
    names = [*topology]
    if missing_sources(names) or WRONG in names:
        return {}
    found = sizes(names)
    topics = {REPARTITIONED: found[REPARTITIONED]} if repartitions(names) else {}
    return topics | ({CHANGELOG: found["s"]} if "s" in names else {})
