"""Rolling upgrades of consumer groups: KIP-429."""

from typing import Final

from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.upgrade import target
from kipcheck.conformance.protocols.upgrade.ops import OPERATIONS

PROTOCOL: Final = ProtocolPackage.of(90, OPERATIONS, target.bounce)
