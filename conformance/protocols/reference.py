"""The reference target: kipcheck's own codec, assignors and machines."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.verbs import roles_with_machines
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
    def _machines(self) -> tuple[MachineAdapter[Any, Any, Any], ...]:
        """Those of the edition; importing them takes longer than all the rest of a start."""
        from kipcheck.conformance.protocols.machine_targets import machine_adapters

        return tuple(machine_adapters(self._edition).values())

    def claims(self) -> Claims:
        machines = registry.machines_of(self._edition)
        return Claims(self.claimed_messages(), assignors=(*ALL, *DRAFTED), machines=machines)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] in LEADING:
            return (self._draft if op["assignor"] in DRAFTED else self._leader).answer(op)
        if op["op"] not in OPERATIONS:
            player = next((each for each in self._machines if op["op"] in each.verbs), None)
            if player is not None:
                return player.answer(op)
        return super().answer(op)
