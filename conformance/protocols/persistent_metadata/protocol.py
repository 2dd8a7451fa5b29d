"""The persistent metadata of a cluster: KIP-384's draft, a setting that no release has."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(120, Role.BROKER, {"persistent-metadata": lambda edition: True})
