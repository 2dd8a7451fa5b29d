"""Rolling upgrades of consumer groups: KIP-429."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, either, released_since

PROTOCOL: Final = ProtocolPackage(
    90, Role.OPERATOR_TOOL, {"bounce": either(KIP_429, released_since(since("cooperative-rebalancing")))}
)
