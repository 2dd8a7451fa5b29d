"""The protocol of classic groups, as their coordinator has it."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, either, released

PROTOCOL: Final = ProtocolPackage(60, Role.COORDINATOR, {"group": either(KIP_429, released)})
