"""Mutants: small targets with one planted defect each, for the mutation test of the suite.

Each mutant names the check and the invariant that have to find it, on one subject, within the values that the check
draws by default, and the least case that shrinking has to reach: the bytes of the failing step, or its value if it has
no bytes; a conversation in the shorthand of its machine; an ellipsis if the least case depends on the seed.
"""

from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.mutant import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]


def _in_order() -> None:
    """In the order of their modules, whatever was imported first."""
    modules = registry.modules("mutants")
    found = sorted(MUTANTS.items(), key=lambda item: modules.index(item[1].made.__module__))
    MUTANTS.clear()
    MUTANTS.update(found)


_in_order()
