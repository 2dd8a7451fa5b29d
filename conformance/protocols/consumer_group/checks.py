"""Checks of coordinators of KIP-848 groups."""

from collections.abc import Iterable
from random import Random

from kipcheck.conformance.core.case import steps_from
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.consumer_group import invariants
from kipcheck.conformance.protocols.consumer_group.ops import CLIENTS, OPERATIONS, Beat, Says
from kipcheck.conformance.protocols.consumer_group.strategies import CONSUMER_GROUPS
from kipcheck.conformance.protocols.consumer_group.target import adapter
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of

ROUNDS = 5
"""Rounds of heartbeats at the end, in which pending reassignments can finish."""


def editions(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if adapter(found) is not None else ()


def with_final_rounds(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Adds rounds in which all members confirm their assignments; in half of the cases all clients join before."""
    rounds = [OPERATIONS.step_of(Beat(client, Says.STAY, owned="told")) for _ in range(ROUNDS) for client in CLIENTS]
    joins = [OPERATIONS.step_of(Beat(client, Says.JOIN, topics=("t",), owned="none")) for client in CLIENTS]
    joins = joins if random.random() < 0.5 else []
    yield Conversation((*steps_from(value), *joins, *rounds))


GROUPS: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: CONSUMER_GROUPS, "coordinator")

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.OWNERSHIP,
        "a partition has one owner, is handed over in the right order, and is not left unassigned",
        GROUPS,
        with_final_rounds,
        values=150,
        invariants=invariants_of(invariants.OWNERSHIP),
    ),
    Check(
        invariants.EPOCHS,
        "epochs only rise, and an invalid heartbeat is refused with its documented error",
        GROUPS,
        conversation,
        values=300,
        invariants=invariants_of(invariants.EPOCHS),
    ),
)
