"""All checks, by id: ``CHECKS``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.check import Check, Family

__all__ = ["CHECKS", "FAMILIES", "LISTED", "Check", "Family", "family_of"]

LISTED: tuple[Check[Any], ...] = registry.all_of("checks", "CHECKS")
"""Campaigns choose from it at random: a place that changes changes their shards."""
CHECKS: Mapping[str, Check[Any]] = {each.id: each for each in LISTED}
FAMILIES: tuple[Family[Any], ...] = tuple({id(each.family): each.family for each in CHECKS.values()}.values())


def family_of(case: Case) -> Family[Any]:
    """That of its check; of a check that is not declared, the first one of its role: each role has one."""
    check = CHECKS.get(case.check)
    if check is not None and check.role is case.role:
        return check.family
    return next(each for each in FAMILIES if each.role is case.role)
