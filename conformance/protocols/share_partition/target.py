"""The reference machine of share partitions as an adapter."""

from typing import Final

from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.share_partition.model import ShareLeader
from kipcheck.conformance.protocols.share_partition.ops import OPERATIONS
from kipcheck.conformance.protocols.share_partition.rules import Rules

MACHINE: Final = ReleasedMachine(
    OPERATIONS, "share-partitions", lambda release: ShareLeader(Rules.of(release)), owed=ShareLeader
)
ADAPTERS = {OPERATIONS.machine: MACHINE.adapter}
