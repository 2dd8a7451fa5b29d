"""All checks, by id: ``CHECKS``."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.check import Check, Exhibit, Family
from kipcheck.conformance.protocols.declare.conversations import answer, listed

__all__ = ["CHECKS", "FAMILIES", "LISTED", "Check", "Family", "exchanges_of", "family_of"]

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


def exchanges_of(history: History) -> list[Exhibit]:
    """All that was sent and answered, as the steps of a sequence; without an order of its own, step by step."""
    return family_of(history.case).exchanges(history) or [
        {
            "from": op.step.actor, "to": history.target, "says": op.step.verb, "answer": answer(op.observation, listed),
            "guilty": False,
        }
        for op in history.ops
    ]  # fmt: skip
