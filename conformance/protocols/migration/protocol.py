"""The protocol of groups whose members use the classic protocol and KIP-848's."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.releases_table import since
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(170, Role.COORDINATOR, {"migration": released_since(since("kip-848"))})
