"""The reference machine of groups with members of both protocols as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.consumer_group.target import KIP_848
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if edition.standing is not Standing.RELEASED or Release.parse(edition.release) < KIP_848:
        return None
    return adapter_of(OPERATIONS, MixedGroup(Rules.of(edition.release) if edition.exact else CURRENT))


ADAPTERS = {OPERATIONS.machine: adapter}
