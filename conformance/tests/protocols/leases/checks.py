"""Checks of brokers that lease a partition."""

from collections.abc import Iterable

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.tests.protocols.leases.invariants import HOLDERS
from kipcheck.conformance.tests.protocols.leases.ops import OPERATIONS
from kipcheck.conformance.tests.protocols.leases.strategies import LEASES


def editions(name: str) -> Iterable[str]:
    return (APACHE.name,) if name == APACHE.name else ()


BROKER: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: LEASES, "broker")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        HOLDERS,
        "a lease has one holder at a time",
        BROKER,
        conversation,
        values=100,
        invariants=invariants_of(HOLDERS),
    ),
)
