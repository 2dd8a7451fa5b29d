"""Invariants of consumers in classic groups, by module, in the order of verdicts."""

from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.invariant import invariant

member_invariant = partial(invariant, role=Role.MEMBER)

# Sets of invariants, by name
PROTOCOLS: Final = "protocols"
"""A member finds a protocol that suits its assignors."""
REQUESTS: Final = "requests"
"""Requests are as configured."""
