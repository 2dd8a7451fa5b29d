"""Declares a protocol: its operations, its reference machine, and its place among the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kipcheck.conformance.core import verbs
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.core.machine import Driven
from kipcheck.conformance.core.operations import Operations
from kipcheck.conformance.targets.machine_target import MachineAdapter

AdapterOf: TypeAlias = Callable[[Edition], MachineAdapter[Any, Any, Any] | None]
"""The reference machine of an edition as an adapter; None for an edition that has none."""


@dataclass(frozen=True, slots=True)
class ProtocolPackage:
    """``PROTOCOL`` in ``protocols/NAME/protocol.py``. The other modules of the package are found by their names.

    ========== ============================================================================
    checks     ``CHECKS``: its checks, in order
    strategies ``CONVERSATIONS``: machine -> edition -> the conversations that are drawn
    invariants, mutants  registered by their decorators; a folder names its modules, in order, in ``MODULES``
    play       ``PLAYABLES``: what ``play`` and ``explore`` need
    ========== ============================================================================
    """

    order: int
    """Its place in lists, which random numbers index: it never changes."""
    role: Role
    machines: Mapping[str, AdapterOf] = field(default_factory=dict)
    """Its machines by name: ``consumer-group``."""
    operations: Operations[Any, Any] | None = None
    """The declarations of its operations, from which ``publish`` derives; None if they are written by hand."""

    def __post_init__(self) -> None:
        for machine in self.machines:
            verbs.register_machine(machine, self.role)

    @classmethod
    def of(cls, order: int, operations: Operations[Any, Any], adapter: AdapterOf) -> "ProtocolPackage":
        """A protocol with the machines that its operations name."""
        return cls(order, operations.role, dict.fromkeys(operations.machines, adapter), operations)


def adapter_of(operations: Operations[Any, Any], machine: Driven[Any, Any, Any]) -> MachineAdapter[Any, Any, Any]:
    """A machine as an adapter of its operations."""
    return MachineAdapter(machine, operations.verbs, operations.event_of, operations.answer_of)
