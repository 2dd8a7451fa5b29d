"""Mutants: small targets with one planted defect each, for the mutation test of the suite.

Each mutant names the check and the invariant that have to find it, on one subject, within the values that the check
draws by default, and the least case that shrinking has to reach: the bytes of the failing step, or its value if it has
no bytes; a conversation in the shorthand of its machine; an ellipsis if the least case depends on the seed.
"""

from importlib import import_module

from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.mutant import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]

for _family in (
    "codec",
    "leader",
    "sticky_leader",
    "mixed_leader",
    "nodes",
    "member",
    "member_requests",
    "upgrade",
    "coordinator",
    "coordinator_facts",
    "streams_leaders",
    "streams_members",
):
    import_module(f"{__name__}.{_family}")
registry.parts("mutants")
