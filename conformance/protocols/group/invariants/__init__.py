"""Invariants of coordinators of classic groups, by module, in the order of verdicts."""

from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.invariant import invariant
from kipcheck.conformance.protocols.declare.real_time import before_doubt, is_in_doubt

group_invariant = partial(invariant, role=Role.COORDINATOR, unsure=is_in_doubt, certain=before_doubt)
"""Every law depends on who is a member, and so on timers."""

# Sets of invariants, by name
ANSWERS: Final = "answers"
"""All answers are those that are owed: included in every check of coordinators."""
REBALANCES: Final = "rebalances"
"""Rebalances end, and members join them again."""
REMOVALS: Final = "removals"
"""Members are removed for a reason, and get an answer then."""
