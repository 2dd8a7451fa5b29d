"""The protocol of KIP-932's share partitions."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(200, Role.COORDINATOR, {"share-partition": released_since(since("share-partitions"))})
