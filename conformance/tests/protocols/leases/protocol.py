"""A made-up KIP: a broker leases a partition to one client at a time."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released

PROTOCOL: Final = ProtocolPackage(65, Role.BROKER, {"leases": released})
