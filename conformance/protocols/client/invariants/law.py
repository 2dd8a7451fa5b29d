"""Declares laws of clients."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.premises import Premise, occurring
from kipcheck.conformance.protocols.client.trace import Happened, is_proven, was_late
from kipcheck.conformance.protocols.declare.invariant import Search, invariant

SURVIVES_GROUPS: Final = "client/groups"


def law(id: str, *requirements: str, premise: tuple[str, ...] | Premise, **more: Any) -> Callable[[Search], Search]:
    """Declares a law. ``premise``: the kinds of events without which it is not judged, in their order; or whether a
    history has what it is about. ``more``: as ``invariant`` has it."""
    found = occurring(*premise) if isinstance(premise, tuple) else premise
    return invariant(id, *requirements, role=Role.CLIENT, checks=(SURVIVES_GROUPS,), premise=found, **more)


timed = partial(law, unsure=was_late, proven=is_proven)
"""Declares a law with a bound in time."""


def breach(
    each: Happened, why: str, expected: str, observed: str, *shape: str, since_ms: int | None = None
) -> Violation:
    """``since_ms``: when the bound in time began that is broken now; None: it is no matter of time."""
    window_ms = None if since_ms is None else (since_ms, each.ms)
    return Violation(
        why, (each.step,), expected, observed, shape=shape, window_ms=window_ms, answered=each.answered, at_ms=each.ms
    )


def listed(partitions: frozenset[str] | set[str] | list[str]) -> str:
    return ", ".join(sorted(partitions)) or "nothing"
