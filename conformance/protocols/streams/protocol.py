"""Kafka Streams groups and their upgrades: KIP-268."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, either, released

PROTOCOL: Final = ProtocolPackage(
    100, Role.OPERATOR_TOOL, dict.fromkeys(("streams", "streams-mixed"), either(KIP_268, released))
)
