"""The machines that our own target plays, by edition."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.apis import member as members
from conformance.apis.features import EVENTS, answer_of, event_of
from conformance.core.edition import Edition
from conformance.models.features import FeatureController
from conformance.models.member.client import Client
from conformance.targets.coordinating import group
from conformance.targets.player import Player
from conformance.targets.protocol import FEATURES, GROUP, MEMBER


def features(edition: Edition) -> Player[Any, Any, Any]:
    return Player(FeatureController(), EVENTS, event_of, answer_of)


def member(edition: Edition) -> Player[Any, Any, Any] | None:
    rules = members.rules_of(edition)
    if rules is None:
        return None
    return Player(Client(rules), members.EVENTS, members.event_of, members.answer_of)


PLAYERS: Mapping[str, Callable[[Edition], Player[Any, Any, Any] | None]] = {
    FEATURES: features,
    GROUP: group,
    MEMBER: member,
}
"""None where an edition has no such machine."""


def players(edition: Edition) -> Mapping[str, Player[Any, Any, Any]]:
    """By the name of the machine."""
    made = {name: make(edition) for name, make in PLAYERS.items()}
    return {name: player for name, player in made.items() if player is not None}
