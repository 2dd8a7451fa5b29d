"""Invariants of a consumer towards its user: when callbacks are called, and which partitions it owns and reads.

They cover released consumers (ConsumerCoordinator) and KIP-429's draft. Each invariant reads the consumer's inputs and
its actions.
"""

from collections.abc import Callable, Iterable, Iterator

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import History, Refused
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.member_trace import MemberStep, member_steps
from kipcheck.conformance.invariants.member_view import Round, is_incompatible, protocol_of
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.assignment import Partition, partition_names
from kipcheck.conformance.models.group.messages import Join
from kipcheck.conformance.models.member.client import Open
from kipcheck.conformance.models.member.messages import (
    Close,
    CommitEnded,
    Given,
    Lost,
    Metric,
    Poll,
    Raised,
    Reads,
    Revoked,
    Unsubscribe,
    UserEvent,
)
from kipcheck.conformance.models.membership import COOPERATIVE, EAGER, Subscription

CALLBACKS = (Revoked, Lost, Given)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def every(case: Case, step: Step) -> bool:
    return step.verb.startswith("member-")


def violation(step: MemberStep, why: str, expected: str, *shape: str) -> Violation:
    observation = step.op.observation
    done = ", ".join(map(describe, step.actions)) or "nothing"
    observed = f"refused: {observation.error}" if isinstance(observation, Refused) else done
    return Violation(why, (step.op.index,), expected, observed, shape=shape)


def describe(action: object) -> str:
    match action:
        case Revoked(partitions) | Lost(partitions) | Given(partitions) | Reads(partitions):
            return f"{type(action).__name__.lower()} {partition_names(partitions)}"
        case Raised(error):
            return f"raised {error}"
        case CommitEnded(error):
            return f"commit ended {error}"
        case Metric(value):
            return f"metric {value}"
        case _:
            member = getattr(action, "member", None)
            named = "" if member is None else f" as {member or '(no id)'}"
            generation = getattr(action, "generation", None)
            return f"{type(action).__name__}{named}{'' if generation is None else f' in generation {generation}'}"


def before_join(actions: Iterable[object]) -> Iterator[object]:
    for each in actions:
        if isinstance(each, Join):
            return
        yield each


def joins(step: MemberStep) -> bool:
    return any(isinstance(each, Join) for each in step.actions)


def callbacks(actions: Iterable[object], *kinds: type[UserEvent]) -> list[Partition]:
    return [each for action in actions if isinstance(action, kinds) for each in action.partitions]  # type: ignore[union-attr]


# When callbacks are called


@invariant("member/callbacks-in-their-time", "grp-61", role=Role.MEMBER, applies_to=every)
def callbacks_in_their_time(history: History) -> Iterator[Violation]:
    """Callbacks are called only in polls, before the join that they prepare, and when the user leaves the group."""
    for each in member_steps(history):
        if not isinstance(each.event, Poll | Close | Unsubscribe):
            late = [action for action in each.actions if isinstance(action, CALLBACKS)]
        else:
            sent = [k for k, action in enumerate(each.actions) if isinstance(action, Join)]
            late = [action for action in each.actions[sent[0] :] if isinstance(action, CALLBACKS)] if sent else []
            if isinstance(each.event, Poll) and each.before.join_pending:
                late = [action for action in each.actions if isinstance(action, CALLBACKS)]
        if late:
            when = "a join is in progress" if each.before.join_pending else "the user did not poll or leave"
            why = f"{describe(late[0])}, although {when}"
            yield violation(each, why, "no callback", type(late[0]).__name__)


@invariant("member/gives-up-what-it-owns", "grp-61", role=Role.MEMBER, applies_to=every)
def gives_up_what_it_owns(history: History) -> Iterator[Violation]:
    """Only partitions that a consumer owns are revoked or lost, and only partitions that it lacks are added."""
    for each in member_steps(history):
        owned = set(each.before.owned)
        for action in each.actions:
            match action:
                case Revoked(partitions) | Lost(partitions):
                    if foreign := {*partitions} - owned:
                        why = f"{partition_names(foreign)} was given up, and is not owned"
                        yield violation(each, why, partition_names(owned), "not owned")
                    owned -= {*partitions}
                case Given(partitions):
                    if again := {*partitions} & owned:
                        why = f"{partition_names(again)} was assigned, and is owned already"
                        yield violation(each, why, "no repetition", "given again")
                    owned |= {*partitions}


# Assignments


@invariant("member/owns-what-it-was-given", "grp-61", role=Role.MEMBER, applies_to=every)
def owns_what_it_was_given(history: History) -> Iterator[Violation]:
    """After an assignment a consumer owns exactly the partitions that were assigned to it."""
    for each in member_steps(history):
        done, _ = each.parts
        if each.assigned is None:
            open_ = each.before.taking is not None and each.before.waits is None
            if not open_ and (given := [action for action in each.actions if isinstance(action, Given)]):
                why = f"{describe(given[0])} without a pending assignment"
                yield violation(each, why, "no assigned callback", "out of nothing")
            continue
        if not any(isinstance(action, Given) for action in done):
            why = f"{partition_names(each.assigned)} was assigned, and the assigned callback was not called"
            yield violation(each, why, "given", "silent")
            continue
        owned = (each.before.owned - {*callbacks(done, Revoked, Lost)}) | {*callbacks(done, Given)}
        if owned - each.assigned and not each.cooperative:  # cooperative consumers: member/revokes-what-it-lost
            why = (
                f"{partition_names(each.assigned)} was assigned, and {partition_names(owned - each.assigned)} is "
                "owned too"
            )
            yield violation(each, why, partition_names(each.assigned), "too much")
        if missing := each.assigned - owned:
            yield violation(
                each,
                f"{partition_names(missing)} was assigned and is not owned",
                partition_names(each.assigned),
                "too little",
            )
        if foreign := {*callbacks(done, Given)} - each.assigned:
            why = f"the assigned callback got {partition_names(foreign)}, which was not assigned"
            yield violation(each, why, partition_names(each.assigned), "not assigned")


@invariant("member/reads-what-it-owns", "grp-61", role=Role.MEMBER, applies_to=every)
def reads_what_it_owns(history: History) -> Iterator[Violation]:
    """At the end of a poll a consumer reads exactly the partitions that it owns according to its callbacks."""
    for each in member_steps(history):
        for action in each.actions:
            if isinstance(action, Reads) and {*action.partitions} != each.after.owned:
                too_much = {*action.partitions} - each.after.owned
                why = f"{partition_names(action.partitions)} is read, and {partition_names(each.after.owned)} is owned"
                yield violation(each, why, partition_names(each.after.owned), "too much" if too_much else "too little")


# Before a join


@invariant("member/gives-up-first", "grp-60", "429-17", "429-20", role=Role.MEMBER, applies_to=on("member-poll"))
def gives_up_first(history: History) -> Iterator[Violation]:
    """An eager consumer gives up all partitions before it joins."""
    for each in member_steps(history):
        if joins(each) and not each.cooperative and each.after.owned:
            why = f"it joins while it owns {partition_names(each.after.owned)}"
            yield violation(each, why, "all revoked", "owns while it joins")


@invariant("member/keeps-what-it-may", "429-15", "429-17", "429-20", role=Role.MEMBER, applies_to=on("member-poll"))
def keeps_what_it_may(history: History) -> Iterator[Violation]:
    """Before it joins a cooperative member gives up exactly the partitions that it no longer subscribes to."""
    for each in member_steps(history):
        identity = each.received.who
        if not joins(each) or not each.cooperative or identity is None or identity.is_out:
            continue
        done, then = each.parts
        owned = (each.before.owned - {*callbacks(done, Revoked, Lost)}) | {*callbacks(done, Given)}
        due = {partition for partition in owned if partition[0] not in each.received.topics}
        revoked = {*callbacks(before_join(then), Revoked)}
        if more := revoked - due:
            yield violation(
                each, f"{partition_names(more)} was revoked before the join", partition_names(due), "too much"
            )
        retries = each.received.round is Round.FAILED  # It prepared for this join before, and does so only once.
        if (less := due - revoked) and not retries:
            why = f"it no longer subscribes to {partition_names(less)}, and joins without giving it up"
            yield violation(each, why, partition_names(due), "too little")


@invariant("member/lost-when-out", "grp-63", role=Role.MEMBER, applies_to=every)
def lost_when_out(history: History) -> Iterator[Violation]:
    """A consumer that was removed from its group loses what it owned; a member of the group loses nothing."""
    for each in member_steps(history):
        identity = each.received.who
        if identity is None or not each.rules.incremental:
            continue
        if isinstance(each.event, Poll) and joins(each):
            _, then = each.parts
            then = tuple(before_join(then))  # type: ignore[arg-type]
            lost, revoked = callbacks(then, Lost), callbacks(then, Revoked)
            if identity.is_out and revoked:
                why = f"{partition_names(revoked)} was revoked by a consumer that is out of the group"
                yield violation(each, why, "lost", "revoked")
            if (
                identity.is_out
                and (kept := each.after.owned)
                and each.received.round is Round.OUT
                and each.rules.prepares_again
            ):
                yield violation(
                    each, f"it is out of the group, and joins while it owns {partition_names(kept)}", "lost", "kept"
                )
            if not identity.is_out and lost:
                yield violation(
                    each, f"{partition_names(lost)} was lost by a member of the group", "nothing lost", "in the group"
                )


@invariant("member/leaves-with-callbacks", "grp-69", role=Role.MEMBER, applies_to=every)
def leaves_with_callbacks(history: History) -> Iterator[Violation]:
    """A consumer that leaves first gives up all: as lost if out of the group or in a rebalance, else as revoked."""
    for each in member_steps(history):
        if not isinstance(each.event, Close | Unsubscribe) or each.before.opened is None or not each.rules.incremental:
            continue
        if each.after.owned:
            yield violation(
                each, f"it leaves while it owns {partition_names(each.after.owned)}", "all given up", "kept"
            )
        identity, lost, revoked = each.before.who, callbacks(each.actions, Lost), callbacks(each.actions, Revoked)
        if identity is None or each.before.round is Round.FAILED:
            continue
        out = identity.is_out or each.before.round in (Round.JOINING, Round.SYNCING)
        if out and revoked:
            why = f"{partition_names(revoked)} was revoked, and may belong to another member already"
            yield violation(each, why, "lost", "revoked")
        if not out and lost:
            yield violation(each, f"{partition_names(lost)} was lost by a member of the group", "revoked", "lost")


# After a sync


@invariant("member/revokes-what-it-lost", "429-15", role=Role.MEMBER, applies_to=on("member-poll"))
def revokes_what_it_lost(history: History) -> Iterator[Violation]:
    """A cooperative member revokes exactly what it owned and was not assigned again, before it adds the rest."""
    for each in member_steps(history):
        if each.assigned is None or not each.cooperative:
            continue
        done, _ = each.parts
        due, revoked = each.before.owned - each.assigned, {*callbacks(done, Revoked)}
        if less := due - revoked:
            yield violation(
                each,
                f"{partition_names(less)} was not assigned again, and not revoked",
                partition_names(due),
                "too little",
            )
        if more := revoked - due:
            yield violation(each, f"{partition_names(more)} was revoked", partition_names(due), "too much")


@invariant("member/rejoins-after-revoking", "429-15", role=Role.MEMBER, applies_to=on("member-poll"))
def rejoins_after_revoking(history: History) -> Iterator[Violation]:
    """After a cooperative member revoked what it was not assigned again it joins again, so that others can get it."""
    for each in member_steps(history):
        if each.assigned is None or not each.cooperative:
            continue
        if (gone := each.before.owned - each.assigned) and not joins(each):
            yield violation(
                each, f"{partition_names(gone)} was not assigned again, and no join follows", "a JoinGroup", "stays"
            )


# KIP-429's draft


@invariant("member/counts-incompatible", "429-03", role=Role.MEMBER, applies_to=on("member-poll"))
def counts_incompatible(history: History) -> Iterator[Violation]:
    """num.incompatible.rebalance rises by one with every assignment that carries the error, and at no other time."""
    for each in member_steps(history):
        due = isinstance(each.event, Poll) and each.before.can_take and is_incompatible(each.rules, each.before.taking)
        reported = [action.value for action in each.actions if isinstance(action, Metric)]
        wanted = [each.before.metric + 1] if due else []
        if reported != wanted and not (reported and each.before.waits is None):
            why = f"the metric was {each.before.metric}, and is reported {len(reported)} times"
            yield violation(each, why, f"metric {wanted[0]}" if due else "no metric", "uncounted" if due else "counted")


@invariant("member/drafted-subscription", "429-17", role=Role.MEMBER, applies_to=on("member-poll"))
def drafted_subscription(history: History) -> Iterator[Violation]:
    """As drafted, an eager member sends version 0 and a cooperative one version 1, in JoinGroup v5 as well."""
    for each in member_steps(history):
        if not each.rules.draft:
            continue
        version = 1 if each.cooperative else 0
        for action in each.actions:
            if not isinstance(action, Join):
                continue
            reported = {blob.version for _, blob in action.protocols if isinstance(blob, Subscription)}
            if reported != {version} or action.protocol_version != version or action.version < 5:
                protocol = COOPERATIVE if version else EAGER
                why = f"a member with the {protocol} protocol joins with subscriptions of version {sorted(reported)}"
                yield violation(each, why, f"version {version}, in JoinGroup v5 as well", protocol)


# The protocol


@invariant("member/finds-a-protocol", "429-20", role=Role.MEMBER, applies_to=on("member-open"))
def finds_a_protocol(history: History) -> Iterator[Violation]:
    """A consumer can be created exactly if its assignors have a rebalance protocol in common."""
    for each in member_steps(history):
        if not isinstance(each.event, Open):
            continue
        common = protocol_of(each.rules, each.event)
        refused = isinstance(each.op.observation, Refused)
        if refused is (common is not None):
            names = ", ".join(each.event.assignors)
            why = f"{names} have {f'{common} in common' if common else 'no protocol in common'}"
            yield violation(each, why, "accepted" if common else "refused", "refused" if refused else "accepted")
