"""The reference machine of consumer groups as an adapter."""

from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.targets.machine_target import MachineAdapter

KIP_848: Final = Release.parse(since("kip-848"))
"""The first release in which consumer groups are not a preview."""


def machine_of(edition: Edition) -> ConsumerGroup:
    """As an exact release has it, or as the newest one."""
    return ConsumerGroup(rules=Rules.of(edition.release) if edition.exact else CURRENT)


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if edition.standing is not Standing.RELEASED or Release.parse(edition.release) < KIP_848:
        return None
    return adapter_of(OPERATIONS, machine_of(edition))


ADAPTERS = {OPERATIONS.machine: adapter}
