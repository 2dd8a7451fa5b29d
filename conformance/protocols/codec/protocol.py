"""The codecs of all messages, and of the JSON nodes in ZooKeeper."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(10, Role.CODEC)
