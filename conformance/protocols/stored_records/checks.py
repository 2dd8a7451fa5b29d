"""Checks of brokers that store records of their coordinators."""

from collections.abc import Iterable

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.declare.package import released
from kipcheck.conformance.protocols.stored_records.invariants import LOADED, WRITTEN
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS
from kipcheck.conformance.protocols.stored_records.strategies import reads, records, writes


def editions(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if released(found) else ()


BROKER: Family[Subject] = operations_family(OPERATIONS, editions, records, "broker")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        WRITTEN,
        "a record is written in the version that release, inter-broker version and features select",
        BROKER,
        conversation,
        values=60,
        invariants=invariants_of(WRITTEN),
        given=writes,
    ),
    Check(
        LOADED,
        "a broker loads the versions that its release knows, and no others",
        BROKER,
        conversation,
        values=60,
        invariants=invariants_of(LOADED),
        given=reads,
    ),
)
