"""What classic members send in their metadata and assignments, as texts of the machine."""

from collections.abc import Iterator

from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.migration.ops import ClassicSync
from kipcheck.conformance.protocols.reconciled.terms import Partitions


def metadata(topics: tuple[str, ...], owned: Partitions) -> str:
    return f"{','.join(topics)}|{printed(owned)}"


def metadata_of(text: str) -> tuple[tuple[str, ...], Partitions]:
    topics, _, owned = text.partition("|")
    return tuple(filter(None, topics.split(","))), partitions_of(owned)


def printed(partitions: Partitions) -> str:
    return ",".join(f"{topic}-{number}" for topic, number in partitions)


def partitions_of(text: str) -> Partitions:
    pairs = (each.rpartition("-") for each in text.split(",") if each)
    return tuple(sorted((topic, int(number)) for topic, _, number in pairs))


def dealt(sync: ClassicSync) -> Iterator[tuple[str, Partitions]]:
    """The partitions of topics, dealt to clients in turn."""
    partitions = [(topic, each) for topic, size in TOPICS.items() if topic in sync.topics for each in range(size)]
    for at, name in enumerate(sync.over):
        yield name, tuple(partitions[at :: len(sync.over)])
