"""Converts topologies of Streams applications to and from JSON, for files, steps of scripts, and requests to jars."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.model.members import Store, Subtopology, Topology


def plain_topology(topology: Topology) -> dict[str, Any]:
    return {"subtopologies": [_plain(each) for each in topology.subtopologies], "standbys": topology.standbys}


def topology_of(plain: Mapping[str, Any]) -> Topology:
    """Errors: KeyError, TypeError or ValueError for a malformed topology."""
    return Topology(tuple(map(_subtopology_of, plain["subtopologies"])), int(plain.get("standbys", 0)))


def plain_topics(topics: tuple[Topic, ...]) -> dict[str, int]:
    return {each.name: each.partitions for each in topics}


def topics_of(plain: Mapping[str, int]) -> tuple[Topic, ...]:
    return tuple(Topic(name, int(partitions)) for name, partitions in plain.items())


def _plain(subtopology: Subtopology) -> dict[str, Any]:
    return {
        "id": subtopology.id,
        "sources": [*subtopology.sources],
        "repartition": [*subtopology.repartition],
        "stores": [{"name": each.name, "logged": each.logged} for each in subtopology.stores],
        "copartition": [[*each] for each in subtopology.copartition],
        "topology": subtopology.topology,
    }


def _subtopology_of(plain: Mapping[str, Any]) -> Subtopology:
    return Subtopology(
        int(plain["id"]),
        tuple(plain["sources"]),
        tuple(plain.get("repartition", ())),
        tuple(Store(each["name"], bool(each.get("logged", True))) for each in plain.get("stores", ())),
        tuple(map(tuple, plain.get("copartition", ()))),
        plain.get("topology"),
    )
