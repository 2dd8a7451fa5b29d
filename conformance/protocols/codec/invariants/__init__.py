"""Invariants of codecs, by module, in the order of verdicts."""

from functools import partial

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.declare.invariant import invariant

codec_invariant = partial(invariant, role=Role.CODEC)
