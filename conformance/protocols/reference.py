"""The reference target: kipcheck's own codec, assignors and machines."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kipcheck.conformance.core.operations.verb_registry import roles_with_machines
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.assignment.target import ALL, DRAFTED, LEADING, DraftLeader, Leader
from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import OPERATIONS, Claims


class Reference(ReferenceCodec):
    """Claims every version of every message of its edition, all assignors, and the machines of the edition."""

    def __init__(self) -> None:
        super().__init__()
        self._leader = Leader()
        self._draft = DraftLeader()

    def configure(self, edition_name: str, /) -> str | None:
        unknown = super().configure(edition_name)
        if unknown is None:
            self.__dict__.pop("_machines", None)
        return unknown

    def import_for(self, role: Role, /) -> None:
        if role in roles_with_machines():
            _ = self._machines

    @cached_property
    def _machines(self) -> Mapping[str, MachineAdapter[Any, Any, Any]]:
        """Those of the edition, by name; importing them takes longer than all the rest of a start."""
        from kipcheck.conformance.protocols.machine_targets import machine_adapters

        return machine_adapters(self._edition)

    def machine(self, verb: str) -> tuple[str, MachineAdapter[Any, Any, Any]] | None:
        """The machine with this operation, and its name; None for operations of codecs and leaders."""
        if verb in LEADING or verb in OPERATIONS:
            return None
        return next(((name, each) for name, each in self._machines.items() if verb in each.verbs), None)

    def claims(self) -> Claims:
        machines = registry.machines_of(self._edition)
        return Claims(self.claimed_messages(), assignors=(*ALL, *DRAFTED), machines=machines)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] in LEADING:
            return (self._draft if op["assignor"] in DRAFTED else self._leader).answer(op)
        found = self.machine(op["op"])
        if found is not None:
            return found[1].answer(op)
        return super().answer(op)
