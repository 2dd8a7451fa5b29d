"""The machines of the reference target, by edition."""

from collections.abc import Callable, Mapping
from typing import Any

from kipcheck.conformance.apis import upgrade_script as bounces
from kipcheck.conformance.apis.consumer_target import member
from kipcheck.conformance.apis.coordinator_target import group
from kipcheck.conformance.apis.upgrade_target import streams_group
from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.models.upgrade import has_upgrade, upgrade_model
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import (
    BOUNCE,
    GROUP,
    MEMBER,
    STREAMS,
    STREAMS_MIXED,
)


def bounce(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not has_upgrade(edition):
        return None
    return MachineAdapter(upgrade_model(edition), bounces.CODEC.events, bounces.event_of, bounces.answer_of)


MACHINE_ADAPTERS: Mapping[str, Callable[[Edition], MachineAdapter[Any, Any, Any] | None]] = registry.by_machine({
    **{each.name: each.adapter for each in registry.packages().values()},
    GROUP: group,
    MEMBER: member,
    BOUNCE: bounce,
    STREAMS: streams_group,
    STREAMS_MIXED: streams_group,
})  # fmt: skip
"""Each returns None where an edition has no such machine."""


def machine_adapters(edition: Edition) -> Mapping[str, MachineAdapter[Any, Any, Any]]:
    """The machines that an edition has, by name."""
    made = {name: make(edition) for name, make in MACHINE_ADAPTERS.items()}
    return {name: player for name, player in made.items() if player is not None}
