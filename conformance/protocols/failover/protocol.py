"""Groups on a cluster of three brokers, whose coordinators move and fail."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(230, Role.COORDINATOR, {"failover": lambda edition: False})
"""The target ``reference`` has no cluster: only nodes that run can fail."""
