"""The reference machine of upgrades of stores as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.store_upgrade.model import StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    """In every edition: a target announces its machines before an edition is chosen."""
    return adapter_of(OPERATIONS, StoreUpgrade())


ADAPTERS = {OPERATIONS.machine: adapter}
