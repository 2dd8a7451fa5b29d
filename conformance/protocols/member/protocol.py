"""The protocol of classic groups, as a member has it."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage
from kipcheck.conformance.protocols.member import target
from kipcheck.conformance.protocols.member.ops import MEMBER

PROTOCOL: Final = ProtocolPackage(70, Role.MEMBER, {MEMBER: target.member})
