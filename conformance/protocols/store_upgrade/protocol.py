"""Upgrades of stores as KIP-258's draft has them: three paths that no release has."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(140, Role.STORE, {"store-upgrade": lambda edition: True})
