"""The protocol of damaged requests to a running broker."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(150, Role.COORDINATOR, {"damage": lambda edition: False})
"""The target ``reference`` has no such broker: damage needs a socket."""
