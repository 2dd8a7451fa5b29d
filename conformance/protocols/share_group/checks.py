"""Checks of coordinators of KIP-932's share groups."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.reconciled.log_draws import Reloaded, latest
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.share_group import invariants
from kipcheck.conformance.protocols.share_group.ops import (
    CLIENTS,
    INTERVAL_MS,
    OPERATIONS,
    SESSION_MS,
    Beat,
    Event,
    Pass,
)
from kipcheck.conformance.protocols.share_group.strategies import SHARE_GROUPS
from kipcheck.conformance.protocols.share_group.target import MACHINE

ROUNDS = 4
"""Rounds of heartbeats at the end, after which a group is at rest."""
REST: Final = f"pass {INTERVAL_MS}; {ROUNDS * 'beat a; beat b; beat c; '}"
KNOWN: Final = {
    "more members": f"join a on u; join b on u; join c on u; {REST}leave a; {REST}",
    "subscriptions": f"join a on t; beat a on u; {REST}beat a on t,u; {REST}beat a on t; {REST}",
    "repetitions": "join a on t; join b on t; beat a; beat a-1; beat a-2; beat a+1; leave b; beat b; beat a",
    "flaws": "join a; join a on t without rack; join a on t without group; away a; join a on t; beat a without member; "
    "beat a without rack; beat a",
    "deadline": f"join a on t; pass {SESSION_MS - 1}; beat a; pass {SESSION_MS}; beat a",
    "refused": f"join a on t; beat a; pass 30000; beat a+1; pass {SESSION_MS - 30_000}; beat a",
    "full": "join a on t; join b on t; join c on t; join d on t; beat d; beat a+1; join a on t; leave b; join d on t; "
    "beat d",
    "fenced": f"join a on t; join b on t; pass {INTERVAL_MS}; beat a; beat b; beat a+1; join a on t; beat a; beat b",
    "silent": "join a on t; join b on t; pass 15000; beat a; pass 15000; beat a; pass 15000; beat b; beat a; "
    "pass 45000; beat a; join a on t; beat a",
    "one is slow": f"join a on t; join b on t; pass {INTERVAL_MS}; {8 * 'beat a; '}beat b; beat b; beat a",
}  # fmt: skip
"""More members than partitions; changed subscriptions; lost answers; invalid heartbeats; ended sessions; and a member
that learns late of its part."""


def with_rest(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Adds time for a target assignment, and rounds of heartbeats; in half of the cases all clients join before."""
    joins = [Beat(client, Says.JOIN, topics=("u",)) for client in CLIENTS] if random.random() < 0.5 else []
    rounds = [Beat(client, Says.STAY) for _ in range(ROUNDS) for client in CLIENTS]
    events: list[Event] = [*joins, Pass(INTERVAL_MS), *rounds]
    yield Conversation((*steps_from(value), *map(OPERATIONS.step_of, events)))


def known_ones(subject: Subject) -> Iterable[Conversation]:
    for name, text in KNOWN.items():
        yield Conversation(OPERATIONS.parse_shorthand(text), name)


def stated(steps: Sequence[Step]) -> list[Beat]:
    """Each client states its topics, so that the answer has its whole assignment."""
    return [
        Beat(client, Says.STAY, topics=None if topics is None else tuple(topics))
        for client, (topics,) in latest(steps, "topics").items()
    ]


RELOADED: Final = Reloaded(OPERATIONS, stated, known=KNOWN, pause=Pass(INTERVAL_MS))
GROUPS: Family[Subject] = operations_family(OPERATIONS, MACHINE.editions, lambda edition: SHARE_GROUPS, "coordinator")

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.MEMBERSHIP,
        "members share the partitions of their topics, epochs only rise, and sessions end",
        GROUPS,
        with_rest,
        values=150,
        invariants=invariants_of(invariants.MEMBERSHIP),
        given=known_ones,
    ),
    Check(
        invariants.RECORDS,
        "a coordinator that reads its log, compacted or not, has the group as it was",
        GROUPS,
        RELOADED,
        values=100,
        invariants=(*invariants_of(invariants.RECORDS), *invariants_of(invariants.MEMBERSHIP)),
        given=RELOADED.given,
    ),
)
