"""Declares a protocol: its operations, its reference machine, and its place among the others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.core.machine import Driven
from kipcheck.conformance.core.operations import Operations
from kipcheck.conformance.targets.machine_target import MachineAdapter


@dataclass(frozen=True, slots=True)
class ProtocolPackage:
    """``PROTOCOL`` in ``protocols/NAME/protocol.py``. The other modules of the package are found by their names.

    ========== ============================================================================
    checks     ``CHECKS``: its checks, in order
    strategies ``CONVERSATIONS``: an edition -> the conversations that are drawn
    invariants, mutants  registered by their decorators
    play       ``PLAYABLE``: what ``play`` and ``explore`` need
    ========== ============================================================================
    """

    order: int
    """Its place in lists, which random numbers index: it never changes. Protocols without a package have 10, 20, ..."""
    operations: Operations[Any, Any]
    adapter: Callable[[Edition], MachineAdapter[Any, Any, Any] | None]
    """The reference machine as an adapter; None for an edition that has none."""

    @property
    def name(self) -> str:
        """The name of the machine: ``consumer-group``."""
        return self.operations.machine

    @property
    def role(self) -> Role:
        return self.operations.role


def adapter_of(operations: Operations[Any, Any], machine: Driven[Any, Any, Any]) -> MachineAdapter[Any, Any, Any]:
    """A machine as an adapter of its operations."""
    return MachineAdapter(machine, operations.verbs, operations.event_of, operations.answer_of)
