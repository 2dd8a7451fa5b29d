"""Situations of a group that random events seldom compose: a conversation may tend towards one of them."""

from dataclasses import replace
from enum import Enum
from random import Random
from typing import Final

from kipcheck.conformance.protocols.group.strategies.events import CLIENTS, INSTANCES
from kipcheck.conformance.protocols.group.strategies.participants import SESSIONS, Participants

SHORT_MS: Final = (4_000, 4_000, 10_000)
"""Rebalance timeouts that pass before any session."""
NEWEST: Final = 0.99
"""Chooses the newest version of JoinGroup, which needs a member id."""
EPISODIC: Final = 0.45
"""The share of conversations that tend towards some situation."""


class Episode(Enum):
    GROWTH = "growth"
    """In each round of the initial rebalance another member joins."""
    SILENCE = "silence"
    """Members do not send SyncGroup in time."""
    PREFERENCE = "preference"
    """Members change the order of their protocols, or their metadata."""
    SUCCESSION = "succession"
    """A client takes over the instance id of another one, which goes on."""
    DEPARTURE = "departure"
    """Members leave while their SyncGroup is parked."""
    ABSENCE = "absence"
    """Static members do not join again in time."""
    UNUSED = "unused"
    """A member id that is not used expires soon after another member has joined."""
    END = "end"
    """A group with offsets loses its members, and is deleted."""
    MOVE = "move"
    """The partition of a stable group moves, and the group is described before and after."""


def draw_episode(random: Random) -> Episode | None:
    return random.choice([*Episode]) if random.random() < EPISODIC else None


def fitting_participants(episode: Episode | None, drawn: Participants, random: Random) -> Participants:
    """The participants, changed as far as the situation needs it."""
    match episode:
        case None:
            return drawn
        case Episode.MOVE | Episode.END:
            return replace(drawn, profile={})
        case Episode.GROWTH | Episode.SILENCE | Episode.DEPARTURE:
            return replace(
                drawn,
                clients=CLIENTS,
                instances=dict.fromkeys(CLIENTS),
                sessions=dict.fromkeys(CLIENTS, max(SESSIONS)),
                rebalance_ms=random.choice(SHORT_MS),
                profile={},
                uniform=True,
            )
        case Episode.UNUSED:
            first, *others = CLIENTS
            versions = {first: NEWEST, **dict.fromkeys(others, 0.0)}
            return replace(drawn, clients=CLIENTS, instances=dict.fromkeys(CLIENTS), versions=versions, profile={})
        case Episode.ABSENCE:
            return replace(
                drawn,
                clients=CLIENTS[: len(INSTANCES)],
                instances={**drawn.instances, **dict(zip(CLIENTS, INSTANCES, strict=False))},
                sessions=dict.fromkeys(CLIENTS, max(SESSIONS)),
                rebalance_ms=random.choice(SHORT_MS),
                profile={},
                uniform=True,
            )
        case Episode.PREFERENCE:
            return replace(drawn, plural=True, profile={})
        case Episode.SUCCESSION:
            instances: dict[str, str | None] = dict.fromkeys(CLIENTS, random.choice(INSTANCES))
            return replace(drawn, clients=CLIENTS[: random.choice((2, 3))], instances=instances, profile={})
