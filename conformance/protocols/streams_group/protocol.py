"""The protocol of KIP-1071's streams groups."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(180, Role.COORDINATOR, {"streams-group": released_since(since("kip-1071"))})
