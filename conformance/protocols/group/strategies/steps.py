"""Steps of conversations with the coordinator of a classic group that need no view of it, and changes to steps."""

from collections.abc import Callable
from random import Random
from typing import Any

from kipcheck.conformance.core.values.case import Step, step
from kipcheck.conformance.protocols.group.ops import BROKER
from kipcheck.conformance.protocols.group.strategies.events import LOG_ERRORS, MOST, PARTITIONS, REBALANCES, TOPICS


def with_long_timeout(made: Callable[[Random], Step], random: Random) -> Step:
    """A JoinGroup with a long rebalance timeout."""
    step = made(random)
    return Step(step.actor, step.verb, {**step.body, "rebalance_ms": max(REBALANCES)})


def broker_step(verb: str, random: Random) -> Step:
    return step(BROKER, verb)


def failed_write(random: Random) -> Step:
    return step(BROKER, "fail-write", error=random.choice(LOG_ERRORS))


def stale(made: Callable[[Random], Step], random: Random) -> Step:
    """A request with a generation that is not the group's, or of an unknown member."""
    step = made(random)
    flaw = random.choice(({"behind": 1}, {"behind": -1}, {"member": "?"}))
    return Step(step.actor, step.verb, {**step.body, **flaw})


def drawn_offsets(random: Random) -> list[list[Any]]:
    if random.random() < 0.8:
        return [[random.choice(TOPICS), random.choice(PARTITIONS), random.randint(0, MOST)]]
    return [[TOPICS[0], partition, random.randint(0, MOST)] for partition in PARTITIONS]
