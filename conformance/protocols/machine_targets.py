"""The machines of the reference target, by edition."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.package import AdapterOf
from kipcheck.conformance.targets.machine_target import MachineAdapter

MACHINE_ADAPTERS: Mapping[str, AdapterOf] = registry.by_machine({
    name: adapter
    for part in registry.parts("target").values()
    for name, adapter in getattr(part, "ADAPTERS", {}).items()
})  # fmt: skip
"""Each returns None where an edition has no such machine."""


def machine_adapters(edition: Edition) -> Mapping[str, MachineAdapter[Any, Any, Any]]:
    """The machines that an edition has, by name."""
    made = {name: make(edition) for name, make in MACHINE_ADAPTERS.items()}
    return {name: player for name, player in made.items() if player is not None}
