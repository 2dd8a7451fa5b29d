"""The protocol of feature updates: KIP-584's draft, and KRaft as released."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.releases_table import since
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_since

PROTOCOL: Final = ProtocolPackage(
    50,
    Role.CONTROLLER,
    {"features": lambda edition: True, "kraft-features": released_since(since("java-controller-runs"))},
)
