"""Invariants of rolling upgrades, by module, in the order of verdicts."""

from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.protocols.declare.invariant import invariant

# Sets of invariants, by name
OWNERS: Final = "owners"
"""No two members read a partition at once: included in every check of consumers."""
SERVED: Final = "served"
"""In the end every partition is read."""


def of_consumers(case: Case, step: Step) -> bool:
    """All steps except those about Streams, which are another group's."""
    return step.verb != "roll-streams" and not step.verb.startswith("stream-")


upgrade_invariant = partial(invariant, role=Role.OPERATOR_TOOL, applies_to=of_consumers)
