"""Makes adapters of machines whose operations are declared."""

from typing import Any

from kipcheck.conformance.core.machine import Driven
from kipcheck.conformance.core.operations import Operations
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter_of(operations: Operations[Any, Any], machine: Driven[Any, Any, Any]) -> MachineAdapter[Any, Any, Any]:
    """A machine as an adapter of its operations."""
    return MachineAdapter(machine, operations.verbs, operations.event_of, operations.answer_of)
