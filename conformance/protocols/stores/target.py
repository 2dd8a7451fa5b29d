"""The reference machine of stores with timestamps as an adapter."""

from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.declare.package import released_since
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter

HAS_STORES: Final = released_since(since("timestamped-stores"))


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    return adapter_of(OPERATIONS, store_of(edition.release)) if HAS_STORES(edition) else None


ADAPTERS = {OPERATIONS.machine: adapter}
