"""Checks of brokers that store records of their coordinators."""

from collections.abc import Callable, Iterable
from typing import Final

from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.declare.package import released
from kipcheck.conformance.protocols.stored_records.invariants import LOADED, WRITTEN
from kipcheck.conformance.protocols.stored_records.model import ENVIRONMENT_EVENTS
from kipcheck.conformance.protocols.stored_records.ops import OPERATIONS, Event, Read, Write
from kipcheck.conformance.protocols.stored_records.strategies import records

A_CASE: Final = 6
"""Events of an enumerated case."""


def all_of(made: type[Event]) -> Callable[[Subject], Iterable[Conversation]]:
    """Every record with every setting, or every stored record: no event depends on those before it."""

    def about(subject: Subject) -> Iterable[Conversation]:
        steps = [OPERATIONS.step_of(each) for each in ENVIRONMENT_EVENTS if isinstance(each, made)]
        for at in range(0, len(steps), A_CASE):
            yield Conversation(tuple(steps[at : at + A_CASE]), f"from {at}")

    return about


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
        values=100,
        invariants=invariants_of(WRITTEN),
        given=all_of(Write),
    ),
    Check(
        LOADED,
        "a broker loads the versions that its release knows, and no others",
        BROKER,
        conversation,
        values=100,
        invariants=invariants_of(LOADED),
        given=all_of(Read),
    ),
)
