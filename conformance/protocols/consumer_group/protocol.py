"""The protocol of KIP-848's consumer groups."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(80, Role.COORDINATOR, {"consumer-group": released_since(since("kip-848"))})
