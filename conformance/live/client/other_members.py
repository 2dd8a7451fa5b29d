"""The other members of a scripted group, and the bytes of their subscriptions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.client.ops import Member
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, spec

TOPIC: Final = "t"
COOPERATIVE, STICKY = "cooperative-sticky", "sticky"
NEWEST: Final = 3
FUTURE: Final = 9
"""A version that no release has. Readers take what they know of it (KIP-429)."""
NOISE: Final = bytes.fromhex("deadbeef00ff7fff")
HUGE: Final = 200_000
"""Bytes of user data, below the largest size of a record of the group."""
Partitions: TypeAlias = Mapping[str, tuple[int, ...]]
"""Topic -> partitions."""


def _layout(message: str, version: int) -> Layout:
    return spec(APACHE, message).at(version)


@dataclass(slots=True)
class Other:
    """A member that is not the client."""

    id: str
    wants: Member = Member(topics=("t",))  # noqa: RUF009 - immutable
    given: Partitions = field(default_factory=dict)
    """What a client that leads assigned to it last."""

    def metadata(self, protocol: str, generation: int) -> bytes:
        """Its subscription. ``generation``: the last one; an assignor that keeps partitions is shown what it had."""
        wants = self.wants
        claimed: Partitions = {TOPIC: wants.owned} if wants.owned else self.given
        at = generation - wants.back
        version = max(wants.version, 1) if protocol == COOPERATIVE else wants.version
        if wants.damage == "future":
            version = NEWEST  # a later version has all fields of this one first
        body = {
            "topics": list(wants.topics),
            "userData": self._user_data(protocol, claimed, at),
            "ownedPartitions": listed(claimed) if protocol == COOPERATIVE or wants.owned else [],
            "generationId": at,
            "rackId": "r" if version >= NEWEST else None,
        }
        known = {"topics", "userData", *(("ownedPartitions",) if version else ()),
                 *(("generationId",) if version > 1 else ()), *(("rackId",) if version > 2 else ())}  # fmt: skip
        layout = _layout("ConsumerProtocolSubscription", version)
        return self._damaged(layout.encode({name: value for name, value in body.items() if name in known}))

    def _user_data(self, protocol: str, claimed: Partitions, generation: int) -> bytes | None:
        match self.wants.data:
            case "noise":
                return NOISE
            case "huge":
                return bytes(HUGE)
            case "none" if protocol != STICKY or not claimed:
                return None
        body = {"previousAssignment": listed(claimed), "generation": generation}
        return _layout("StickyAssignorUserData", 1).encode(body)

    def _damaged(self, data: bytes) -> bytes:
        match self.wants.damage:
            case "future":
                return FUTURE.to_bytes(2, "big") + data[2:] + NOISE
            case "tail":
                return data + NOISE
            case "cut":
                return data[: len(data) // 2]
            case "empty":
                return b""
            case "long":
                return data[:2] + (2**31 - 1).to_bytes(4, "big") + data[6:]
            case "negative":
                return data[:2] + (-2).to_bytes(4, "big", signed=True) + data[6:]
            case "whole":
                return data

    def take(self, assignment: bytes) -> bool:
        """Takes what the leader assigned to it. Returns whether it had something that it does not have now."""
        before, self.given = self.given, partitions_in(assignment)
        return any(set(parts) - {*self.given.get(topic, ())} for topic, parts in before.items())


def listed(partitions: Partitions) -> list[dict[str, object]]:
    return [{"topic": topic, "partitions": list(each)} for topic, each in partitions.items()]


def assignment(partitions: Partitions) -> bytes:
    body = {"assignedPartitions": listed({topic: each for topic, each in partitions.items() if each}), "userData": None}
    return _layout("ConsumerProtocolAssignment", 0).encode(body)


def partitions_in(data: bytes) -> Partitions:
    """The partitions of an assignment by topic; empty for one that cannot be read."""
    if len(data) < 2:
        return {}
    version = min(max(int.from_bytes(data[:2], "big", signed=True), 0), 3)
    try:
        found = _layout("ConsumerProtocolAssignment", version).decode(data, lenient=True)
    except Refused:
        return {}
    by_topic: dict[str, tuple[int, ...]] = {}
    for each in found["assignedPartitions"]:
        by_topic[each["topic"]] = (*by_topic.get(each["topic"], ()), *each["partitions"])
    return by_topic


def pairs(partitions: Partitions) -> Iterable[tuple[str, int]]:
    return ((topic, each) for topic, parts in partitions.items() for each in parts)


def named(partitions: Partitions) -> Iterable[str]:
    """``t-0`` and so on."""
    return (f"{topic}-{each}" for topic, each in pairs(partitions))
