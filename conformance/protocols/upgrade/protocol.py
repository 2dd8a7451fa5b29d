"""Rolling upgrades of consumer groups: KIP-429."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.upgrade import target
from kipcheck.conformance.targets.protocol import BOUNCE

PROTOCOL: Final = ProtocolPackage(90, Role.OPERATOR_TOOL, {BOUNCE: target.bounce})
