"""The protocol of groups whose members use the classic protocol and KIP-848's."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(170, Role.COORDINATOR, {"migration": released_since(since("kip-848"))})
