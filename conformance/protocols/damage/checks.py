"""The checks of damaged requests, and of those of old clients."""

from collections.abc import Callable, Iterable
from typing import Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.damage.invariants import OLD_CLIENTS, REQUESTS
from kipcheck.conformance.protocols.damage.ops import OLDEST, OPERATIONS
from kipcheck.conformance.protocols.damage.strategies import SENT, conversation, oldest, systematic
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import (
    Subject,
    Value,
    conversation as plain_conversation,
    operations_family,
)
from kipcheck.conformance.protocols.declare.invariant import invariants_of


def editions(name: str) -> Iterable[str]:
    """Brokers are tested in editions of Apache Kafka."""
    return (name,) if edition(name).name.startswith("apache") else ()


def _given(value: Value) -> Callable[[Subject], Value]:
    return lambda subject: value


BROKER: Final[Family[Subject]] = operations_family(OPERATIONS, editions, lambda edition: SENT, "broker")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        REQUESTS,
        "a broker survives damaged requests, and serves its other clients as before",
        BROKER,
        conversation,
        values=30,
        invariants=invariants_of(REQUESTS),
        first=tuple(map(_given, systematic())),
    ),
    Check(
        OLD_CLIENTS,
        "a broker serves the oldest versions of the requests of group members that KIP-896 keeps",
        BROKER,
        plain_conversation,
        values=len(OLDEST),
        invariants=invariants_of(OLD_CLIENTS),
        first=tuple(map(_given, oldest())),
    ),
)
