"""Kafka Streams groups and their upgrades: KIP-268."""

from typing import Final

from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.streams import target
from kipcheck.conformance.protocols.streams.ops import OPERATIONS

PROTOCOL: Final = ProtocolPackage.of(100, OPERATIONS, target.streams_group)
