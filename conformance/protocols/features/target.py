"""The reference machine of feature controllers as an adapter."""

from typing import Any

from kipcheck.conformance.core.edition import Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.features.model.controller import FeatureController
from kipcheck.conformance.protocols.features.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any]:
    return adapter_of(OPERATIONS, FeatureController())


ADAPTERS = {OPERATIONS.machine: adapter}
