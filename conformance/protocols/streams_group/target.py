"""The reference machine of streams groups as an adapter."""

from typing import Final

from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS
from kipcheck.conformance.protocols.streams_group.rules import Rules

MACHINE: Final = ReleasedMachine(OPERATIONS, "kip-1071", lambda release: StreamsGroup(Rules.owed(release)))
ADAPTERS = {OPERATIONS.machine: MACHINE.adapter}
