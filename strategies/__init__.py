"""Hypothesis strategies for tests: values, bodies, frames and damage of every message, groups and conversations::

    from hypothesis import given
    from kipcheck.strategies import damaged

    @given(damaged("JoinGroupRequest", versions=range(5, 10), kinds=["unknown-tag"]))
    def test_my_decoder_passes_over_unknown_tags(case):
        assert my_decode(case.body.version, case.data) == case.damage.value

A failing example is printed as a value, which can be pasted after ``from kipcheck.strategies import *`` and
``from uuid import UUID``.

These names are Hypothesis strategies. The nodes that they are made of (``kipcheck.strategies.nodes``, ``compiled``,
``parse``, ``reduce``, ``mutate``, ``messages``, ``damage``, ``versions``) do not import Hypothesis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kipcheck.strategies.body import Body, Damaged, Frame
    from kipcheck.strategies.damage import Damage, Outcome
    from kipcheck.strategies.public import (
        api_versions_streams,
        assignment_streams,
        bodies,
        changelogs,
        conversations,
        damaged,
        feature_fleets,
        feature_pictures,
        feature_update_requests,
        frames,
        groups,
        join_group_streams,
        rolls,
        steps,
        streams_groups,
        subscription_streams,
        values,
        version_mixes,
        version_ranges,
    )

__all__ = [
    "Body",
    "Damage",
    "Damaged",
    "Frame",
    "Outcome",
    "api_versions_streams",
    "assignment_streams",
    "bodies",
    "changelogs",
    "conversations",
    "damaged",
    "feature_fleets",
    "feature_pictures",
    "feature_update_requests",
    "frames",
    "groups",
    "join_group_streams",
    "rolls",
    "steps",
    "streams_groups",
    "subscription_streams",
    "values",
    "version_mixes",
    "version_ranges",
]

_PLAIN = {"Body": "body", "Damage": "damage", "Damaged": "body", "Frame": "body", "Outcome": "damage"}
"""The names that do not import Hypothesis, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kipcheck.strategies.{_PLAIN.get(name, 'public')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
