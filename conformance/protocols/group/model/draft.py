"""KIP-429's draft of the coordinator: the member with the highest protocol version leads.

The draft's JoinGroup v5 ends in a protocol version, where the released v5 has an instance id. So there are no static
members; otherwise it behaves as the release that the draft was written against.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.environment_moves import CLIENTS, Client
from kipcheck.conformance.protocols.group.model.messages import Commit, Heartbeat, Join, Leave, Request, Sync
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.state import Member, State

OVER: Final = named("kip-429-base")
VERSION_SINCE: Final = 5
"""JoinGroup."""
NO_VERSION: Final = -1
"""The protocol version of a member that sends none: below all others."""


def draft_rules() -> Rules:
    released = Rules.of(OVER)
    return replace(released, versions=MappingProxyType({**released.versions, Join: range(VERSION_SINCE + 1)}))


class DraftCoordinator(Coordinator):
    def __init__(self, config: Config = DEFAULT, clients: tuple[Client, ...] = CLIENTS) -> None:
        super().__init__(draft_rules(), config, clients)

    def expressible(self, request: Request) -> bool:
        match request:
            case Join():
                has_version = request.protocol_version is not None
                return request.instance is None and has_version <= (request.version >= VERSION_SINCE)
            case Sync() | Heartbeat() | Commit():
                return request.instance is None
            case Leave():
                return super().expressible(request)
            case _:
                return True

    def keeps_leader(self, state: State, leader: Member) -> bool:
        """Whether the former leader stays leader: if no member has a higher version (429-24)."""
        if not super().keeps_leader(state, leader):
            return False
        return all(_version(each) <= _version(leader) for each in state.members)

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        """The first to join among those with the highest version (429-08, 429-12, 429-24)."""
        highest = max(map(_version, candidates))
        return next(each for each in candidates if _version(each) == highest)


def _version(member: Member) -> int:
    return NO_VERSION if member.protocol_version is None else member.protocol_version
