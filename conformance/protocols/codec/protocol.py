"""The codecs of all messages, of the JSON nodes in ZooKeeper, and of the files beside a log."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(10, Role.CODEC)
