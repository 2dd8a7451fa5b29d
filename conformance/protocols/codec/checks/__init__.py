"""Checks of codecs."""

from kipcheck.conformance.protocols.codec.checks.log_files import LOG_FILE_CHECKS
from kipcheck.conformance.protocols.codec.checks.nodes import NODE_CHECKS
from kipcheck.conformance.protocols.codec.checks.wire import WIRE

CHECKS = (*WIRE, *NODE_CHECKS, *LOG_FILE_CHECKS)
