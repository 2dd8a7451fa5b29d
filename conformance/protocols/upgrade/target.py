"""The reference machine of rolling upgrades as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.upgrade.model.upgrade import has_upgrade, upgrade_model
from kipcheck.conformance.protocols.upgrade.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def bounce(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    """None where an edition has no cooperative members."""
    return (
        MachineAdapter(upgrade_model(edition), OPERATIONS.verbs, OPERATIONS.event_of, OPERATIONS.answer_of)
        if has_upgrade(edition)
        else None
    )


ADAPTERS = dict.fromkeys(OPERATIONS.machines, bounce)
