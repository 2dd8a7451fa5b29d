"""Asks the brokers of a running cluster, and only for what describes groups: nothing is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.connections.connections import ANSWERED_S, NAME, Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed, NotOpened
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.coordinator.admin import coordinator_of, versions_of
from kipcheck.conformance.wire.schema import spec

Address: TypeAlias = tuple[str, int]
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


class Cluster:
    """Used in one event loop. Errors of its methods: ``Unanswered``."""

    def __init__(self, entry: Address, security: Security = OPEN, answered_s: float = ANSWERED_S) -> None:
        self.entry = entry
        self._answered_s = answered_s
        self._security = security
        self._connections: dict[Address, Connections] = {}
        self._versions: dict[Address, dict[int, tuple[int, int]]] = {}

    async def ask(self, at: Address, api: str, body: Mapping[str, Any], highest: int | None = None) -> dict[str, Any]:
        """The answer in the newest version that broker and kipcheck know; ``highest``: in none above it.

        ``body``: fields that the version does not have are left out.
        """
        version = await self.version(at, api, highest)
        if version is None:
            raise Unanswered(f"{_shown(at)} has no version of {api} that kipcheck knows")
        names = spec(APACHE, f"{api}Request").at(version).names
        try:
            found = {name: each for name, each in body.items() if name in names}
            return await self._at(at).ask(api, version, NAME, found)
        except (Closed, Garbled) as wrong:
            raise Unanswered(f"{_shown(at)} does not answer {api} v{version}: {wrong}") from None

    async def version(self, at: Address, api: str, highest: int | None = None) -> int | None:
        """The version in which ``ask`` would ask; None if the broker does not know the request."""
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
        found = await self.ask(self.entry, "Metadata", {"topics": []}, METADATA)
        return tuple(Node(each["nodeId"], (each["host"], each["port"]), each.get("rack")) for each in found["brokers"])

    async def topics(self, names: Sequence[str]) -> Topics:
        """The topics that exist and may be described; none is created."""
        if not names:
            return {}
        asked = {"topics": [{"name": each} for each in names], "allowAutoTopicCreation": False}
        found = await self.ask(self.entry, "Metadata", asked, METADATA)
        racks = {each["nodeId"]: each.get("rack") for each in found["brokers"]}
        return {
            each["name"]: [
                frozenset(rack for node in part["replicaNodes"] if (rack := racks.get(node)))
                for part in sorted(each["partitions"], key=lambda part: int(part["partitionIndex"]))
            ]
            for each in found["topics"]
            if not each["errorCode"]
        }

    async def leader(self, topic: str, group: str) -> tuple[int, Address] | None:
        """The partition of the group in the internal topic, and the broker that leads it; None if there is none."""
        asked = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
        found = await self.ask(self.entry, "Metadata", asked, METADATA)
        nodes = {each["nodeId"]: (each["host"], each["port"]) for each in found["brokers"]}
        parts = [part for each in found["topics"] if each["name"] == topic for part in each["partitions"]]
        if not parts:
            return None
        number = partition_of(group, len(parts))
        by_number = {int(part["partitionIndex"]): part["leaderId"] for part in parts}
        at = nodes.get(by_number.get(number))
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
