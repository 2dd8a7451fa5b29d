"""Invariants of a coordinator whose groups have members of the classic protocol and of KIP-848's."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.consumer_group.model import SERVER_ASSIGNORS, is_invalid, is_regex
from kipcheck.conformance.protocols.consumer_group.ops import Beat
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.classic_members import MEMBER_ID_REQUIRED
from kipcheck.conformance.protocols.migration.conversions import DOWNGRADES, UPGRADES
from kipcheck.conformance.protocols.migration.trace import CLASSIC, CONSUMER, Member, MixedStep, mixed_steps
from kipcheck.conformance.protocols.reconciled import log_laws, terms
from kipcheck.conformance.protocols.reconciled.terms import GROUP_MAX_SIZE_REACHED

MEMBERS: Final = "migration/members"
RECORDS: Final = "migration/records"
HELD: Final = (terms.UNRELEASED_INSTANCE_ID, terms.FENCED_INSTANCE_ID)
rule = partial(invariant, role=Role.COORDINATOR, checks=(MEMBERS,), unsure=is_in_doubt)
records = partial(invariant, role=Role.COORDINATOR, checks=(RECORDS,), unsure=is_in_doubt)
impact = partial(any_impact, links=("KIP-848",))


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


def is_join(step: MixedStep) -> bool:
    """Whether a consumer joins."""
    return isinstance(step.request, Beat) and step.epoch == 0


def in_consumer_group(step: MixedStep) -> bool:
    return step.before.form == CONSUMER and bool(step.before.members)


def classic_members(step: MixedStep) -> list[Member]:
    return [member for member in step.before.members.values() if not member.is_consumer]


# From a classic group to a consumer group


@impact("A consumer cannot join the classic group that it should upgrade", "stuck group", "guards", "refused-peer",
        "unread-partition")  # fmt: skip
@rule("migration/upgrades", "grp-114", grade=Grade.SHOULD, applies_to=asks)
def upgrades(history: History) -> Iterator[Violation]:
    """A consumer that joins a classic group of consumers is accepted, if the broker's policy allows the upgrade."""
    for step in mixed_steps(history):
        known = step.before
        if known.form != CLASSIC or known.config.policy not in UPGRADES or joining(step) is None or step.accepted:
            continue
        first = not known.generations and any(
            isinstance(pending.request, ops.ClassicJoin) for pending in known.pending.values()
        )
        if known.assigned or first:
            kind = "stable" if known.assigned else "first join phase"
            why = f"{step.name} joins a classic group ({kind})"
            yield breach(step, why, "accepted", f"refused: {step.error}", kind, step.error)


@impact("After an upgrade of the group old requests look current", "double processing", "epochs", "double-processing")
@rule("migration/epoch-continues", "grp-115", applies_to=asks)
def epoch_continues(history: History) -> Iterator[Violation]:
    """The first consumer of an upgraded group gets an epoch above the generation of the classic group.

    One whose join may leave the assignment as it is gets one that is not below.
    """
    for step in mixed_steps(history):
        last = max((member.epoch for member in classic_members(step)), default=0)
        if not is_join(step) or not step.accepted or not step.before.assigned:
            continue
        beat = joining(step)
        least = last + 1 if beat is not None and beat.topics else last
        if step.answered_epoch < least:
            why = f"{step.name} joins the group of generation {last}"
            yield breach(step, why, f"epoch {least} or more", f"epoch {step.answered_epoch}")


# Members of the classic protocol in a consumer group


@impact("A partition has two owners, of two protocols", "double processing", "ownership", "double-processing")
@rule("migration/one-owner", "grp-116", applies_to=asks)
def one_owner(history: History) -> Iterator[Violation]:
    """In a consumer group a partition goes to a new owner only after the old one, of any protocol, has given it up."""
    for step in mixed_steps(history):
        if step.before.form == CONSUMER:
            yield from doubly_owned(step)


def doubly_owned(step: MixedStep) -> Iterator[Violation]:
    """The partitions that the answer assigns while another member has not given them up."""
    found, request = step.answers, step.request
    is_sync = found is not None and isinstance(found.request, ops.ClassicSync)
    if not is_sync and not isinstance(request, Beat):
        return
    taken = step.before.holders(request.instance, step.name) if isinstance(request, Beat) and request.instance else []
    others = [member for member in step.before.members.values() if member.name not in (step.name, *taken)]
    for partition in step.given:
        for other in others:
            if partition in other.may_still_own:
                name = partition_name(partition)
                why = f"{name} is assigned to {step.name}; {other.name} was assigned it, and has not given it up"
                kinds = tuple(
                    "consumer" if is_consumer else "classic" for is_consumer in (other.is_consumer, not is_sync)
                )
                yield breach(step, why, f"{name} not yet to {step.name}", "assigned", *kinds)


@impact("A member of the classic protocol gets partitions that it does not subscribe to", "wrong data", "ownership",
        "wrong-data", "double-processing")  # fmt: skip
@rule("migration/co-subscription", "grp-401", applies_to=asks)
def co_subscription(history: History) -> Iterator[Violation]:
    """A SyncGroup to a consumer group is answered with partitions of topics of the member's JoinGroup alone."""
    for step in mixed_steps(history):
        found, member = step.answers, step.member
        is_sync = found is not None and isinstance(found.request, ops.ClassicSync) and found.form == CONSUMER
        if not is_sync or member is None or member.topics is None or step.before.form != CONSUMER:
            continue
        for partition in step.given:
            if partition[0] not in member.topics:
                why = (
                    f"{step.name} joined with {', '.join(sorted(member.topics))}, and gets {partition_name(partition)}"
                )
                kind = "expression" if member.after_expression else "topics"
                yield breach(step, why, "partitions of its topics", partition_name(partition), kind)


@impact("A member of the classic protocol misses a new assignment", "stuck group", "gating", "unread-partition")
@rule("migration/behind-rejoins", "grp-117", applies_to=asks)
def behind_rejoins(history: History) -> Iterator[Violation]:
    """The heartbeat of a classic member gets REBALANCE_IN_PROGRESS while other members are ahead of it."""
    for step in mixed_steps(history):
        beat, member = step.request, step.member
        if not isinstance(beat, ops.ClassicBeat) or beat.behind or member is None or step.before.form != CONSUMER:
            continue
        ahead = max((other.epoch for other in step.before.members.values()), default=0)
        if step.received == ops.NONE and ahead > member.epoch:
            why = f"{step.name} has generation {member.epoch}, and another member has epoch {ahead}"
            yield breach(step, why, "REBALANCE_IN_PROGRESS", "NONE", "behind")


@impact("Two parties assign the partitions of one group", "double processing", "gating", "double-processing")
@rule("migration/no-leader", "grp-118", grade=Grade.SHOULD, applies_to=asks)
def no_leader(history: History) -> Iterator[Violation]:
    """A JoinGroup to a consumer group is answered at once, and names no leader: the coordinator assigns."""
    for step in mixed_steps(history):
        if not isinstance(step.request, ops.ClassicJoin) or not in_consumer_group(step):
            continue
        if step.received == ops.PARKED:
            yield breach(step, f"{step.name} joins a consumer group", "an answer at once", "none", "parked")
        elif step.received == ops.NONE and step.answer.get("led"):
            yield breach(step, f"{step.name} joins a consumer group", "no leader", "a leader", "leader")


@impact("A member of the classic protocol goes on with an old assignment", "double processing", "epochs",
        "double-processing")  # fmt: skip
@rule("migration/old-generation", "grp-119", applies_to=asks)
def old_generation(history: History) -> Iterator[Violation]:
    """In a consumer group a Heartbeat or SyncGroup of another generation than the member's is refused."""
    for step in mixed_steps(history):
        found = step.request
        if not isinstance(found, ops.ClassicBeat | ops.ClassicSync) or not found.behind or step.before.form != CONSUMER:
            continue
        if step.member is not None and step.received == ops.NONE:
            why = f"{step.name} sends generation {step.member.epoch - found.behind} in place of {step.member.epoch}"
            kind = "heartbeat" if isinstance(found, ops.ClassicBeat) else "sync"
            yield breach(step, why, "ILLEGAL_GENERATION", "NONE", kind)


@impact("A generation is used twice", "double processing", "epochs", "double-processing")
@rule("migration/generations-rise", "grp-120", applies_to=asks)
def generations_rise(history: History) -> Iterator[Violation]:
    """The generation of a member never falls; that of a group that was a consumer group is above all its epochs."""
    for step in mixed_steps(history):
        if step.generation is None or not step.before.members:
            continue
        found, member = step.answers, step.member
        same = found is not None and found.conversions == step.before.conversions
        led = bool(step.answer.get("led")) and step.before.changed and same
        before = step.before.highest if led else 0 if member is None else member.epoch
        least = before + led
        if step.generation < least:
            why = f"{step.name} joins; before, {'the group' if led else 'it'} had generation or epoch {before}"
            observed = f"generation {step.generation}"
            yield breach(step, why, f"generation {least} or more", observed, "led" if led else "joined")


@impact("A client of the classic protocol cannot join a consumer group", "stuck group", "identity", "refused-peer",
        links=("KIP-394", "KIP-848"))  # fmt: skip
@rule("migration/asks-for-ids", "grp-122", grade=Grade.SHOULD, applies_to=asks)
def asks_for_ids(history: History) -> Iterator[Violation]:
    """A consumer group answers a JoinGroup 4 without any id with MEMBER_ID_REQUIRED and an id, and accepts this id."""
    for step in mixed_steps(history):
        join = step.request
        if not isinstance(join, ops.ClassicJoin) or join.instance is not None or not in_consumer_group(step):
            continue
        if step.name in step.before.asked and step.received in (terms.UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED):
            why = f"{step.name} joins with the id that it was given"
            yield breach(step, why, "accepted", step.received, "given id", step.received)
        asks_now = step.name not in step.before.ids and join.sent_version >= ops.ASKING_VERSION
        if asks_now and step.received in (ops.NONE, ops.PARKED):
            yield breach(step, f"{step.name} joins without an id", MEMBER_ID_REQUIRED, step.received, "no id")


# Static members


@impact("A static member cannot change its protocol", "stuck group", "identity", "refused-peer",
        links=("KIP-345", "KIP-848"))  # fmt: skip
@rule("migration/takes-over", "grp-123", applies_to=asks)
def takes_over(history: History) -> Iterator[Violation]:
    """A client without a member id takes over its instance, if it or the former member uses the classic protocol."""
    for step in mixed_steps(history):
        request, known = step.request, step.before
        if is_join(step) and isinstance(request, Beat) and request.instance is not None and not step.accepted:
            former = [name for name in known.holders(request.instance, step.name) if name not in known.doubted]
            if step.error in HELD and any(name in known.members and name not in known.memories for name in former):
                why = f"{step.name} joins as instance {request.instance}, which a member of the classic protocol has"
                yield breach(step, why, "accepted", f"refused: {step.error}", "consumer", step.error)
        new = isinstance(request, ops.ClassicJoin) and request.instance is not None and step.name not in known.ids
        if new and in_consumer_group(step) and step.received in HELD:
            why = f"{step.name} joins with an instance id, and without a member id"
            yield breach(step, why, "accepted", step.received, "classic", step.received)


@impact("Two processes act as one static member", "double processing", "identity", "double-processing",
        links=("KIP-345", "KIP-848"))  # fmt: skip
@rule("migration/fences-former", "grp-124", applies_to=asks)
def fences_former(history: History) -> Iterator[Violation]:
    """A client whose instance another one has taken over is refused until it joins again."""
    for step in mixed_steps(history):
        request = step.request
        if step.name not in step.before.fenced:
            continue
        accepted = step.accepted and step.epoch != 0 if isinstance(request, Beat) else step.received == ops.NONE
        if accepted and isinstance(request, Beat | ops.ClassicBeat | ops.ClassicSync):
            why = f"another client has taken over the instance of {step.name}"
            kind = "consumer" if isinstance(request, Beat) else "classic"
            yield breach(step, why, terms.FENCED_INSTANCE_ID, "accepted", kind)


@impact("A partition has two owners after a static member went back to the classic protocol", "double processing",
        "ownership", "double-processing", links=("KIP-345", "KIP-848"))  # fmt: skip
@rule("migration/one-owner-after-takeover", "grp-125", applies_to=asks)
def one_owner_after_takeover(history: History) -> Iterator[Violation]:
    """Where a static member makes the group a classic one, no member is assigned a partition that another one owns."""
    for step in mixed_steps(history):
        if step.before.taken_over and not isinstance(step.request, Beat):
            yield from doubly_owned(step)


@impact("A static member that restarts makes the group rebalance", "trivia", "ownership", "needless-move",
        links=("KIP-345", "KIP-848"))  # fmt: skip
@rule("migration/takeover-without-rebalance", "grp-152", grade=Grade.SHOULD, applies_to=asks)
def takeover_without_rebalance(history: History) -> Iterator[Violation]:
    """A client that takes over an instance in a group at rest, with its protocol and topics, gets the epoch of all."""
    for step in mixed_steps(history):
        rest, epoch = step.before.rest.epoch, step.joined_epoch
        if rest is not None and step.replaces and epoch is not None and epoch != rest:
            why = (
                f"all members have epoch {rest}; {step.name} takes over an instance with the topics of its predecessor"
            )
            kind = "consumer" if isinstance(step.request, Beat) else "classic"
            yield breach(step, why, f"epoch {rest}", f"epoch {epoch}", kind)


# Operators


def holds(step: MixedStep, instance: str) -> bool | None:
    """Whether a member has this instance id; None: that is not known."""
    known = step.before
    names = known.holders(instance, ops.OPERATOR)
    if not names:
        return False
    return True if any(name in known.members and name not in known.doubted for name in names) else None


@impact("An operator cannot remove a member, or believes so wrongly", "stuck group", "identity", "misled-operator",
        links=("KIP-345", "KIP-848"))  # fmt: skip
@rule("migration/operator-removes", "grp-153", applies_to=asks)
def operator_removes(history: History) -> Iterator[Violation]:
    """A LeaveGroup with an instance id alone removes the member that has it, of any protocol, until it joins again.

    If no member has it, the answer is UNKNOWN_MEMBER_ID.
    """
    for step in mixed_steps(history):
        request = step.request
        if isinstance(request, ops.ClassicRemove):
            held = holds(step, request.instance)
            expected = step.received if held is None else ops.NONE if held else terms.UNKNOWN_MEMBER_ID
            if step.received != expected:
                why = f"an operator removes instance {request.instance}, which {'a' if held else 'no'} member has"
                yield breach(step, why, expected, step.received, "held" if held else "free", step.received)
        elif step.name in step.before.removed and isinstance(request, Beat | ops.ClassicBeat | ops.ClassicSync):
            accepted = step.accepted and step.epoch != 0 if isinstance(request, Beat) else step.received == ops.NONE
            if accepted:
                kind = "consumer" if isinstance(request, Beat) else "classic"
                yield breach(step, f"an operator has removed {step.name}", terms.UNKNOWN_MEMBER_ID, "accepted", kind)


# Sizes


def joins_anew(step: MixedStep) -> bool:
    """Whether a client that is no member asks to be one of a consumer group."""
    if step.name in step.before.members or step.name in step.before.gone:
        return False
    if isinstance(step.request, ops.ClassicJoin):
        return step.before.form == CONSUMER
    return is_join(step)


@impact("A group grows beyond its limit", "crash or hang", "guards", "memory", links=("KIP-389", "KIP-848"))
@rule("migration/size-limit", "grp-154", applies_to=asks)
def size_limit(history: History) -> Iterator[Violation]:
    """A consumer group takes no member beyond ``group.consumer.max.size``, of any protocol, and keeps those it has."""
    for step in mixed_steps(history):
        request, known = step.request, step.before
        refused = GROUP_MAX_SIZE_REACHED in (step.error, step.received)
        if refused and step.member is not None and known.form == CONSUMER:
            yield breach(step, f"{step.name} is a member", "not refused for the size", GROUP_MAX_SIZE_REACHED, "member")
        if not isinstance(request, Beat | ops.ClassicJoin) or not joins_anew(step) or step.joined_epoch is None:
            continue
        taken = known.holders(request.instance, step.name) if request.instance else []
        size = sum(name not in taken for name in known.members)
        if size >= known.config.max_size:
            why = f"{step.name} joins a group of {size} members; at most {known.config.max_size} are allowed"
            kind = "consumer" if isinstance(request, Beat) else "classic"
            yield breach(step, why, GROUP_MAX_SIZE_REACHED, "accepted", kind)


@impact("A static member cannot restart while its group is full", "stuck group", "guards", "refused-peer",
        links=("KIP-345", "KIP-848", "KAFKA-20601"))  # fmt: skip
@rule("migration/successor-fits", "grp-155", grade=Grade.SHOULD, applies_to=asks)
def successor_fits(history: History) -> Iterator[Violation]:
    """A client that takes over an instance is not refused for the size of the group: it takes no room."""
    for step in mixed_steps(history):
        request = step.request
        if not isinstance(request, Beat | ops.ClassicJoin) or request.instance is None or not joins_anew(step):
            continue
        former = [name for name in step.before.holders(request.instance, step.name) if name not in step.before.doubted]
        stated = not isinstance(request, ops.ClassicJoin) or step.name not in step.before.ids
        if former and stated and GROUP_MAX_SIZE_REACHED in (step.error, step.received):
            why = f"{step.name} joins as instance {request.instance}, which {former[0]} has"
            kind = "consumer" if isinstance(request, Beat) else "classic"
            yield breach(step, why, "accepted", GROUP_MAX_SIZE_REACHED, kind)


# From a consumer group to a classic group


@impact("After the last consumer left its partitions stay unassigned", "stuck group", "gating", "unread-partition")
@rule("migration/downgrades", "grp-121", "grp-403", applies_to=asks)
def downgrades(history: History) -> Iterator[Violation]:
    """When the last member of KIP-848's protocol has left, the others join again, and one of them leads.

    So they do if a client of the classic protocol takes its place, and subscribes to other topics.
    """
    for step in mixed_steps(history):
        if not step.before.changed or step.member is None:
            continue
        kind = ("other topics",) if step.before.restated else ()
        if isinstance(step.request, ops.ClassicBeat) and not step.request.behind and step.received == ops.NONE:
            why = f"only classic members are left, {step.name} among them"
            yield breach(step, why, "REBALANCE_IN_PROGRESS", "NONE", "heartbeat", *kind)
        found = step.answers
        joined = found is not None and isinstance(found.request, ops.ClassicJoin) and step.received == ops.NONE
        if joined and not step.answer.get("led"):
            yield breach(step, f"only classic members are left, {step.name} joins", "a leader", "none", "leader")


# What is granted


def _makes_id(step: MixedStep) -> bool:
    """Whether the coordinator may count a new member from this step on. A client that was reset may be two of them."""
    if isinstance(step.request, ops.ClassicJoin):
        return step.name not in step.before.ids
    return is_join(step) and step.name not in step.before.members


def _is_new(step: MixedStep) -> bool:
    """Whether the group has no trace of a client."""
    known = step.before
    traces = (known.members, known.gone, known.ids, known.instances, known.pending, known.removed, known.fenced)
    return not any(step.name in trace for trace in traces)


def _may_join(step: MixedStep) -> bool:
    """Whether the group and the policy of its broker allow the join of a new client, without an instance id."""
    request, policy = step.request, step.before.config.policy
    if isinstance(request, ops.ClassicJoin):
        asks_now = request.instance is not None or request.sent_version >= ops.ASKING_VERSION
        return not asks_now and policy in UPGRADES and policy in DOWNGRADES
    return joining(step) is not None and in_consumer_group(step)


@impact("A client cannot join its group", "stuck group", "guards", "refused-peer", "unread-partition")
@rule("migration/admits-members", "grp-164", applies_to=asks)
def admits_members(history: History) -> Iterator[Violation]:
    """A new client joins a group with room: a consumer one with consumers; one of the classic protocol, any.

    The latter if the policy of the broker allows groups of both protocols in both directions.
    """
    ids = 0
    for step in mixed_steps(history):
        has_room = ids < step.before.config.max_size
        ids += _makes_id(step)
        if not (has_room and _may_join(step) and _is_new(step)):
            continue
        joins = isinstance(step.request, Beat)
        granted = step.accepted if joins else step.received in (ops.NONE, ops.PARKED, ops.BUSY)
        refusal = step.error or step.received
        if not granted and refusal not in terms.UNAVAILABLE:
            kind = "consumer" if joins else "classic"
            yield breach(step, f"{step.name} joins", "accepted", f"refused: {refusal}", kind, refusal)


@impact(*log_laws.NOT_AS_BEFORE)
@records("migration/outlives-reloads", "grp-250", "grp-251", applies_to=log_laws.reads)
def outlives_reloads(history: History) -> Iterator[Violation]:
    """A coordinator that has read its log, compacted in any part, serves the group as it was."""
    return log_laws.outlived(history)


@impact(*log_laws.OFFSETS_LOST)
@records("migration/commits-kept", "grp-252", applies_to=log_laws.fetches, after=("mixed-commit",))
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, with its leader epoch and metadata."""
    return log_laws.kept(history, ops.OPERATIONS.event_of)
