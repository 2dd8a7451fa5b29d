"""Checks of clusters with KIP-384's setting."""

from collections.abc import Iterable

from kipcheck.conformance.core.values.edition import APACHE, KIP_384, edition
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.persistent_metadata.invariants import CONFIGURATION, FORMATS, ROLLS
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS
from kipcheck.conformance.protocols.persistent_metadata.strategies import ROLLS as DRAWN
from kipcheck.conformance.protocols.persistent_metadata.tables import configurations, formats, rolls


def editions(name: str) -> Iterable[str]:
    """The draft, which no release adopted; a run of ``apache``, which names no release, includes it."""
    return (KIP_384.name,) if edition(name) in (APACHE, KIP_384) else ()


CLUSTER: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: DRAWN, "cluster")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        CONFIGURATION,
        "settings have known names, the draft's defaults and its one bound",
        CLUSTER,
        conversation,
        values=100,
        invariants=invariants_of(CONFIGURATION),
        given=configurations,
    ),
    Check(
        FORMATS,
        "every store is written in the format that its setting allows, and replicated as it was written",
        CLUSTER,
        conversation,
        values=200,
        invariants=invariants_of(FORMATS),
        given=formats,
    ),
    Check(
        ROLLS,
        "a roll can be undone until the setting is raised, and not unnoticed after that",
        CLUSTER,
        conversation,
        values=300,
        invariants=invariants_of(ROLLS),
        given=rolls,
    ),
)
