"""The reference machine of consumer groups as an adapter."""

from typing import Final

from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine

MACHINE: Final = ReleasedMachine(OPERATIONS, "kip-848", lambda release: ConsumerGroup(rules=Rules.owed(release)))
ADAPTERS = {OPERATIONS.machine: MACHINE.adapter}
