"""Makes adapters of machines whose operations are declared."""

from typing import Any

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter_of(operations: Operations[Any, Any], machine: Driven[Any, Any, Any]) -> MachineAdapter[Any, Any, Any]:
    """A machine as an adapter of its operations."""
    return MachineAdapter(machine, operations.verbs, operations.event_of, operations.answer_of)
