"""Checks of stores with timestamps."""

from collections.abc import Iterable

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, operations_family, possible_conversation
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.stores.invariants import CONTENTS, UPGRADES
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.protocols.stores.strategies import lives
from kipcheck.conformance.protocols.stores.tables import contents, upgrades
from kipcheck.conformance.protocols.stores.target import HAS_STORES


def editions(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if HAS_STORES(found) else ()


STORE: Family[Subject] = operations_family(OPERATIONS, editions, lives, "store")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        CONTENTS,
        "a store has the values and timestamps that were put, in whichever format it keeps them",
        STORE,
        possible_conversation(lives),
        values=100,
        invariants=invariants_of(CONTENTS),
        given=contents,
    ),
    Check(
        UPGRADES,
        "a store with timestamps opens what one without them left, and keeps it through crashes",
        STORE,
        possible_conversation(lives),
        values=100,
        invariants=invariants_of(UPGRADES),
        given=upgrades,
    ),
)
