"""Streams assignors in released jars, for tests: several releases in one JVM, of which nothing is kept on disk."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.answer_cache import AnswerCache
from kipcheck.conformance.clients.java.streams_members import JarBinary, Jars
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.blobs import read_assignment
from kipcheck.conformance.protocols.streams.model.members import (
    AssignmentInfo,
    Joining,
    Memory,
    Settings,
    Share,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.ops import STATELESS
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport.pipe import Pipe

THREE: Final = (Topic("t", 3),)


class Members:
    """Of some releases, in one JVM."""

    def __init__(self, releases: Sequence[str]) -> None:
        programs.program()
        needed = {release: programs.coordinates(release, ("streams",)) for release in releases}
        found = maven.fetch({each: None for group in needed.values() for each in group})
        self.pipe = Pipe(
            programs.command({release: [found[each] for each in group] for release, group in needed.items()})
        )
        self.jars = Jars(lambda: self.pipe, dict.fromkeys(releases, ""), AnswerCache(None))

    def member(self, release: str, name: str = "a", topology: Topology = STATELESS, **more: Any) -> JarBinary:
        """A thread of the instance of that name."""
        return self.jars.binary(Settings(release, topology, str(uuid5(NAMESPACE_OID, name)), **more))

    def raw(self, *orders: Mapping[str, Any], cpu_ms: int = 5000) -> list[dict[str, Any]]:
        """Past all memory of answers."""
        cases = [{"n": n, **order} for n, order in enumerate(orders)]
        reported = self.pipe.exchange(
            {"type": "batch", "id": 1, "deadline_ms": 120_000, "cpu_ms": cpu_ms, "cases": cases}, 120
        )
        return [{key: value for key, value in each.items() if key != "n"} for each in reported["results"]]


@contextmanager
def opened(releases: Sequence[str]) -> Iterator[Members]:
    members = Members(releases)
    try:
        yield members
    finally:
        members.jars.kill()
        members.pipe.kill()


def tasks(text: str) -> tuple[TaskId, ...]:
    return tuple(map(TaskId.parse, text.split()))


def partitions(text: str) -> Partitions:
    """``t0 t2``"""
    return tuple((each[0], int(each[1:])) for each in text.split())


def joining(binary: JarBinary, id: str, memory: Memory | None = None) -> Joining:
    topics = tuple(sorted(binary.settings.topology.source_topics))
    return Joining(id, topics, binary.subscribe(memory or binary.initial(), topics)[1])


def led(leader: JarBinary, *members: Joining, topics: Sequence[Topic] = THREE) -> Mapping[str, Share]:
    return leader.lead(leader.initial(), tuple(topics), members)[1]


def reported(share: Share, release: str) -> AssignmentInfo:
    assert isinstance(share.data, bytes)
    return read_assignment(share.data, release)


def future(latest: int) -> bytes:
    """What a leader finds of a member that knows one version more."""
    return struct.pack(">ii", latest + 1, latest + 1) + bytes(24)
