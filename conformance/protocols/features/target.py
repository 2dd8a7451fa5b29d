"""The reference machines of feature controllers as adapters."""

from typing import Any

from kipcheck.conformance.core.edition import Edition, Standing
from kipcheck.conformance.core.release import Release
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.features.model.controller import FeatureController
from kipcheck.conformance.protocols.features.model.kraft import KraftController
from kipcheck.conformance.protocols.features.model.kraft_rules import FIRST, Rules
from kipcheck.conformance.protocols.features.ops import kraft
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(OPERATIONS, FeatureController())


def kraft_adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if edition.standing is not Standing.RELEASED or Release.parse(edition.release) < FIRST:
        return None
    return adapter_of(kraft.OPERATIONS, KraftController(Rules.of(edition.release)))


ADAPTERS = {OPERATIONS.machine: adapter, kraft.OPERATIONS.machine: kraft_adapter}
