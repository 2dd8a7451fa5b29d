"""The rules by which a controller of KIP-584's draft judges one update (section Validations)."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from kipcheck.conformance.protocols.features.model.ranges import Range

NONE: Final = "NONE"
"""The update is applied."""
INVALID_REQUEST: Final = "INVALID_REQUEST"
"""The update itself is wrong (584-66)."""
FEATURE_UPDATE_FAILED: Final = "FEATURE_UPDATE_FAILED"
"""A broker, or a rule of the feature, forbids the level (584-66)."""


class FeatureUpdate(NamedTuple):
    feature: str
    level: int
    """The new maximum level; below 1: the feature is deleted."""
    allow_downgrade: bool = False


def refusal(update: FeatureUpdate, finalized: Range | None, supported: Collection[Mapping[str, Range]]) -> str:
    """The error of an update, or ``NONE``. ``supported``: the ranges of every registered broker.

    The draft allows both to accept and to reject the flag where nothing is finalized (584-69): this one rejects it.
    """
    if update.feature and update.level < 1:
        return NONE if finalized and update.allow_downgrade else INVALID_REQUEST
    if not any(update.feature in each for each in supported) or not _moves(update, finalized):
        return INVALID_REQUEST
    if not all(update.feature in each and each[update.feature].holds(update.level) for each in supported):
        return FEATURE_UPDATE_FAILED
    # No call changes a minimum level (584-18), and it is never above the maximum (584-02).
    return FEATURE_UPDATE_FAILED if finalized and update.level < finalized.low else NONE


def _moves(update: FeatureUpdate, finalized: Range | None) -> bool:
    """Whether the level changes in the direction that the flag says."""
    if finalized is None:
        return not update.allow_downgrade
    return update.level != finalized.high and (update.level < finalized.high) == update.allow_downgrade
