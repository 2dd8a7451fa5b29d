"""The reference target: kipcheck's own codec, assignors and machines."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.protocols.assignment.target import ALL, DRAFTED, LEADING, DraftLeader, Leader
from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.machine_targets import machine_adapters
from kipcheck.conformance.targets.protocol import Claims


class Reference(ReferenceCodec):
    """Claims every version of every message of its edition, all assignors, and the machines of the edition."""

    def __init__(self) -> None:
        super().__init__()
        self._machines = machine_adapters(self._edition)
        self._leader = Leader()
        self._draft = DraftLeader()

    def configure(self, edition_name: str, /) -> str | None:
        unknown = super().configure(edition_name)
        if unknown is None:
            self._machines = machine_adapters(self._edition)
        return unknown

    def claims(self) -> Claims:
        return Claims(self.claimed_messages(), assignors=(*ALL, *DRAFTED), machines=tuple(self._machines))

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        player = next((each for each in self._machines.values() if op["op"] in each.verbs), None)
        if player is not None:
            return player.answer(op)
        if op["op"] in LEADING:
            return (self._draft if op["assignor"] in DRAFTED else self._leader).answer(op)
        return super().answer(op)
