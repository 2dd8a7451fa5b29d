"""What is tested: ``CHECKS``, by id."""

from collections.abc import Mapping
from typing import Any

from conformance.checks.assignment import ASSIGNMENT
from conformance.checks.bounce import BOUNCE_CHECKS
from conformance.checks.consumer_group import CONSUMER_GROUP_CHECKS
from conformance.checks.declared import Check, Family
from conformance.checks.features import FEATURE_CHECKS
from conformance.checks.group import GROUP_CHECKS
from conformance.checks.member import MEMBER_CHECKS
from conformance.checks.mixed import MIXED_CHECKS
from conformance.checks.nodes import NODE_CHECKS
from conformance.checks.streams import STREAMS_CHECKS
from conformance.checks.wire import WIRE

__all__ = ["CHECKS", "FAMILIES", "LISTED", "Check", "Family"]

LISTED: tuple[Check[Any], ...] = (
    *WIRE,
    *NODE_CHECKS,
    *ASSIGNMENT,
    *MIXED_CHECKS,
    *FEATURE_CHECKS,
    *GROUP_CHECKS,
    *MEMBER_CHECKS,
    *CONSUMER_GROUP_CHECKS,
    *BOUNCE_CHECKS,
    *STREAMS_CHECKS,
)
CHECKS: Mapping[str, Check[Any]] = {each.id: each for each in LISTED}
FAMILIES: tuple[Family[Any], ...] = tuple({id(each.family): each.family for each in CHECKS.values()}.values())
