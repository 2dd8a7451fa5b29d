"""The reference machine of share groups as an adapter."""

from typing import Final

from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.share_group.model import ShareGroup
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS
from kipcheck.conformance.protocols.share_group.rules import Rules

MACHINE: Final = ReleasedMachine(OPERATIONS, "kip-932", lambda release: ShareGroup(Rules.of(release)))
ADAPTERS = {OPERATIONS.machine: MACHINE.adapter}
