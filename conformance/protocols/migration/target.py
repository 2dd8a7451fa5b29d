"""The reference machine of groups with members of both protocols as an adapter."""

from typing import Final

from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.declare.machine_adapter import ReleasedMachine
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS

MACHINE: Final = ReleasedMachine(OPERATIONS, "kip-848", lambda release: MixedGroup(Rules.of(release)))
ADAPTERS = {OPERATIONS.machine: MACHINE.adapter}
