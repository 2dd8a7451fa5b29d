"""Checks of coordinators of groups with members of the classic protocol and of KIP-848's."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.consumer_group.ops import INTERVAL_MS, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.trace import SETTLED
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.migration import invariants, ops
from kipcheck.conformance.protocols.migration.model import CONSUMERS, INITIAL_DELAY_MS
from kipcheck.conformance.protocols.migration.strategies import MIXED_GROUPS
from kipcheck.conformance.protocols.migration.target import MACHINE
from kipcheck.conformance.protocols.reconciled.log_draws import Reloaded, latest
from kipcheck.conformance.protocols.reconciled.terms import Says

FORMED = f"classic-join x on t; pass {INITIAL_DELAY_MS}; receive x; classic-sync x of t over x"
"""A stable classic group."""
UPGRADED = f"{FORMED}; join a on t none"
SHARED = (
    f"{UPGRADED}; classic-beat x; classic-join x on t told; classic-sync x; classic-join x on t told; classic-sync x; "
    "beat a told"
)
"""Members of both protocols are at rest."""
BACK = (
    f"{SHARED}; leave a; classic-beat x; classic-join x on t told; receive x; classic-sync x of t over x; "
    "classic-beat x"
)

TAKEN_OVER = (
    f"{FORMED}; join a on t none as i; pass {INTERVAL_MS}; beat a told as i; classic-join y on t as i; classic-sync y; "
    "classic-beat x; classic-join x on t told"
)
"""A static member goes back to the classic protocol while another one still has partitions to give up."""
RESTED = (
    f"classic-join x on t as i; pass {INITIAL_DELAY_MS}; receive x; classic-sync x of t over x; join a on t none as j; "
    f"pass {INTERVAL_MS}; beat a told as j; classic-beat x; classic-join x on t told as i; classic-sync x; "
    f"classic-join x on t told as i; classic-sync x; pass {INTERVAL_MS}; "
    f"{(SETTLED + 2) * 'beat a told as j; classic-beat x; '}"
)
"""A consumer group with a static member of each protocol, at rest."""
REPLACED = f"{RESTED}classic-join y on t as i; classic-sync y; beat a told as j; classic-beat y"
REPLACED_CONSUMER = f"{RESTED}away a as j; join b on t none as j; classic-beat x; beat b told as j"
EXPRESSED = (
    f"join b on u none; join a none as i like t|u; pass {INTERVAL_MS}; {3 * 'beat a told as i; beat b told; '}"
    f"classic-join y on u as i; classic-sync y; pass {INTERVAL_MS}; "
    f"{3 * 'beat b told; classic-beat y; classic-join y on u told as i; classic-sync y; '}"
)
"""A client of the classic protocol takes over the instance of a consumer with a regular expression."""
RESTATED = f"{RESTED}classic-join y on t,u as j; classic-sync y; classic-beat y; classic-beat x"
"""It makes the group a classic one, and subscribes to another topic."""
REMOVED = (
    f"{RESTED}remove i; classic-beat x; remove i; remove j; beat a told as j; join a on t none as j; "
    "classic-join y on t; remove j; classic-beat y; beat a told as j"
)
"""An operator removes a member of each protocol, and the last consumer of a group."""
FULL = (
    "join a on t none as i; classic-join x on t as j; classic-join y on t; join b on t none; beat a told as i; "
    "away a as i; join b on t none as i; leave b as i; join a on t none; join b on t none; classic-leave x; "
    "join b on t none; classic-join x on t; classic-beat y"
)
"""A consumer group at its limit, with static members that are replaced."""
ASKED = "join a on t none; classic-join x on t v4; classic-join x on t v4; classic-sync x; classic-beat x"


def with_both_ends(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """Begins with a stable classic group in some cases, and a consumer that joins it in others; ends with rounds, the
    departure of the consumers, and the first steps of a new generation."""
    begun = random.choice(("", FORMED, UPGRADED, UPGRADED))
    steps = [*ops.OPERATIONS.parse_shorthand(begun), *steps_from(value)]
    for _ in range(random.randint(0, 2)):
        for name in ops.CLIENTS:
            events: tuple[ops.Event, ...] = (
                ops.Receive(name), ops.ClassicBeat(name), ops.ClassicJoin(name, owned="told"), ops.ClassicSync(name)
            )  # fmt: skip
            steps += map(ops.OPERATIONS.step_of, events)
        steps += (ops.OPERATIONS.step_of(Beat(name, Says.STAY, owned="told")) for name in CONSUMERS)
    steps += (ops.OPERATIONS.step_of(Beat(name, Says.LEAVE)) for name in CONSUMERS)
    steps += (ops.OPERATIONS.step_of(ops.ClassicBeat(name)) for name in ops.CLIENTS)
    steps += (ops.OPERATIONS.step_of(ops.ClassicJoin(name, owned="told")) for name in ops.CLIENTS)
    steps.append(ops.OPERATIONS.step_of(Pass(INITIAL_DELAY_MS)))
    steps += (ops.OPERATIONS.step_of(ops.Receive(name)) for name in ops.CLIENTS)
    yield Conversation(tuple(steps))


def there_and_back(subject: Subject) -> Iterable[Conversation]:
    """A classic group is upgraded and downgraded, also out of its first join phase, and by a static member."""
    yield Conversation(ops.OPERATIONS.parse_shorthand(BACK), "back")
    yield Conversation(ops.OPERATIONS.parse_shorthand(TAKEN_OVER), "taken over")
    yield Conversation(ops.OPERATIONS.parse_shorthand(REPLACED), "replaced")
    yield Conversation(ops.OPERATIONS.parse_shorthand(REPLACED_CONSUMER), "replaced consumer")
    yield Conversation(ops.OPERATIONS.parse_shorthand(RESTATED), "restated")
    yield Conversation(ops.OPERATIONS.parse_shorthand(ASKED), "asked")
    yield Conversation(ops.OPERATIONS.parse_shorthand(EXPRESSED), "expressed")
    yield Conversation(ops.OPERATIONS.parse_shorthand(REMOVED), "removed")
    yield Conversation(ops.OPERATIONS.parse_shorthand(FULL), "full")
    yield Conversation(ops.OPERATIONS.parse_shorthand("classic-join x on t; join a on t none"), "early")


def everyone(steps: Sequence[Step]) -> list[ops.Event]:
    """Each client confirms what it has, and consumers state their topics."""
    consumers = latest(steps, "topics", "instance", "regex")
    beats = [
        Beat(name, Says.STAY, 0, None if topics is None else tuple(topics), "told", instance, regex)
        for name, (topics, instance, regex) in consumers.items()
    ]
    return [*beats, *map(ops.ClassicBeat, ops.CLIENTS)]


COMMITTED: Final = f"{FORMED}; commit 5 for 0 by x; commit 6 for 1 by x in 3 with m"
RELOADED: Final = Reloaded(
    ops.OPERATIONS, everyone, (*CONSUMERS[:1], *ops.CLIENTS), {
        "back": BACK, "taken over": TAKEN_OVER, "replaced": REPLACED, "replaced consumer": REPLACED_CONSUMER,
        "removed": REMOVED, "full": FULL, "asked": ASKED,
        "upgraded": f"{COMMITTED}; join a on t none; beat a told; commit 7 for 0 by a; "
                    "join b on t none; commit 8 for 2 by b",
        "shared": SHARED,
        "emptied": f"{COMMITTED}; classic-leave x; join a on t none; beat a told",
    },
)  # fmt: skip
GROUPS: Family[Subject] = operations_family(
    ops.OPERATIONS, MACHINE.editions, lambda edition: MIXED_GROUPS, "coordinator"
)

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.MEMBERS,
        "a group changes between its classic and its KIP-848 form, and members of both protocols share it",
        GROUPS,
        with_both_ends,
        values=150,
        invariants=invariants_of(invariants.MEMBERS),
        given=there_and_back,
    ),
    Check(
        invariants.RECORDS,
        "a coordinator that reads its log, compacted or not, has the group as it was, whichever form it had before",
        GROUPS,
        RELOADED,
        values=150,
        invariants=(*invariants_of(invariants.RECORDS), *invariants_of(invariants.MEMBERS)),
        given=RELOADED.given,
    ),
)
