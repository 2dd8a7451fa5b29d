"""Checks of coordinators of KIP-848 groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.consumer_group import invariants
from kipcheck.conformance.protocols.consumer_group.model import REFRESH_MS
from kipcheck.conformance.protocols.consumer_group.ops import (
    CLIENTS,
    INTERVAL_MS,
    LONGER_SESSION_MS,
    OPERATIONS,
    REBALANCE_MS,
    SESSION_MS,
    Beat,
    Pass,
)
from kipcheck.conformance.protocols.consumer_group.strategies import CONSUMER_GROUPS
from kipcheck.conformance.protocols.consumer_group.target import MACHINE
from kipcheck.conformance.protocols.consumer_group.trace import SETTLED
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.reconciled.log_draws import Reloaded, latest
from kipcheck.conformance.protocols.reconciled.terms import Says

ROUNDS = 5
"""Rounds of heartbeats at the end, in which pending reassignments can finish."""
BY_REGEX = f"join a none as i like t|u; pass {REFRESH_MS}; {(SETTLED + 2) * 'beat a told as i; '}away a as i; " \
    "join b on t none as i"  # fmt: skip

AT_REST = (
    f"join a on t none as i; join b on t none; pass {INTERVAL_MS}; {(SETTLED + 2) * 'beat a told as i; beat b told; '}"
)
TAKEN_OVER = f"{AT_REST}away a as i; pass {INTERVAL_MS}; join c on t none as i; beat b told; beat c told as i"
ALONE = f"join a on t,u none as i; pass {INTERVAL_MS}; beat a told as i; away a as i; pass {INTERVAL_MS}"
REVOKING = f"join a on t,u none; beat a told; join b on t,u none; pass {INTERVAL_MS}; beat a told"
"""The first member is asked to give up partitions, and still owns them: the epoch before its own is in question."""
REVOKED = f"{REVOKING}; beat a told; beat b told"
REVOKES_AGAIN = (
    f"{REVOKING}; join c on t,u none; pass {INTERVAL_MS}; beat a told; beat a told; beat b told; beat c told"
)
"""It has to give up more while it gives up the first ones."""
GIVES_UP = f"{REVOKING}; beat a on u before; beat a told; beat b told"
"""And it no longer subscribes to a topic."""
RETURNED = f"{AT_REST}away a as i; pass {INTERVAL_MS}; join a on t none as i; beat b told; beat a told as i"


DEADLINES: Final = {
    "session": f"join a on t none; pass {SESSION_MS - 1}; beat a told; pass {SESSION_MS}; beat a told",
    "refused": f"join a on t none; pass {REBALANCE_MS}; beat a+1; pass {SESSION_MS - REBALANCE_MS}; beat a told",
    "revocation": f"{REVOKING}; pass {REBALANCE_MS - 1}; beat a before; pass 1; beat a before; beat b told",
}
"""A heartbeat just before a deadline and at it; and one that is refused, which renews no session."""
FENCED = (
    f"join a on t none; join b on t none as i; pass {INTERVAL_MS}; {2 * 'beat a told; beat b told as i; '}"
    "beat a+1 told; join a on t none; beat a told; beat b+1 told as i; join b on t none as i; beat b told as i"
)
"""A dynamic and a static member are fenced, and join again."""


CHANGES: Final = (
    ("joins", "ab", Beat("c", Says.JOIN, owned="none"), "cab"),
    ("joins one", "a", Beat("b", Says.JOIN, owned="none"), "ab"),
    ("leaves", "abc", Beat("b", Says.LEAVE), "ac"),
    ("leaves first", "abc", Beat("a", Says.LEAVE), "bc"),
)
"""Members of a group at rest, what one client does then, and the members after that."""


def changed(topics: tuple[str, ...], before: str, change: Beat, after: str) -> Iterator[Beat | Pass]:
    """Members repeat the topics to which all subscribe; then one joins or leaves."""
    yield from (Beat(client, Says.JOIN, topics=topics, owned="none") for client in before)
    yield Pass(INTERVAL_MS)
    for repeated in (*(None,) * ROUNDS, topics, None):
        yield from (Beat(client, Says.STAY, topics=repeated, owned="told") for client in before)
    yield replace(change, topics=topics if change.says is Says.JOIN else None)
    yield Pass(INTERVAL_MS)
    yield from (Beat(client, Says.STAY, owned="told") for _ in range(ROUNDS) for client in after)


def with_final_rounds(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Adds rounds in which all members confirm their assignments; in half of the cases all clients join before.

    The first round is not before the next target assignment may be computed. In half of the cases one client leaves
    after the last one, and the others confirm what they have then.
    """
    rounds = [OPERATIONS.step_of(Beat(client, Says.STAY, owned="told")) for _ in range(ROUNDS) for client in CLIENTS]
    joins = [OPERATIONS.step_of(Beat(client, Says.JOIN, topics=("t",), owned="none")) for client in CLIENTS]
    joins = joins if random.random() < 0.5 else []
    pause = OPERATIONS.step_of(Pass(INTERVAL_MS))
    leaver = random.choice(CLIENTS)
    leaves = [OPERATIONS.step_of(Beat(leaver, Says.LEAVE)), pause, *rounds] if random.random() < 0.5 else []
    yield Conversation((*steps_from(value), *joins, pause, *rounds, *leaves))


LATER_TOPIC = (
    f"join a none like t|v; {{also}}pass {REFRESH_MS}; beat a told; {{more}}create v; pass {REFRESH_MS}; "
    f"{(SETTLED + 2) * 'beat a told; {more}'}"
)
CREATED: Final = {
    "alone": LATER_TOPIC.format(also="", more=""),
    "beside a name": LATER_TOPIC.format(also="join b on t none; ", more="beat b told; "),
    "beside an expression": LATER_TOPIC.format(also="join b none like t|u; ", more="beat b told; "),
}
"""A topic is created that an expression matches."""
CONFIGURED: Final = {
    "longer": f"join a on t none; configure session {LONGER_SESSION_MS}; beat a told; "
              f"pass {LONGER_SESSION_MS - 1}; beat a told; pass {LONGER_SESSION_MS}; beat a told",
    "shorter": f"join a on t none; configure session {LONGER_SESSION_MS}; beat a told; configure session {SESSION_MS}; "
               f"pass {SESSION_MS}; beat a told; pass {SESSION_MS}; beat a told",
    "read": f"configure session {LONGER_SESSION_MS}; join a on t none as i; reload; pass {SESSION_MS}; "
            f"beat a told as i; pass {LONGER_SESSION_MS}; beat a told as i",
}  # fmt: skip
"""The session timeout of the group is set while it has members."""


def replacements(subject: Subject) -> Iterable[Conversation]:
    """A static member is replaced, in a group at rest and where it subscribes to a regular expression; and members of a
    group at rest join and leave."""
    for topics in (("t",), ("t", "u")):
        for name, before, change, after in CHANGES:
            events = changed(topics, before, change, after)
            yield Conversation((*map(OPERATIONS.step_of, events),), f"{name} {','.join(topics)}")
    yield Conversation(OPERATIONS.parse_shorthand(TAKEN_OVER), "taken over")
    yield Conversation(OPERATIONS.parse_shorthand(RETURNED), "returned")
    yield Conversation(OPERATIONS.parse_shorthand(BY_REGEX), "regex")
    yield Conversation(OPERATIONS.parse_shorthand(GIVES_UP), "gives up")
    for name, text in CREATED.items():
        yield Conversation(OPERATIONS.parse_shorthand(text), f"created {name}")
    for client in CLIENTS[:2]:
        yield Conversation(OPERATIONS.parse_shorthand(f"{ALONE}; join {client} on t,u none as i"), f"alone {client}")


def epochs(subject: Subject) -> Iterable[Conversation]:
    """Each epoch and each claim of a member that has to revoke partitions, and of one that has revoked them; what is
    refused first. And a member that does not revoke in time, and fenced ones.
    """
    for name, begun in (("revoking", REVOKING), ("revoked", REVOKED)):
        beats = [
            Beat(client, Says.STAY, behind, owned=owned)
            for client in CLIENTS
            for behind in (2, 1, -1, 0)
            for owned in (None, "before", "none", "told")
        ]
        yield Conversation((*OPERATIONS.parse_shorthand(begun), *map(OPERATIONS.step_of, beats)), name)
    late = (
        f"{REVOKING}; pass {REBALANCE_MS - INTERVAL_MS}; beat a before; pass {INTERVAL_MS}; beat a before; beat b told"
    )
    yield Conversation(OPERATIONS.parse_shorthand(late), "late")
    for name, text in {**DEADLINES, **CONFIGURED, "again": REVOKES_AGAIN}.items():
        yield Conversation(OPERATIONS.parse_shorthand(text), name)
    yield Conversation(OPERATIONS.parse_shorthand(FENCED), "fenced")


def stated(steps: Sequence[Step]) -> list[Beat]:
    """Each client states its whole subscription, so that the answer has its whole assignment."""
    return [
        Beat(client, Says.STAY, 0, None if topics is None else tuple(topics), "told", instance, regex)
        for client, (topics, instance, regex) in latest(steps, "topics", "instance", "regex").items()
    ]


RELOADED: Final = Reloaded(
    OPERATIONS, stated, CLIENTS[:2], {"taken over": TAKEN_OVER, "returned": RETURNED, "revoking": REVOKING,
                                      "revoked": REVOKED, "regex": BY_REGEX, "alone": ALONE,
                                      "simple": f"commit 5 for 0; {REVOKED}; commit 6 for 1 by a in 3 with m"},
    Pass(INTERVAL_MS),
)  # fmt: skip
GROUPS: Family[Subject] = operations_family(
    OPERATIONS, MACHINE.editions, lambda edition: CONSUMER_GROUPS, "coordinator"
)

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.OWNERSHIP,
        "a partition has one owner, is handed over in the right order, and is not left unassigned",
        GROUPS,
        with_final_rounds,
        values=150,
        invariants=invariants_of(invariants.OWNERSHIP),
        given=replacements,
    ),
    Check(
        invariants.EPOCHS,
        "epochs only rise, and an invalid heartbeat is refused with its documented error",
        GROUPS,
        conversation,
        values=300,
        invariants=invariants_of(invariants.EPOCHS),
        given=epochs,
    ),
    Check(
        invariants.RECORDS,
        "a coordinator that reads its log, compacted or not, has the group as it was",
        GROUPS,
        RELOADED,
        values=150,
        invariants=tuple(
            id for each in (invariants.RECORDS, invariants.OWNERSHIP, invariants.EPOCHS) for id in invariants_of(each)
        ),
        given=RELOADED.given,
    ),
)
