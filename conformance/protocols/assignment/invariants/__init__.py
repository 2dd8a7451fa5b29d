"""Invariants of assignors, by module, in the order of verdicts."""

from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.invariant import invariant

leader_invariant = partial(invariant, role=Role.LEADER)

# Sets of invariants, by name
ALWAYS: Final = "always"
"""Of every check of released leaders."""
KEEPING: Final = "keeping"
"""Of sticky assignors."""
BY_RULE: Final = "by rule"
"""Of assignors that follow a rule."""
COOPERATING: Final = "cooperation"
