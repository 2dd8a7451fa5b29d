"""Checks of controllers: the feature updates of KIP-584's draft."""

from collections.abc import Iterable

from kipcheck.conformance.core.edition import APACHE, KIP_584, edition
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.features.ops import OPERATIONS
from kipcheck.conformance.protocols.features.strategies import FEATURE_UPDATES


def editions(name: str) -> Iterable[str]:
    """The draft, the only edition with rules so far; a run of ``apache``, which names no release, includes it too."""
    return (KIP_584.name,) if edition(name) in (APACHE, KIP_584) else ()


CONTROLLER: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: FEATURE_UPDATES, "controller")

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "features/epochs",
        "the epoch counts the applied updates, and nothing else changes it",
        CONTROLLER,
        conversation,
        values=300,
        invariants=(
            "features/epoch-grows",
            "features/only-updates-change",
            "features/outlives-restarts",
            "features/epoch-names-contents",
        ),
    ),
    Check(
        "features/gating",
        "a level is raised, lowered and deleted only as the rules, the operator and every live broker allow",
        CONTROLLER,
        conversation,
        values=300,
        invariants=(
            "features/downgrade-gated",
            "features/deletion-gated",
            "features/deletes-what-is-there",
            "features/flag-only-down",
            "features/same-level-refused",
            "features/level-suits-brokers",
            "features/upgrades",
            "features/downgrades",
            "features/deletion-is-free",
            "features/names-the-fault",
        ),
    ),
    Check(
        "features/brokers",
        "no broker is live with a finalized level that it does not support",
        CONTROLLER,
        conversation,
        values=150,
        invariants=("features/incompatible-broker-stops", "features/compatible-broker-stays"),
    ),
)
