"""Situations of a group that random events seldom compose: a conversation may tend towards one of them."""

from dataclasses import replace
from enum import Enum
from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.protocols.group.strategies.events import CLIENTS, INSTANCES
from kipcheck.conformance.protocols.group.strategies.participants import (
    HIGHEST,
    SESSIONS,
    Participants,
    with_extreme_versions,
)

SHORT_MS: Final = (4_000, 4_000, 10_000)
"""Rebalance timeouts that pass before any session."""
RECENT: Final = (0.15, 0.3, 0.35, 0.99)
"""Choose versions of JoinGroup with a rebalance timeout; most of them admit a member at once."""
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
    """The partition of a stable group moves, and clients observe it before and after."""
    SESSION = "session"
    """In a stable group, heartbeats extend sessions, for longer than one session."""
    REFUSAL = "refusal"
    """A request to a stable group is refused, and the group is described before and after."""
    EXTREMES = "extremes"
    """Any request comes at any moment, in its lowest or its highest version, and clients join a stable group."""
    RETURN = "return"
    """A static member restarts with a shorter rebalance timeout, and is absent from the next join phase."""


Focus: TypeAlias = tuple[Episode, ...]
"""The situations that a check needs more often than others."""
FOCUSED: Final = 0.4
"""The share of conversations that tend towards a situation of the focus."""


EXTREME: Final = 0.15
"""The share of conversations with requests of extreme versions at any moment, whatever the focus."""


USUAL: Final = tuple(each for each in Episode if each is not Episode.RETURN)
"""Those of any check: a restart with another timeout is drawn where a focus has it."""


def draw_episode(random: Random, focus: Focus = ()) -> Episode | None:
    if random.random() < EXTREME:
        return Episode.EXTREMES
    if focus and random.random() < FOCUSED:
        return random.choice(focus)
    return random.choice(USUAL) if random.random() < EPISODIC else None


def fitting_participants(episode: Episode | None, drawn: Participants, random: Random) -> Participants:
    """The participants, changed as far as the situation needs it."""
    match episode:
        case None:
            return drawn
        case Episode.MOVE | Episode.END | Episode.REFUSAL:
            return replace(drawn, clients=drawn.clients[:2], profile={})
        case Episode.SESSION:
            return replace(drawn, clients=CLIENTS[: random.choice((1, 2))], profile={})
        case Episode.GROWTH | Episode.SILENCE | Episode.DEPARTURE:
            versions = dict.fromkeys(CLIENTS, random.choice(RECENT)) if episode is Episode.GROWTH else drawn.versions
            return replace(
                drawn,
                clients=CLIENTS,
                versions=versions,
                instances=dict.fromkeys(CLIENTS),
                sessions=dict.fromkeys(CLIENTS, max(SESSIONS)),
                rebalance_ms=random.choice(SHORT_MS),
                profile={},
                uniform=True,
            )
        case Episode.UNUSED:
            first, *others = CLIENTS
            versions = {first: HIGHEST, **dict.fromkeys(others, random.choice(RECENT[:-1]))}
            return replace(
                drawn,
                clients=CLIENTS[: random.choice((2, 3))],
                instances=dict.fromkeys(CLIENTS),
                sessions={**dict.fromkeys(CLIENTS, max(SESSIONS)), first: min(SESSIONS)},
                versions=versions,
                rebalance_ms=max(SESSIONS),
                profile={},
                uniform=True,
            )
        case Episode.RETURN:
            first, *others = CLIENTS
            return replace(
                drawn,
                clients=CLIENTS[: random.choice((2, 3))],
                instances={**dict.fromkeys(others), first: random.choice(INSTANCES)},
                sessions=dict.fromkeys(CLIENTS, max(SESSIONS)),
                rebalance_ms=random.choice(SHORT_MS),
                profile={},
                uniform=True,
            )
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
        case Episode.EXTREMES:
            return with_extreme_versions(
                replace(drawn, clients=CLIENTS[: random.choice((2, 3, 5))], profile={}), random
            )
        case Episode.PREFERENCE:
            return replace(drawn, plural=True, profile={})
        case Episode.SUCCESSION:
            instances: dict[str, str | None] = dict.fromkeys(CLIENTS, random.choice(INSTANCES))
            return replace(drawn, clients=CLIENTS[: random.choice((2, 3))], instances=instances, profile={})
