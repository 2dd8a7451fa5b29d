"""All checks, by id: ``CHECKS``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.checks.assignment import ASSIGNMENT
from kipcheck.conformance.checks.declare import Check, Family
from kipcheck.conformance.checks.group import GROUP_CHECKS
from kipcheck.conformance.checks.member import MEMBER_CHECKS
from kipcheck.conformance.checks.mixed import MIXED_CHECKS
from kipcheck.conformance.checks.nodes import NODE_CHECKS
from kipcheck.conformance.checks.streams import STREAMS_CHECKS
from kipcheck.conformance.checks.upgrade import UPGRADE_CHECKS
from kipcheck.conformance.checks.wire import WIRE
from kipcheck.conformance.core.case import Case
from kipcheck.conformance.protocols import registry

__all__ = ["CHECKS", "FAMILIES", "LISTED", "Check", "Family", "family_of"]

LISTED: tuple[Check[Any], ...] = registry.in_order({
    10: WIRE,
    20: NODE_CHECKS,
    30: ASSIGNMENT,
    40: MIXED_CHECKS,
    60: GROUP_CHECKS,
    70: MEMBER_CHECKS,
    90: UPGRADE_CHECKS,
    100: STREAMS_CHECKS,
}, "checks", "CHECKS")  # fmt: skip
"""Campaigns choose from it at random: a place that changes changes their shards."""
CHECKS: Mapping[str, Check[Any]] = {each.id: each for each in LISTED}
FAMILIES: tuple[Family[Any], ...] = tuple({id(each.family): each.family for each in CHECKS.values()}.values())


def family_of(case: Case) -> Family[Any] | None:
    """That of its check; of a check that is not declared, the first one of its role."""
    check = CHECKS.get(case.check)
    if check is not None and check.role is case.role:
        return check.family
    return next((each for each in FAMILIES if each.role is case.role), None)
