"""Checks of coordinators of KIP-1071's streams groups."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.reconciled.log_draws import Reloaded, latest
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.streams_group import invariants
from kipcheck.conformance.protocols.streams_group.ops import (
    CLIENTS,
    OPERATIONS,
    REBALANCE_MS,
    SESSION_MS,
    Beat,
    Describe,
    Event,
)
from kipcheck.conformance.protocols.streams_group.strategies import STREAMS_GROUPS
from kipcheck.conformance.protocols.streams_group.target import MACHINE

ROUNDS = 4
"""Rounds of heartbeats at the end, in which pending reassignments can finish."""
LIFE = (
    "join a runs t,u at 1 none; describe; join b runs t at 0 none; describe; beat a told; beat a told; beat b none; "
    "describe; join c runs t at 1 none; consume; leave a; leave b; describe; join c runs t,u at 1 none; "
    f"describe; pass {SESSION_MS}; beat c told; describe"
)
"""A group from its first member to its last one, with a stale topology, and one that is refused."""
FLAWS = (
    "join a runs t at 0 none flaw timeout; join a runs t at 0 none flaw changelog; join a runs t at 0 none flaw regex; "
    "join a at 0 none; join a runs t at 0 none; beat a runs t at 0 told; beat a told flaw task; "
    "beat a told flaw standby; beat a told flaw group; beat a told flaw member; beat a told flaw instance; "
    "beat a told flaw rack; away a; join a runs t at 0 told; beat a told"
)
"""Each invalid heartbeat, and a valid one."""
LOST = (
    "join a runs t,u at 0 none; join b runs t,u at 0 none; beat b told; beat a; beat a; beat b told; beat a told; "
    "beat a-1 told; beat a-1; beat b told; beat b told; leave c"
)
"""Heartbeats without tasks while some have to be revoked; and an answer that is lost."""
INTERNAL = (
    "join a runs r,t none; join b runs r,t none; beat a told; beat b told; beat a told; beat b told; describe; "
    "leave a; beat b told; describe"
)
"""A repartition topic, which the broker creates."""
STANDBY = (
    "join a runs s,u none; beat a told; join b runs s,u none; beat a told; beat a told; beat b told; beat a told; "
    "beat b told; describe; leave a; beat b told; beat b told; beat b told; describe"
)
"""Tasks with a changelog, whose standby task becomes the active one."""
STANDBYS_SET = (
    f"join a runs s,u none; beat a told; join b runs s,u none; {3 * 'beat a told; beat b told; '}describe; "
    f"configure standbys 0; describe; {4 * 'beat a told; beat b told; '}describe; configure standbys 2; "
    f"join c runs s,u none; {5 * 'beat a told; beat b told; beat c told; '}describe; configure standbys 1; leave c; "
    f"{5 * 'beat a told; beat b told; '}describe"
)
"""The number of standby tasks of the group is set while it has members, and changed."""
WRONG = "join a runs w none; beat a told; describe; join b runs w,t at 1 none; leave a"
"""A changelog with a wrong number of partitions."""
STATIC = (
    "join a runs t none as i; join b runs t none as i; beat b told as i; beat a told as i; away a as i; describe; "
    "join b runs t none as i; beat a told as i; beat b told as j; beat b told as i; join c runs t none; "
    "beat b told as i; beat b told as i; beat c told; join a runs t none as i; beat c told; describe; "
    "leave b as i; beat c told; describe"
)
"""A static member that another process replaces, and one that is refused."""
AWAY = (
    "join a runs t none as i; join b runs t none; beat a told as i; beat a told as i; beat b told; away a as i; "
    f"beat b told; describe; {3 * 'pass 15000; beat b told; '}describe; beat b told; describe"
)
"""A static member that leaves for a while, and does not come back."""
WAITING = (
    "join b runs t,u none; join a runs t,u none as i; beat b told; beat b told; join c runs t,u none as i; "
    "beat a told as i; beat b told; describe"
)
"""A refused join with the instance of a member that waits for tasks."""
KEPT = (
    "join a runs t,u none as i; beat a told as i; away a as i; join c runs t,u none; beat c told; beat c told; describe"
)
"""A member joins while a static one, which has all tasks, is away."""
STATED = "join a runs t none as i; join b runs t none; beat b told as i; beat b told; beat a told as i"
"""A member states the instance of another one."""
OTHER_TYPE = "describe; beat a told; consume; join a runs t at 0 none; describe; leave a"
"""No group, and then a consumer group."""
SILENT = (
    "join a runs t,u at 0 none; join b runs t,u at 0 none; beat a told; beat a told; beat b told; "
    f"{3 * 'pass 15000; describe; beat b told; '}describe; beat a told; beat b told; describe"
)
"""One of two members is silent, and only described, until its session has ended."""
DEADLINES: Final = {
    "session": f"join a runs t none; pass {SESSION_MS - 1}; beat a told; pass {SESSION_MS}; beat a told",
    "refused": f"join a runs t none; beat a told; pass 30000; beat a+1; pass {SESSION_MS - 30_000}; beat a told",
    "revocation": f"join a runs t none; beat a told; join b runs t none; beat a told; pass {REBALANCE_MS - 1}; "
    "beat a before; pass 1; beat a before; beat b told",
}
"""A heartbeat just before a deadline and at it; and one that is refused, which renews no session."""
FENCED = (
    "join a runs t,u none; join b runs t,u none; beat a told; beat b told; beat a told; beat a+1 told; "
    "join a runs t,u none; beat a told; beat b told; leave b; join c runs t,u none as i; beat a told; "
    "beat c told as i; beat c+1 told as i; join c runs t,u none as i; beat c told as i"
)
"""A dynamic and a static member are fenced, and join again."""
FULL = (
    "join a runs t none; join b runs t none; join c runs t none; join d runs t none; beat d told; beat a told; "
    "beat a+1 told; join a runs t none; beat a told; leave b; join d runs t none; beat d told; describe"
)
"""A fourth client joins a group for three, of which one is fenced and one leaves."""
ENDPOINTS = (
    "join a runs t none at-host h; beat a told; join b runs t none at-host k; beat a told; beat a told; beat b told; "
    "beat a told; join c runs t none; beat a told; beat b told; beat a told; beat c told; beat c told; beat a told; "
    "beat b told; leave b; beat a told; beat c told; beat a told; beat c told; beat a told"
)
"""Two members of three have an endpoint, and tasks move between them."""
NO_TOPIC = "join a runs v none at-host h; beat a told; join b runs w at 1 none at-host k"
"""Members with an endpoint whose source topic does not exist, or whose changelog has a wrong number of partitions."""
OF_STORES = (
    "join a runs s none at-host h; beat a told; join b runs s none at-host k; beat a told; beat a told; beat b told"
)
KNOWN: Final = {
    "endpoints": ENDPOINTS,
    "no topic": NO_TOPIC,
    "no changelog": "join a runs w none at-host h; beat a told",
    "stores": OF_STORES,
    **DEADLINES,
    "full": FULL,
    "fenced": FENCED,
    "life": LIFE,
    "flaws": FLAWS,
    "lost": LOST,
    "type": OTHER_TYPE,
    "silent": SILENT,
    "internal": INTERNAL,
    "standby": STANDBY,
    "standbys set": STANDBYS_SET,
    "wrong": WRONG,
    "static": STATIC,
    "away": AWAY,
    "waiting": WAITING,
    "kept": KEPT,
    "stated": STATED,
}


def with_final_rounds(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Adds rounds in which all members confirm their tasks, and describes: two after the last rounds.

    In half of the cases all clients join before, and in half of them all leave at last.
    """
    joins: list[Event] = [Beat(each, Says.JOIN, topology=("t", "u"), owned="none") for each in CLIENTS]
    rounds: list[Event] = [Beat(each, Says.STAY, owned="told") for _ in range(ROUNDS) for each in CLIENTS]
    leaves: list[Event] = [Beat(each, Says.LEAVE) for each in CLIENTS]
    events = [
        *(joins if random.random() < 0.5 else []),
        *rounds,
        Describe(),
        *rounds[: len(CLIENTS)],
        Describe(),
        *(leaves if random.random() < 0.5 else []),
        Describe(),
    ]
    yield Conversation((*steps_from(value), *map(OPERATIONS.step_of, events)))


def known_ones(subject: Subject) -> Iterable[Conversation]:
    for name, text in KNOWN.items():
        yield Conversation(OPERATIONS.parse_shorthand(text), name)


def described(steps: Sequence[Step]) -> list[Event]:
    """Each client confirms its tasks, and the group is described."""
    return [*(Beat(each, Says.STAY, owned="told", instance=of) for each, (of,) in latest(steps, "instance").items()),
            Describe()]  # fmt: skip


RELOADED: Final = Reloaded(
    OPERATIONS,
    described,
    CLIENTS[:2],
    {**KNOWN, "simple": f"commit 5 for 0; {STANDBY}; commit 6 for 1 by b in 3 with m"},
)
GROUPS: Family[Subject] = operations_family(OPERATIONS, MACHINE.editions, lambda edition: STREAMS_GROUPS, "coordinator")

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.TASKS,
        "a task has one active owner, exists, and is handed over in the right order",
        GROUPS,
        with_final_rounds,
        values=100,
        invariants=invariants_of(invariants.TASKS, part=invariants),
        given=known_ones,
    ),
    Check(
        invariants.EPOCHS,
        "epochs only rise, topologies do not mix, and an invalid heartbeat is refused with its documented error",
        GROUPS,
        conversation,
        values=150,
        invariants=invariants_of(invariants.EPOCHS, part=invariants),
        given=known_ones,
    ),
    Check(
        invariants.DESCRIBE,
        "the description of a group agrees with the answers to its members",
        GROUPS,
        with_final_rounds,
        values=100,
        invariants=invariants_of(invariants.DESCRIBE, part=invariants),
        given=known_ones,
    ),
    Check(
        invariants.RECORDS,
        "a coordinator that reads its log, compacted or not, has the group as it was",
        GROUPS,
        RELOADED,
        values=100,
        invariants=tuple(
            id
            for each in (invariants.RECORDS, invariants.TASKS, invariants.EPOCHS)
            for id in invariants_of(each, part=invariants)
        ),
        given=RELOADED.given,
    ),
)
