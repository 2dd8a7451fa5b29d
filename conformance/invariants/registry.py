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
    ours = {each.__name__ for each in registry.parts("invariants").values()}
    # Those of packages are last, whatever was imported first: the order of verdicts depends on it.
    found = sorted(INVARIANTS.values(), key=lambda each: each.search.__module__ in ours)
    return tuple(each for each in found if each.role in (role, None))
