"""The protocol of feature updates: KIP-584's draft."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(50, Role.CONTROLLER, {"features": lambda edition: True})
