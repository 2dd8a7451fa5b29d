"""The participants in a conversation with a group coordinator, the profile of its verbs, and views of the group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Final

from kipcheck.conformance.protocols.group.model.names import OLD
from kipcheck.conformance.protocols.group.model.service import Served
from kipcheck.conformance.protocols.group.model.state import Member, State
from kipcheck.conformance.protocols.group.strategies.events import CLIENTS, INSTANCES, LISTS

SESSIONS = (10_000, 6_000, 30_000)
"""Session timeouts that a group accepts."""
QUIET: Final[Mapping[str, float]] = {
    "heartbeat": 8, "elapse": 8, "sync": 2, "join": 0.5, "leave": 0.3, "unload": 0.3, "delete-group": 0.2,
}  # fmt: skip
"""A stable group in which little changes."""
MOVING: Final[Mapping[str, float]] = {
    "unload": 12, "load": 20, "loaded": 20, "describe-group": 12, "fetch": 6, "heartbeat": 2, "commit": 2, "sync": 2,
    "elapse": 0.3, "leave": 0.3,
}  # fmt: skip
"""The partition of the group moves, and clients observe it."""
FAILING: Final[Mapping[str, float]] = {"fail-write": 4, "fetch": 4, "commit": 3}
"""Appends fail, and clients look at what is left."""
PROFILES: Final[tuple[Mapping[str, float], ...]] = (
    {},
    QUIET,
    MOVING,
    {"describe-group": 12, "elapse": 0.5, "commit": 3, "leave": 0.5, "unload": 0.5},
    FAILING,
)
"""Factors for the likelihood of verbs, once there is a generation."""
MANY_VERSIONS = 0.2
"""Share of conversations with requests in any version."""
HIGHEST: Final = 0.99
"""Chooses the highest version of JoinGroup."""
EXTREME_VERSIONS = 0.25
"""Share of conversations with requests in the lowest and the highest version alone; the others use the usual ones."""


@dataclass(frozen=True, slots=True)
class Participants:
    """The participants in a conversation."""

    clients: tuple[str, ...]
    """Other clients take part now and then."""
    instances: dict[str, str | None]
    sessions: dict[str, int]
    versions: dict[str, float]
    """Of JoinGroup, as a share of the supported versions."""
    mixed: bool
    """Whether other requests use any version."""
    rebalance_ms: int
    """The rebalance timeout of most members."""
    profile: Mapping[str, float]
    plural: bool
    """Whether most members support several protocols."""
    uniform: bool = False
    """Whether all members have the same rebalance timeout."""
    lowest: float | None = None
    """The share of requests in the lowest version, while others use the highest; None: not these two alone."""

    @property
    def appends_fail(self) -> bool:
        """Whether appends that replace or remove offsets are likely to fail."""
        return self.profile is FAILING

    @property
    def sessions_outlast_rebalances(self) -> bool:
        """Whether sessions outlast rebalances, so that a rebalance ends before a late member's session does."""
        return self.rebalance_ms < max(SESSIONS)


def draw_participants(random: Random) -> Participants:
    clients = CLIENTS[: random.choice((1, 2, 2, 3, 3, 5, 5))]
    static = random.choice((0.0, 0.0, 0.5, 1.0))
    old = random.random() < 0.4  # versions that admit members at once
    rebalance_ms = random.choice((*[30_000] * 6, 10_000, 4_000))
    drawn = Participants(
        clients,
        {each: random.choice(INSTANCES) if random.random() < static else None for each in CLIENTS},
        {each: max(SESSIONS) if rebalance_ms < max(SESSIONS) else random.choice(SESSIONS) for each in CLIENTS},
        {each: random.random() * (0.4 if old else 1) for each in CLIENTS},
        random.random() < MANY_VERSIONS,
        rebalance_ms,
        random.choice(PROFILES),
        random.random() < 0.2,
    )
    return with_extreme_versions(drawn, random) if random.random() < EXTREME_VERSIONS else drawn


def with_extreme_versions(drawn: Participants, random: Random) -> Participants:
    """The same, with the lowest and the highest version of each request alone."""
    lowest = random.choice((0.0, 0.5, 1.0, 1.0))
    return replace(
        drawn,
        versions={each: 0.0 if random.random() < lowest else HIGHEST for each in CLIENTS},
        instances=dict.fromkeys(CLIENTS) if lowest == 1.0 else drawn.instances,  # the lowest versions have none
        lowest=lowest,
    )


@dataclass(frozen=True)
class GroupView:
    """The state of the group, and the client of each member."""

    served: Served[State]
    participants: Participants

    @property
    def group(self) -> State:
        return self.served.group

    @cached_property
    def references(self) -> dict[str, str]:
        """By member id: the reference of its client, or of its previous id."""
        found: dict[str, str] = {}
        for named_client in self.served.names.clients:
            found |= {id: f"{named_client.client}{OLD}" for id in named_client.ids[-2:-1]}
            found |= {id: named_client.client for id in named_client.ids[-1:]}
        return found

    @cached_property
    def members(self) -> dict[str, Member]:
        """Members that know their id, by client."""
        named = ((self.references.get(each.id, ""), each) for each in self.group.members)
        return {reference.removesuffix(OLD): each for reference, each in named if reference}

    @cached_property
    def newcomers(self) -> list[str]:
        """Clients without a member in the group, even one whose id they do not know."""
        there = {each.id.partition("-")[0] for each in self.group.members}
        return [each for each in self.participants.clients if each not in there and each not in self.members]

    @cached_property
    def removed(self) -> list[str]:
        """Clients that have an id, and no member with it any more."""
        known = {*self.references.values()}
        return [
            each for each in self.participants.clients if each in known and each not in (*self.members, *self.expected)
        ]

    @property
    def most_silent(self) -> tuple[str, int, int]:
        """The client whose session ends next, with what is left of it and its timeout, in ms."""
        ends = {timer.member: due - self.served.clock.now_ms for due, timer in reversed(self.served.clock.timers)
                if timer.kind == "session"}  # fmt: skip
        found = [(ends[each.id], client, each.session_ms) for client, each in self.members.items() if each.id in ends]
        left_ms, client, session_ms = min(found)
        return client, left_ms, session_ms

    def names(self, random: Random) -> tuple[str, ...]:
        """Protocol names for a new member."""
        usual = random.random() < 0.8
        if self.participants.plural and usual:
            return random.choice([each for each in LISTS if len(each) > 1])
        return LISTS[0] if usual else random.choice(LISTS)

    @cached_property
    def expected(self) -> list[str]:
        """Clients that were given an id and have not joined with it."""
        named = (self.references.get(each, "") for each in self.group.pending)
        return [reference for reference in named if reference and not reference.endswith(OLD)]
