"""The reference machine of persistent metadata as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(OPERATIONS, PersistentCluster())


ADAPTERS = {OPERATIONS.machine: adapter}
