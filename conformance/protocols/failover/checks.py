"""The check of groups on a cluster whose nodes fail."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import (
    Subject,
    Value,
    Wording,
    listed,
    operations_family,
)
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.failover import ops
from kipcheck.conformance.protocols.failover.invariants import GROUPS
from kipcheck.conformance.protocols.failover.strategies import SCRIPTS

SETTLE: Final[Step] = ops.OPERATIONS.step_of(ops.Settle())
BEGUN: Final = "join a {0}; join b {0}; settle; "
FIRST: Final = tuple(
    (BEGUN + text).format(protocol)
    for protocol in ("classic", "consumer")
    for text in (
        "kill coordinator; settle; start; join c {0}; settle; kill other; leave c; start; crash b",
        "pause coordinator; pass 12000; crash a; pass 12000; resume; join c {0}; settle; pause other; crash c; resume",
        "elect; pass 1000; roll; pass 1000; roll; pass 1000; roll; raise; pass 1000; elect; stop other; leave b; start",
    )
)
"""Each fault, of groups of both protocols; the third one rolls a cluster of two releases from one to the other."""


def editions(name: str) -> Iterable[str]:
    """Brokers are tested in editions of Apache Kafka."""
    return (name,) if edition(name).name.startswith("apache") else ()


def _given(text: str) -> Callable[[Subject], Value]:
    steps = ops.OPERATIONS.parse_shorthand(text)
    return lambda subject: [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]


def _events(reply: Replied) -> list[str]:
    events = ops.OPERATIONS.observed
    assert events is not None
    return [events.describe(events.from_json(each)) for each in dict(reply.payload).get("actions", ())]


def conversation(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """The steps, of which those that cannot happen are replaced; then the group has to become stable."""
    steps = SCRIPTS.mended(steps_from(value))
    yield Conversation(steps if steps[-1:] == (SETTLE,) else (*steps, SETTLE))


_WORDING: Final = Wording("cluster", lambda step: step.actor, ops.OPERATIONS.sentence, listed, _events)
CLUSTER: Final[Family[Subject]] = replace(
    operations_family(ops.OPERATIONS, editions, lambda edition: SCRIPTS, "cluster"),
    exhibits=_WORDING.sequence,
    steps_are_apart=False,
)
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        GROUPS,
        "a group keeps its owners, offsets and epochs while its coordinator moves, fails, or changes its release",
        CLUSTER,
        conversation,
        values=8,
        invariants=invariants_of(GROUPS),
        first=tuple(map(_given, FIRST)),
    ),
)
