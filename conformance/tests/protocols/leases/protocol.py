"""A made-up KIP: a broker leases a partition to one client at a time."""

from typing import Final

from kipcheck.conformance.protocols.declare.package import ProtocolPackage

from . import target
from .ops import OPERATIONS

PROTOCOL: Final = ProtocolPackage.of(65, OPERATIONS, target.adapter)
