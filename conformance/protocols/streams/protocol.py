"""Kafka Streams groups and their upgrades: KIP-268."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.streams import target
from kipcheck.conformance.targets.protocol import STREAMS, STREAMS_MIXED

PROTOCOL: Final = ProtocolPackage(
    100, Role.OPERATOR_TOOL, dict.fromkeys((STREAMS, STREAMS_MIXED), target.streams_group)
)
