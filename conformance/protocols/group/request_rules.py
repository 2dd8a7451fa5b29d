"""Compares what a member's requests carry with what is right, for consumers of this process and for live clients.

Each family's invariants decide what is right by what they observe. How a request differs from that is decided here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kipcheck.conformance.protocols.group.ops import NO_GENERATION

CONSUMER: Final = "consumer"
"""The protocol type of consumers."""
PROTOCOL_SINCE: Final = 5
"""The version of SyncGroup that has the protocol type and the protocol (KIP-559)."""


class Identity(NamedTuple):
    """The member id and generation that requests have to carry."""

    member: str = ""
    generation: int = NO_GENERATION

    @property
    def is_out(self) -> bool:
        return self.generation == NO_GENERATION or not self.member

    def differs(self, right: "Identity") -> str:
        """Which part is wrong, and how, without ids and numbers."""
        if self.member != right.member:
            return way(self.member or None, right.member or None, "no id", "an id", "another id")
        if self.generation == NO_GENERATION:
            return "no generation"
        if right.generation == NO_GENERATION:
            return "a generation"
        return "an older generation" if self.generation < right.generation else "a later generation"


NO_IDENTITY: Final = Identity()


def way(
    carried: object, right: object, absent: str = "absent", present: str = "present", other: str = "another"
) -> str:
    """How a field differs from what is right. None: it is left out."""
    return absent if carried is None else present if right is None else other


def unequal(carried: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ from what is right: name, what is carried, what is right."""
    return ((name, carried.get(name), value) for name, value in right.items() if carried.get(name) != value)


def chosen_protocol(protocol: str | None) -> dict[str, str | None]:
    """The type and the protocol of SyncGroup in a generation with this protocol (grp-86)."""
    return {"type": CONSUMER, "protocol": protocol}


class Shares(NamedTuple):
    """Of the SyncGroup of a leader: member ids, sorted (grp-12, grp-67)."""

    missing: tuple[str, ...]
    """Members without an assignment."""
    strangers: tuple[str, ...]
    """Assignments of no member."""
    twice: tuple[str, ...]


def shares(named: Sequence[str], members: Collection[str]) -> Shares:
    """``named``: the members with an assignment; ``members``: those of the answer to JoinGroup, none for a follower."""
    missing, strangers = {*members} - {*named}, {*named} - {*members}
    return Shares(
        tuple(sorted(missing)), tuple(sorted(strangers)), tuple(sorted({id for id in named if named.count(id) > 1}))
    )
