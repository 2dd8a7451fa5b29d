"""Checks of coordinators of KIP-848 groups."""

from collections.abc import Iterable
from random import Random

from kipcheck.conformance.apis.consumer_group import shorthand, step_of
from kipcheck.conformance.apis.machine_targets import machine_adapters
from kipcheck.conformance.checks.conversations import Subject, Value, Wording, conversation, listed, machine_family
from kipcheck.conformance.checks.declare import Check, Conversation, Family
from kipcheck.conformance.core.case import Role, steps_from
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.models.consumer_group import CLIENTS, Beat, Says
from kipcheck.conformance.targets.protocol import CONSUMER_GROUP
from kipcheck.strategies.consumer_group import CONSUMER_GROUPS

ROUNDS = 5
"""Rounds of heartbeats at the end, in which pending reassignments can finish."""


def editions(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if CONSUMER_GROUP in machine_adapters(found) else ()


def with_final_rounds(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Adds rounds in which all members confirm their assignments; in half of the cases all clients join before."""
    rounds = [step_of(Beat(client, Says.STAY, owned="told")) for _ in range(ROUNDS) for client in CLIENTS]
    joins = [step_of(Beat(client, Says.JOIN, topics=("t",), owned="none")) for client in CLIENTS]
    joins = joins if random.random() < 0.5 else []
    yield Conversation((*steps_from(value), *joins, *rounds))


GROUPS: Family[Subject] = machine_family(
    Role.COORDINATOR,
    CONSUMER_GROUP,
    editions,
    lambda edition: CONSUMER_GROUPS,
    Wording(
        "coordinator", lambda step: step.body.get("client", step.actor), lambda step: shorthand([step]), listed
    ).sequence,
)

CONSUMER_GROUP_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "consumer-group/ownership",
        "a partition has one owner, is handed over in the right order, and is not left unassigned",
        GROUPS,
        with_final_rounds,
        values=150,
        invariants=("consumer-group/one-owner", "consumer-group/co-subscription", "consumer-group/settles"),
    ),
    Check(
        "consumer-group/epochs",
        "epochs only rise, and an invalid heartbeat is refused with its documented error",
        GROUPS,
        conversation,
        values=300,
        invariants=(
            "consumer-group/epochs-rise",
            "consumer-group/group-epoch-rises",
            "consumer-group/answers-leaving",
            "consumer-group/stale-epoch-fenced",
            "consumer-group/repetition-taken",
            "consumer-group/names-the-fault",
            "consumer-group/silent-are-fenced",
            "consumer-group/late-revokers-are-fenced",
        ),
    ),
)
