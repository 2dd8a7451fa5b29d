"""The protocol of scripts for live clients."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(110, Role.CLIENT, {"client": lambda edition: False})
"""The target ``reference`` has no such client: a live client is a program."""
