"""Asks the brokers of a running cluster, and only for what describes groups: nothing is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import Context, Value, message
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.connections.connections import ANSWERED_S, NAME, Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed, NotOpened
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.coordinator.admin import coordinator_of, versions_of
from kipcheck.conformance.wire.bodies import api_of, read_body
from kipcheck.conformance.wire.schema import spec

Address: TypeAlias = tuple[str, int]
T = TypeVar("T")
Topics: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""Topic -> for each of its partitions, the racks of its replicas; a replica without a rack adds none."""
METADATA: Final = 5
"""The version that all brokers since 1.0 answer."""
SECURED: Final = "a listener with TLS or SASL needs --config FILE"


class Unanswered(Exception):
    """A broker does not answer; the text says which, what it was asked, and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    id: Annotated[int, wire("nodeId")]
    host: Annotated[str, wire("host")]
    port: Annotated[int, wire("port")]
    rack: Annotated[str | None, wire("rack")]

    @property
    def address(self) -> Address:
        return self.host, self.port


@message("MetadataResponse")
@dataclass(frozen=True, slots=True)
class Metadata:
    nodes: Annotated[tuple[Node, ...], wire("brokers[]")]
    partitions: Annotated[
        tuple[tuple[int, str, int, int, Sequence[int]], ...],
        wire("topics[].errorCode", "topics[].name", "topics[].partitions[].partitionIndex",
             "topics[].partitions[].leaderId", "topics[].partitions[].replicaNodes"),
    ]  # fmt: skip
    """Error and name of the topic, number, leader and replicas."""


CONTEXT: Final = Context({
    "host": Value(str, lambda host: host.removeprefix("/")),
    "end_point": Value(str, lambda found: f"{found['host']}:{found['port']}"),
    "classic": Value(bool, lambda kind: None if kind < 0 else kind == 0),
})  # fmt: skip


class Cluster:
    """Used in one event loop. Errors of its methods: ``Unanswered``."""

    def __init__(self, entry: Address, security: Security = OPEN, answered_s: float = ANSWERED_S) -> None:
        self.entry = entry
        self._answered_s = answered_s
        self._security = security
        self._connections: dict[Address, Connections] = {}
        self._versions: dict[Address, dict[int, tuple[int, int]]] = {}

    async def read(
        self, made: type[T], at: Address, asked: Mapping[str, Any], highest: int | None = None, **others: Any
    ) -> T:
        """The answer in the newest version that broker and kipcheck know; ``highest``: in none above it.

        ``asked``: the body of the request; fields that the version does not have are left out. ``others``: fields of
        the answer that it does not say. Errors: ``Unfit``.
        """
        api = api_of(made)
        version = await self.version(at, api, highest)
        if version is None:
            raise Unanswered(f"{_shown(at)} has no version of {api} that kipcheck knows")
        names = spec(APACHE, f"{api}Request").at(version).names
        try:
            sent = {name: value for name, value in asked.items() if name in names}
            body = await self._at(at).ask(api, version, NAME, sent)
        except (Closed, Garbled) as wrong:
            raise Unanswered(f"{_shown(at)} does not answer {api} v{version}: {wrong}") from None
        return read_body(made, version, body, CONTEXT, **others)

    async def version(self, at: Address, api: str, highest: int | None = None) -> int | None:
        """The version in which ``read`` would ask; None if the broker does not know the request."""
        declared = spec(APACHE, f"{api}Request")
        assert declared.api_key is not None and declared.versions.high is not None
        low, high = (await self._ranges(at)).get(declared.api_key, (0, -1))
        newest = min(high, declared.versions.high, declared.versions.high if highest is None else highest)
        return newest if newest >= max(low, declared.versions.low) else None

    async def _ranges(self, at: Address) -> Mapping[int, tuple[int, int]]:
        if at not in self._versions:
            try:
                self._versions[at] = await versions_of(self._at(at))
            except (Closed, Garbled) as wrong:
                says_all = isinstance(wrong, NotOpened | Garbled) or self._security.file
                advice = "" if says_all else f"; {SECURED}"
                raise Unanswered(f"{_shown(at)} does not answer ApiVersions v0: {wrong}{advice}") from None
        return self._versions[at]

    async def nodes(self) -> tuple[Node, ...]:
        return (await self._described([])).nodes

    async def _described(self, topics: Sequence[str]) -> Metadata:
        """No topic is created."""
        asked = {"topics": [{"name": name} for name in topics], "allowAutoTopicCreation": False}
        return await self.read(Metadata, self.entry, asked, METADATA)

    async def topics(self, names: Sequence[str]) -> Topics:
        """The topics that exist and may be described."""
        if not names:
            return {}
        described = await self._described(names)
        racks = {node.id: node.rack for node in described.nodes}
        found: dict[str, list[frozenset[str]]] = {}
        for error, topic, _, _, replicas in sorted(described.partitions, key=itemgetter(2)):
            if not error:
                found.setdefault(topic, []).append(frozenset(rack for node in replicas if (rack := racks.get(node))))
        return found

    async def leader(self, topic: str, group: str) -> tuple[int, Address] | None:
        """The partition of the group in the internal topic, and the broker that leads it; None if there is none."""
        described = await self._described([topic])
        leaders = {number: leader for _, name, number, leader, _ in described.partitions if name == topic}
        if not leaders:
            return None
        number = partition_of(group, len(leaders))
        at = next((node.address for node in described.nodes if node.id == leaders.get(number)), None)
        return None if at is None else (number, at)

    async def coordinator(self, group: str) -> Address:
        try:
            return await coordinator_of(group, self._at(self.entry))
        except (Closed, Garbled) as wrong:
            raise Unanswered(f"{_shown(self.entry)} names no coordinator of group {group!r}: {wrong}") from None

    async def close(self) -> None:
        for each in self._connections.values():
            await each.close()

    def _at(self, at: Address) -> Connections:
        return self._connections.setdefault(at, Connections(*at, self._security, self._answered_s))


def _shown(at: Address) -> str:
    return f"{at[0]}:{at[1]}"


def partition_of(group: str, partitions: int) -> int:
    """The partition of the internal topic with the records of a group (``GroupMetadataManager.partitionFor``)."""
    found = 0
    data = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        found = (31 * found + int.from_bytes(data[at : at + 2], "big")) & 0xFFFFFFFF
    hashed = found - (1 << 32) if found >> 31 else found
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions
