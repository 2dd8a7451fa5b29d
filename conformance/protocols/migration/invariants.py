"""Invariants of a coordinator whose groups have members of the classic protocol and of KIP-848's."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.consumer_group.model import SERVER_ASSIGNORS, is_invalid, is_regex
from kipcheck.conformance.protocols.consumer_group.ops import Beat
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.migration.model import UPGRADES
from kipcheck.conformance.protocols.migration.ops import (
    NONE,
    PARKED,
    ClassicBeat,
    ClassicJoin,
    ClassicSync,
)
from kipcheck.conformance.protocols.migration.trace import CLASSIC, CONSUMER, Member, MixedStep, mixed_steps

MEMBERS: Final = "migration/members"
rule = partial(invariant, role=Role.COORDINATOR, checks=(MEMBERS,), unsure=is_in_doubt)


def asks(case: Case, step: Step) -> bool:
    return step.verb != "mixed-elapse"


def breach(step: MixedStep, why: str, expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, (step.op.index,), expected, observed, shape=shape)


def joining(step: MixedStep) -> Beat | None:
    """A valid heartbeat of a consumer that joins, without an instance id."""
    beat = step.request
    if not isinstance(beat, Beat) or step.epoch != 0 or beat.instance is not None:
        return None
    valid = not is_invalid(beat, 0, () if beat.owned == "none" else None) and beat.assignor in (None, *SERVER_ASSIGNORS)
    return beat if valid and (beat.regex is None or is_regex(beat.regex)) else None


def classic_members(step: MixedStep) -> list[Member]:
    return [each for each in step.before.members.values() if not each.is_consumer]


# From a classic group to a consumer group


@impact("A consumer cannot join the classic group that it should upgrade", "stuck group", "guards", "refused-peer",
        "unread-partition", links=("KIP-848",))  # fmt: skip
@rule("migration/upgrades", "grp-114", grade=Grade.SHOULD, applies_to=asks)
def upgrades(history: History) -> Iterator[Violation]:
    """A consumer that joins a classic group of consumers is accepted, if the broker's policy allows the upgrade."""
    for each in mixed_steps(history):
        known = each.before
        if known.form != CLASSIC or known.config.policy not in UPGRADES or joining(each) is None or each.accepted:
            continue
        first = not known.generations and any(isinstance(one.request, ClassicJoin) for one in known.pending.values())
        if known.assigned or first:
            kind = "stable" if known.assigned else "first join phase"
            why = f"{each.name} joins a classic group ({kind})"
            yield breach(each, why, "accepted", f"refused: {each.error}", kind, each.error)


@impact("After an upgrade of the group old requests look current", "double processing", "epochs", "double-processing",
        links=("KIP-848",))  # fmt: skip
@rule("migration/epoch-continues", "grp-115", applies_to=asks)
def epoch_continues(history: History) -> Iterator[Violation]:
    """The first consumer of an upgraded group gets an epoch above the generation of the classic group."""
    for each in mixed_steps(history):
        last = max((one.epoch for one in classic_members(each)), default=0)
        if joining(each) and each.accepted and each.before.assigned and each.answered_epoch <= last:
            why = f"{each.name} joins the group of generation {last}"
            yield breach(each, why, f"an epoch above {last}", f"epoch {each.answered_epoch}")


# Members of the classic protocol in a consumer group


@impact("A partition has two owners, of two protocols", "double processing", "ownership", "double-processing",
        links=("KIP-848",))  # fmt: skip
@rule("migration/one-owner", "grp-116", applies_to=asks)
def one_owner(history: History) -> Iterator[Violation]:
    """In a consumer group a partition goes to a new owner only after the old one, of any protocol, has given it up."""
    for each in mixed_steps(history):
        found = each.answers
        is_sync = found is not None and isinstance(found.request, ClassicSync)
        if each.before.form != CONSUMER or not (isinstance(each.request, Beat) or is_sync):
            continue
        for partition in each.given:
            for other in each.before.members.values():
                if other.name != each.name and partition in other.readable:
                    name = partition_name(partition)
                    why = f"{name} is assigned to {each.name}; {other.name} was assigned it, and has not given it up"
                    kinds = tuple("consumer" if one else "classic" for one in (other.is_consumer, not is_sync))
                    yield breach(each, why, f"{name} not yet to {each.name}", "assigned", *kinds)


@impact("A member of the classic protocol misses a new assignment", "stuck group", "gating", "unread-partition",
        links=("KIP-848",))  # fmt: skip
@rule("migration/behind-rejoins", "grp-117", applies_to=asks)
def behind_rejoins(history: History) -> Iterator[Violation]:
    """The heartbeat of a classic member gets REBALANCE_IN_PROGRESS while other members are ahead of it."""
    for each in mixed_steps(history):
        beat, member = each.request, each.member
        if not isinstance(beat, ClassicBeat) or beat.behind or member is None or each.before.form != CONSUMER:
            continue
        ahead = max((one.epoch for one in each.before.members.values()), default=0)
        if each.received == NONE and ahead > member.epoch:
            why = f"{each.name} has generation {member.epoch}, and another member has epoch {ahead}"
            yield breach(each, why, "REBALANCE_IN_PROGRESS", "NONE", "behind")


@impact("Two parties assign the partitions of one group", "double processing", "gating", "double-processing",
        links=("KIP-848",))  # fmt: skip
@rule("migration/no-leader", "grp-118", grade=Grade.SHOULD, applies_to=asks)
def no_leader(history: History) -> Iterator[Violation]:
    """A JoinGroup to a consumer group is answered at once, and names no leader: the coordinator assigns."""
    for each in mixed_steps(history):
        if not isinstance(each.request, ClassicJoin) or each.before.form != CONSUMER or not each.before.members:
            continue
        if each.received == PARKED:
            yield breach(each, f"{each.name} joins a consumer group", "an answer at once", "none", "parked")
        elif each.received == NONE and each.answer.get("led"):
            yield breach(each, f"{each.name} joins a consumer group", "no leader", "a leader", "leader")


@impact("A member of the classic protocol goes on with an old assignment", "double processing", "epochs",
        "double-processing", links=("KIP-848",))  # fmt: skip
@rule("migration/old-generation", "grp-119", applies_to=asks)
def old_generation(history: History) -> Iterator[Violation]:
    """In a consumer group a Heartbeat or SyncGroup of another generation than the member's is refused."""
    for each in mixed_steps(history):
        found = each.request
        if not isinstance(found, ClassicBeat | ClassicSync) or not found.behind or each.before.form != CONSUMER:
            continue
        if each.member is not None and each.received == NONE:
            why = f"{each.name} sends generation {each.member.epoch - found.behind} in place of {each.member.epoch}"
            kind = "heartbeat" if isinstance(found, ClassicBeat) else "sync"
            yield breach(each, why, "ILLEGAL_GENERATION", "NONE", kind)


@impact("A generation is used twice", "double processing", "epochs", "double-processing", links=("KIP-848",))
@rule("migration/generations-rise", "grp-120", applies_to=asks)
def generations_rise(history: History) -> Iterator[Violation]:
    """The generation of a member never falls; that of a group that was a consumer group is above all its epochs."""
    for each in mixed_steps(history):
        if each.generation is None or not each.before.members:
            continue
        found, member = each.answers, each.member
        led = bool(each.answer.get("led")) and each.before.changed and found is not None and found.changed
        before = each.before.highest if led else 0 if member is None else member.epoch
        least = before + led
        if each.generation < least:
            why = f"{each.name} joins; before, {'the group' if led else 'it'} had generation or epoch {before}"
            observed = f"generation {each.generation}"
            yield breach(each, why, f"generation {least} or more", observed, "led" if led else "joined")


# From a consumer group to a classic group


@impact("After the last consumer left its partitions stay unassigned", "stuck group", "gating", "unread-partition",
        links=("KIP-848",))  # fmt: skip
@rule("migration/downgrades", "grp-121", applies_to=asks)
def downgrades(history: History) -> Iterator[Violation]:
    """When the last member of KIP-848's protocol has left, the others join again, and one of them leads."""
    for each in mixed_steps(history):
        if not each.before.changed or each.member is None:
            continue
        if isinstance(each.request, ClassicBeat) and not each.request.behind and each.received == NONE:
            why = f"only classic members are left, {each.name} among them"
            yield breach(each, why, "REBALANCE_IN_PROGRESS", "NONE", "heartbeat")
        found = each.answers
        joined = found is not None and isinstance(found.request, ClassicJoin) and each.received == NONE
        if joined and not each.answer.get("led"):
            yield breach(each, f"only classic members are left, {each.name} joins", "a leader", "none", "leader")
