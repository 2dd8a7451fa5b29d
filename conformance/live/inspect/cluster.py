"""Asks the brokers of a running cluster, and only for what describes groups: nothing is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from kipcheck.conformance.core.operations.wire_form import Context, Value
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.connections.connections import ANSWERED_S, NAME, Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed, NotOpened
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.coordinator.admin import coordinator_of, partition_of, versions_of
from kipcheck.conformance.wire.bodies import Places, Rows, api_of, read_body, values_in
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
    id: int
    address: Address
    rack: str | None


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

    async def read(self, made: type[T], at: Address, asked: Mapping[str, Any], **others: Any) -> T:
        """The answer in the newest version that broker and kipcheck know. ``others``: fields that it has not.

        ``asked``: the body of the request; fields that the version does not have are left out. Errors: ``Unfit``.
        """
        version, body = await self._ask(at, api_of(made), asked)
        return read_body(made, version, body, CONTEXT, **others)

    async def values(
        self, at: Address, api: str, asked: Mapping[str, Any], *places: Places, highest: int | None = None
    ) -> tuple[Any, ...]:
        """What the answer has at these places; ``highest``: in no version above it."""
        version, body = await self._ask(at, api, asked, highest)
        return values_in(f"{api}Response", version, body, *places)

    async def _ask(
        self, at: Address, api: str, asked: Mapping[str, Any], highest: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        version = await self.version(at, api, highest)
        if version is None:
            raise Unanswered(f"{_shown(at)} has no version of {api} that kipcheck knows")
        names = spec(APACHE, f"{api}Request").at(version).names
        try:
            sent = {name: value for name, value in asked.items() if name in names}
            return version, await self._at(at).ask(api, version, NAME, sent)
        except (Closed, Garbled) as wrong:
            raise Unanswered(f"{_shown(at)} does not answer {api} v{version}: {wrong}") from None

    async def version(self, at: Address, api: str, highest: int | None = None) -> int | None:
        """The version in which a request would be sent; None if the broker does not know the request."""
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
        return (await self._described([]))[0]

    async def _described(self, topics: Sequence[str]) -> tuple[tuple[Node, ...], Rows]:
        """The brokers, and of each partition error, name of the topic, number, leader and replicas."""
        asked = {"topics": [{"name": name} for name in topics], "allowAutoTopicCreation": False}
        places = [f"topics[].{name}" for name in ("errorCode", "name")]
        places += [f"topics[].partitions[].{name}" for name in ("partitionIndex", "leaderId", "replicaNodes")]
        brokers = tuple(f"brokers[].{name}" for name in ("nodeId", "host", "port", "rack"))
        nodes, rows = await self.values(self.entry, "Metadata", asked, brokers, tuple(places), highest=METADATA)
        return tuple(Node(id, (host, port), rack) for id, host, port, rack in nodes), rows

    async def topics(self, names: Sequence[str]) -> Topics:
        """The topics that exist and may be described."""
        nodes, rows = await self._described(names) if names else ((), ())
        racks = {node.id: node.rack for node in nodes}
        found: dict[str, list[frozenset[str]]] = {}
        for error, topic, _, _, replicas in sorted(rows, key=itemgetter(2)):
            if not error:
                found.setdefault(topic, []).append(frozenset(rack for node in replicas if (rack := racks.get(node))))
        return found

    async def leader(self, topic: str, group: str) -> tuple[int, Address] | None:
        """The partition of the group in the internal topic, and the broker that leads it; None if there is none."""
        nodes, rows = await self._described([topic])
        leaders = {number: leader for _, name, number, leader, _ in rows if name == topic}
        number = partition_of(group, len(leaders)) if leaders else -1
        at = next((node.address for node in nodes if node.id == leaders.get(number)), None)
        return None if at is None else (number, at)

    async def coordinator(self, group: str) -> Address:
        try:
            return await coordinator_of(group, self._at(self.entry))
        except (Closed, Garbled) as wrong:
            raise Unanswered(f"{_shown(self.entry)} names no coordinator of group {group!r}: {wrong}") from None

    async def close(self) -> None:
        for connections in self._connections.values():
            await connections.close()

    def _at(self, at: Address) -> Connections:
        return self._connections.setdefault(at, Connections(*at, self._security, self._answered_s))


def _shown(at: Address) -> str:
    return f"{at[0]}:{at[1]}"
