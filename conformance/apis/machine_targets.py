"""The machines of the reference target, by edition."""

from collections.abc import Callable, Mapping
from typing import Any

from kipcheck.conformance.apis import consumer_group as consumer_groups, upgrade_script as bounces
from kipcheck.conformance.apis.consumer_target import member
from kipcheck.conformance.apis.coordinator_target import group
from kipcheck.conformance.apis.upgrade_target import streams_group
from kipcheck.conformance.core.edition import Edition, Standing
from kipcheck.conformance.core.release import Release
from kipcheck.conformance.core.releases_table import since
from kipcheck.conformance.models.consumer_group import ConsumerGroup
from kipcheck.conformance.models.upgrade import has_upgrade, upgrade_model
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.targets.machine_target import MachineAdapter
from kipcheck.conformance.targets.protocol import (
    BOUNCE,
    CONSUMER_GROUP,
    GROUP,
    MEMBER,
    STREAMS,
    STREAMS_MIXED,
)

KIP_848 = Release.parse(since("kip-848"))
"""The first release in which consumer groups are not a preview."""


def consumer_group(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if edition.standing is not Standing.RELEASED or Release.parse(edition.release) < KIP_848:
        return None
    return MachineAdapter(ConsumerGroup(), consumer_groups.VERBS, consumer_groups.event_of, consumer_groups.answer_of)


def bounce(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if not has_upgrade(edition):
        return None
    return MachineAdapter(upgrade_model(edition), bounces.CODEC.events, bounces.event_of, bounces.answer_of)


MACHINE_ADAPTERS: Mapping[str, Callable[[Edition], MachineAdapter[Any, Any, Any] | None]] = {
    **{each.name: each.adapter for each in registry.packages().values()},
    GROUP: group,
    CONSUMER_GROUP: consumer_group,
    MEMBER: member,
    BOUNCE: bounce,
    STREAMS: streams_group,
    STREAMS_MIXED: streams_group,
}
"""Each returns None where an edition has no such machine."""


def machine_adapters(edition: Edition) -> Mapping[str, MachineAdapter[Any, Any, Any]]:
    """The machines that an edition has, by name."""
    made = {name: make(edition) for name, make in MACHINE_ADAPTERS.items()}
    return {name: player for name, player in made.items() if player is not None}
