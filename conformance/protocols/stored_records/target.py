"""The reference machine of stored records as an adapter."""

from typing import Any

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.declare.package import released
from kipcheck.conformance.protocols.stored_records.model import StoredRecords
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    """At an exact release it does what that release does, and otherwise what is owed."""
    return adapter_of(OPERATIONS, StoredRecords(edition.release, edition.exact)) if released(edition) else None


ADAPTERS = {OPERATIONS.machine: adapter}
