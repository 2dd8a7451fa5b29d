"""The protocol of feature updates: KIP-584's draft."""

from typing import Final

from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.features import target
from kipcheck.conformance.protocols.features.ops import OPERATIONS

PROTOCOL: Final = ProtocolPackage.of(50, OPERATIONS, target.adapter)
