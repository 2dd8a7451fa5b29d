"""Adapts the coordinator model of classic groups to the operations of the testee protocol."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.editions import coordinator
from kipcheck.conformance.protocols.group.model.rules import owed_rules
from kipcheck.conformance.protocols.group.model.service import Service
from kipcheck.conformance.protocols.group.model.state import State
from kipcheck.conformance.protocols.group.ops import GROUP, OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import Claims


def machine_adapter(machine: Coordinator) -> MachineAdapter[Any, Any, Any]:
    return MachineAdapter(Service[State](machine), OPERATIONS.verbs, OPERATIONS.lenient_event_of, OPERATIONS.answer_of)


def group(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    """The coordinator of an edition; None where the edition has none."""
    found = coordinator(edition)
    return None if found is None else machine_adapter(found)


class _Adapter(Coordinator):
    name = "group"
    version = "0"
    issues = ""
    _player: MachineAdapter[Any, Any, Any]

    def claims(self) -> Claims:
        return Claims(machines=(GROUP,))

    def configure(self, edition_name: str, /) -> str | None:
        found = coordinator(edition(edition_name))
        if found is None or isinstance(found, DraftCoordinator) is not isinstance(self, DraftCoordinator):
            return f"this coordinator does not implement edition {edition_name}"
        self.rules = found.rules
        self._player = machine_adapter(self)
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return self._player.answer(op)


class CoordinatorAdapter(_Adapter):
    """Adapts the coordinator of a release."""

    def __init__(self) -> None:
        super().__init__(owed_rules())
        self._player = machine_adapter(self)


class DraftCoordinatorAdapter(_Adapter, DraftCoordinator):
    """Adapts the coordinator of KIP-429's draft."""

    def __init__(self) -> None:
        DraftCoordinator.__init__(self)
        self._player = machine_adapter(self)


ADAPTERS = {GROUP: group}
