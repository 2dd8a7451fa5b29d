"""Stores with timestamps: KIP-258, as a task of Streams uses them since 2.3.0."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(130, Role.STORE, {"timestamped-store": released_since(since("timestamped-stores"))})
