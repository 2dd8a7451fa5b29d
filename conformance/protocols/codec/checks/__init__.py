"""Checks of codecs."""

from kipcheck.conformance.protocols.codec.checks.nodes import NODE_CHECKS
from kipcheck.conformance.protocols.codec.checks.wire import WIRE

CHECKS = (*WIRE, *NODE_CHECKS)
