"""The reference machine of leases as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.tests.protocols.leases.model import LeaseBroker
from kipcheck.conformance.tests.protocols.leases.ops import OPERATIONS


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    """None in drafts of other KIPs."""
    return None if edition.standing is Standing.DRAFT else adapter_of(OPERATIONS, LeaseBroker())


ADAPTERS = {OPERATIONS.machine: adapter}
