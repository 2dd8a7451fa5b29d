"""Consumers, their coordinator, and a network that delays and loses messages: a model to explore."""

from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.package import ProtocolPackage

PROTOCOL: Final = ProtocolPackage(85, Role.MEMBER)
