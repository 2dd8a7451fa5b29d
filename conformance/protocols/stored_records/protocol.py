"""The records that coordinators store as released: what KIP-384's draft was to gate with a setting of its own."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released

PROTOCOL: Final = ProtocolPackage(160, Role.BROKER, {"stored-records": released})
