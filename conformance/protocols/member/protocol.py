"""The protocol of classic groups, as a member has it."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, either, released_since

PROTOCOL: Final = ProtocolPackage(70, Role.MEMBER, {"member": either(KIP_429, released_since(named("first-consumer")))})
