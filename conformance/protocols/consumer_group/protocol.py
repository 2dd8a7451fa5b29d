"""The protocol of KIP-848's consumer groups."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.releases_table import since
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(80, Role.COORDINATOR, {"consumer-group": released_since(since("kip-848"))})
