"""The protocol of classic groups, as their coordinator has it."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.group import target
from kipcheck.conformance.protocols.group.ops import GROUP

PROTOCOL: Final = ProtocolPackage(60, Role.COORDINATOR, {GROUP: target.group})
