"""The protocol of KIP-848's consumer groups."""

from typing import Final

from kipcheck.conformance.protocols.consumer_group import target
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage.of(80, OPERATIONS, target.adapter)
