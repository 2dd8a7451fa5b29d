"""All invariants, by role."""

from functools import cache
from importlib import import_module

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.invariant import (
    INVARIANTS,
    AppliesTo,
    ByMessage,
    Invariant,
    Search,
    invariant,
    steps_of,
)

__all__ = ["INVARIANTS", "AppliesTo", "ByMessage", "Invariant", "Search", "all_invariants", "invariant", "steps_of"]

MODULES = (
    "survival", "claims", "wire", "tags", "codec_memory", "defaults", "sizes", "versions",
    "assignment", "stickiness", "cooperation", "mixed", "nodes",
    "ownership", "upgrade",
    "streams_versions", "streams_leaders", "streams_probing", "streams_tasks", "streams_ends",
    "group", "group_waiting", "group_static", "group_records", "group_answers", "group_rejoins",
    "group_unlike", "group_draft",
    "member", "member_requests", "member_duties",
)  # fmt: skip


@cache
def all_invariants(role: Role) -> tuple[Invariant, ...]:
    """Those of the role, and those of every role."""
    for name in MODULES:
        import_module(f"kipcheck.conformance.invariants.{name}")
    registry.parts("invariants")
    return tuple(i for i in INVARIANTS.values() if i.role in (role, None))
