"""Invariants of a consumer towards its user: when callbacks are called, and which partitions it owns and reads.

They cover released consumers (ConsumerCoordinator) and KIP-429's draft. Each invariant reads the consumer's inputs and
its actions.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Refused
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, Assigned, Subscription
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group.model.messages import Join
from kipcheck.conformance.protocols.member.invariants import PROTOCOLS, member_invariant
from kipcheck.conformance.protocols.member.invariants.trace import MemberStep, member_steps
from kipcheck.conformance.protocols.member.invariants.view import Round, View, is_incompatible, protocol_of
from kipcheck.conformance.protocols.member.model.messages import UserEvent
from kipcheck.conformance.protocols.member.ops import (
    ACTIONS,
    Close,
    Given,
    Lost,
    Metric,
    Open,
    Poll,
    Raised,
    Reads,
    Request,
    Revoked,
    Unsubscribe,
)

PLACE = 10

of_callbacks = partial(member_invariant, checks=("member/callbacks",))
of_ownership = partial(member_invariant, checks=("member/ownership",))
of_draft = partial(member_invariant, checks=("member/draft",))

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
    if not isinstance(action, Request):
        return ACTIONS.describe(action)
    member = getattr(action, "member", None)
    named = "" if member is None else f" as {member or '(no id)'}"
    generation = getattr(action, "generation", None)
    return f"{type(action).__name__}{named}{'' if generation is None else f' in generation {generation}'}"


def before_join(actions: Iterable[object]) -> Iterator[object]:
    for each in actions:
        if isinstance(each, Join):
            return
        yield each


def owned_in(step: MemberStep) -> Iterator[tuple[object, frozenset[Partition]]]:
    """Each action with what the consumer owns before it, by its callbacks."""
    owned = step.before.owned
    for action in step.actions:
        yield action, owned
        if isinstance(action, Given):
            owned |= {*action.partitions}
        elif isinstance(action, Revoked | Lost):
            owned -= {*action.partitions}


def _with_owned(history: History) -> Iterator[tuple[MemberStep, object, frozenset[Partition]]]:
    return ((step, action, owned) for step in member_steps(history) for action, owned in owned_in(step))


def owned_at_join(step: MemberStep) -> frozenset[Partition]:
    """What a consumer that joins owns then."""
    return next(owned for action, owned in owned_in(step) if isinstance(action, Join))


def joins(step: MemberStep) -> bool:
    return any(isinstance(each, Join) for each in step.actions)


def callbacks(actions: Iterable[object], *kinds: type[UserEvent]) -> list[Partition]:
    return [each for action in actions if isinstance(action, kinds) for each in action.partitions]  # type: ignore[union-attr]


def promptly(view: View) -> str:
    return "later" if view.later else "at once"


def outcome(step: MemberStep) -> str:
    """What a poll did, in shapes: an exception by its class, if the testee names it."""
    raised = [each.exception or each.error for each in step.actions if isinstance(each, Raised)]
    return f"raises {raised[0]}" if raised else "joins" if joins(step) else "nothing"


# When callbacks are called


@impact(
    "A rebalance callback is called at a time when the user does not expect it", "wrong data", "callbacks",
    "double-processing", links=("KAFKA-7194",),
)  # fmt: skip
@of_callbacks("member/callbacks-in-their-time", "grp-61", applies_to=every, needs=on("member-poll"))
def callbacks_in_their_time(history: History) -> Iterator[Violation]:
    """Callbacks are called only in polls, before the join that they prepare, and when the user leaves the group."""
    for step in member_steps(history):
        called = [action for action in step.actions if isinstance(action, CALLBACKS)]
        if not isinstance(step.event, Poll | Close | Unsubscribe):
            late, when, why = called, step.name, "the user did not poll or leave"
        elif isinstance(step.event, Poll) and step.before.join_pending and not step.before.loose:
            late, when, why = called, "a join is in progress", "a join is in progress"
        else:
            sent = [k for k, action in enumerate(step.actions) if isinstance(action, Join)]
            late = [action for action in step.actions[sent[0] :] if isinstance(action, CALLBACKS)] if sent else []
            when, why = "after JoinGroup", "JoinGroup was sent before"
        if late:
            kind = type(late[0]).__name__
            yield violation(step, f"{describe(late[0])}, although {why}", "no callback", kind, when)


@impact(
    "A rebalance callback names partitions that the consumer does not own, or owns already", "wrong data", "callbacks",
    "wrong-data", links=("KIP-429",),
)  # fmt: skip
@of_callbacks("member/gives-up-what-it-owns", "grp-61", applies_to=every, needs=on("member-poll"))
def gives_up_what_it_owns(history: History) -> Iterator[Violation]:
    """Only partitions that a consumer owns are revoked or lost, and only partitions that it lacks are added."""
    for step, action, owned in _with_owned(history):
        match action:
            case Revoked(partitions) | Lost(partitions) if foreign := {*partitions} - owned:
                why = f"{partition_names(foreign)} was given up, and is not owned"
                shape = ("not owned", type(action).__name__, step.name, f"since {step.before.moved_by}")
                yield violation(step, why, partition_names(owned), *shape)
            case Given(partitions) if again := {*partitions} & owned:
                why = f"{partition_names(again)} was assigned, and is owned already"
                yield violation(step, why, "no repetition", "given again", f"since {step.before.moved_by}")


# Assignments


@impact(
    "An assignment is lost, or partitions are added without one", "stuck group", "ownership", "double-processing",
    "unread-partition", links=("KAFKA-7961",),
)  # fmt: skip
@of_ownership("member/owns-what-it-was-given", "grp-61", applies_to=every, needs=on("member-poll"))
def owns_what_it_was_given(history: History) -> Iterator[Violation]:
    """After an assignment a consumer owns exactly the partitions that were assigned to it."""
    for step in member_steps(history):
        done, _ = step.parts
        view, assigned = step.before, step.assigned
        given = [action for action in step.actions if isinstance(action, Given)]
        if given and view.taking is None and not view.loose:
            why = f"{describe(given[0])}, although no assignment is pending: {view.taking_ended}"
            yield violation(step, why, "no assigned callback", "out of nothing", view.taking_ended)
        if assigned is None:
            continue
        if not given:
            why = f"{partition_names(assigned)} was assigned, and the assigned callback was not called"
            if step.adopts_in_silence:
                yield violation(step, why, "given nothing", "silent", "nothing new")
            else:
                since = () if view.later else (f"joined since {view.joins_since}",)
                yield violation(step, why, "given", "silent", outcome(step), promptly(view), *since)
            continue
        kind = "cooperative" if step.cooperative else "eager"
        owned = (view.owned - {*callbacks(done, Revoked, Lost)}) | {*callbacks(done, Given)}
        named = partition_names(assigned)
        if owned - assigned and not step.cooperative:  # cooperative consumers: member/revokes-what-it-lost
            why = f"{named} was assigned, and {partition_names(owned - assigned)} is owned too"
            yield violation(step, why, named, "too much", kind)
        if missing := assigned - owned:
            why = f"{partition_names(missing)} was assigned and is not owned"
            yield violation(step, why, named, "too little", kind)
        if foreign := {*callbacks(done, Given)} - assigned:
            why = f"the assigned callback got {partition_names(foreign)}, which was not assigned"
            yield violation(step, why, named, "not assigned", kind)


@impact(
    "A consumer adopts an assignment that does not match its subscription", "wrong data", "ownership",
    "double-processing", links=("KAFKA-7961",),
)  # fmt: skip
@of_ownership(
    "member/takes-what-fits", "grp-79", grade=Grade.SHOULD, applies_to=on("member-poll")
)  # fmt: skip
def takes_what_fits(history: History) -> Iterator[Violation]:
    """An assignment of no bytes, or of topics that it does not subscribe to, is not adopted, and it joins again."""
    for step in member_steps(history):
        view = step.before
        if not step.polls:
            continue
        given = any(isinstance(action, Given) for action in step.actions)
        if view.can_take and view.taking is not None and not is_incompatible(step.rules, view.taking):
            if given and not isinstance(view.taking, Assigned):
                yield violation(step, "an assignment without bytes was adopted", "not adopted", "no bytes")
            elif given and not view.fits:
                why = "an assignment with a topic that it does not subscribe to was adopted"
                yield violation(step, why, "not adopted", "not subscribed")
        elif view.dropped and view.is_idle and not joins(step) and not step.received.must_join:
            why = "the assignment did not fit the subscription, and no join follows"
            yield violation(step, why, "a JoinGroup", "stays", outcome(step))


@impact(
    "A consumer reads other partitions than its callbacks reported", "double processing", "ownership",
    "double-processing", "unread-partition", links=("KAFKA-14196",),
)  # fmt: skip
@of_ownership("member/reads-what-it-owns", "grp-61", applies_to=every, needs=on("member-poll"))
def reads_what_it_owns(history: History) -> Iterator[Violation]:
    """At the end of a poll a consumer reads exactly the partitions that it owns according to its callbacks."""
    for step, action, owned in _with_owned(history):
        if isinstance(action, Reads) and {*action.partitions} != owned:
            too_much = "too much" if {*action.partitions} - owned else "too little"
            why = f"{partition_names(action.partitions)} is read, and {partition_names(owned)} is owned"
            shape = (too_much, step.after.round.value, f"since {step.after.moved_by}")
            yield violation(step, why, partition_names(owned), *shape)


# Before a join


@impact(
    "A consumer joins while it still reads its partitions", "double processing", "ownership", "double-processing",
    links=("KIP-429",),
)  # fmt: skip
@member_invariant(
    "member/gives-up-first", "grp-60", "429-17", "429-20", checks=("member/callbacks", "member/draft"),
    applies_to=on("member-poll"),
)  # fmt: skip
def gives_up_first(history: History) -> Iterator[Violation]:
    """An eager consumer gives up all partitions before it joins."""
    for step in member_steps(history):
        if joins(step) and not step.cooperative and (kept := owned_at_join(step)):
            why = f"it joins while it owns {partition_names(kept)}"
            yield violation(step, why, "all revoked", "owns while it joins", f"since {step.received.join_reason}")


@impact(
    "A cooperative consumer gives up partitions without need, or keeps what it must give up", "double processing",
    "stickiness", "needless-move", links=("KIP-429",),
)  # fmt: skip
@member_invariant(
    "member/keeps-what-it-may", "429-15", "429-17", "429-20", checks=("member/ownership", "member/draft"),
    applies_to=on("member-poll"),
)  # fmt: skip
def keeps_what_it_may(history: History) -> Iterator[Violation]:
    """Before it joins a cooperative member gives up no partition of a topic that it still subscribes to."""
    for step, _, due, revoked in _before_cooperative_joins(history):
        if more := revoked - due:
            why = f"{partition_names(more)} was revoked before the join"
            yield violation(step, why, partition_names(due), "too much", f"since {step.received.join_reason}")


@impact(
    "A consumer keeps partitions of topics that it no longer subscribes to", "double processing", "stickiness",
    "needless-move", links=("KIP-429",),
)  # fmt: skip
@of_ownership(
    "member/gives-up-unsubscribed", "grp-79", grade=Grade.SHOULD, applies_to=on("member-poll")
)  # fmt: skip
def gives_up_unsubscribed(history: History) -> Iterator[Violation]:
    """Before it joins a cooperative member gives up the partitions of topics that it no longer subscribes to."""
    for step, retries, due, revoked in _before_cooperative_joins(history):
        if (less := due - revoked) and not retries:
            why = f"it no longer subscribes to {partition_names(less)}, and joins without giving it up"
            yield violation(step, why, partition_names(due), "too little", f"since {step.received.join_reason}")


def _before_cooperative_joins(
    history: History,
) -> Iterator[tuple[MemberStep, bool, set[Partition], set[Partition]]]:
    """Joins of members, whether they repeat one, what they own of other topics, and what they revoke."""
    for step in member_steps(history):
        if joins(step) and step.cooperative and step.received.is_out is False:
            done, then = step.parts
            owned = (step.before.owned - {*callbacks(done, Revoked, Lost)}) | {*callbacks(done, Given)}
            due = {partition for partition in owned if partition[0] not in step.received.topics}
            repeats = step.received.round is Round.FAILED or (step.before.taking is not None and not done)
            yield step, repeats, due, {*callbacks(before_join(then), Revoked)}


@impact(
    "A consumer that was removed from its group goes on with its partitions", "double processing", "callbacks",
    "double-processing", "wrong-data", links=("KAFKA-12983", "KIP-429"),
)  # fmt: skip
@of_callbacks("member/lost-when-out", "grp-63", applies_to=every, needs=on("member-poll"))
def lost_when_out(history: History) -> Iterator[Violation]:
    """A consumer that was removed from its group loses what it owned; a member of the group loses nothing."""
    for step in member_steps(history):
        view = step.received
        if view.is_out is None or not step.rules.incremental or not isinstance(step.event, Poll) or not joins(step):
            continue
        _, after_assignment = step.parts
        then = [*before_join(after_assignment)]
        lost, revoked, since = callbacks(then, Lost), callbacks(then, Revoked), f"since {_coarse(view.who_since)}"
        if view.is_out and revoked:
            why = f"{partition_names(revoked)} was revoked by a consumer that is out of the group"
            yield violation(step, why, "lost", "revoked", since)
        if view.is_out and (kept := owned_at_join(step)) and view.round is Round.OUT:
            why = f"it is out of the group, and joins while it owns {partition_names(kept)}"
            yield violation(step, why, "lost", "kept", since)
        if not view.is_out and lost:
            why = f"{partition_names(lost)} was lost by a member of the group"
            yield violation(step, why, "nothing lost", "in the group", f"since {view.join_reason}")


def _coarse(since: str) -> str:
    return "a failed join" if since.startswith(("joined", "synced")) else since


# When the user leaves


def _leaving(history: History) -> Iterator[MemberStep]:
    for step in member_steps(history):
        if isinstance(step.event, Close | Unsubscribe) and step.before.opened is not None and step.rules.incremental:
            yield step


@impact(
    "A consumer leaves its group without a callback", "double processing", "callbacks", "double-processing",
    links=("KAFKA-8972",),
)  # fmt: skip
@of_callbacks("member/leaves-with-callbacks", "grp-81", "grp-63", applies_to=every, needs=on("member-poll"))
def leaves_with_callbacks(history: History) -> Iterator[Violation]:
    """A consumer that leaves first gives up all: as lost if it is out of the group, else as revoked."""
    for step in _leaving(history):
        view, called, verb = step.before, callbacks(step.actions, Revoked, Lost), step.name
        lost, revoked = callbacks(step.actions, Lost), callbacks(step.actions, Revoked)
        if kept := view.owned - {*called}:
            yield violation(step, f"it leaves while it owns {partition_names(kept)}", "all given up", "kept", verb)
        if view.is_out and revoked:
            why = f"{partition_names(revoked)} was revoked by a consumer that is out of the group"
            yield violation(step, why, "lost", "revoked", verb, f"since {view.who_since}")
        if view.is_out is False and view.round is Round.STABLE and lost:
            why = f"{partition_names(lost)} was lost by a member of the group"
            yield violation(step, why, "revoked", "lost", verb)


@impact(
    "A consumer that leaves in a rebalance reports its partitions as revoked instead of lost", "trivia", "callbacks",
    "double-processing", links=("KIP-429",),
)  # fmt: skip
@of_callbacks("member/leaves-amid-a-rebalance", "grp-82", grade=Grade.INFO, applies_to=every, needs=on("member-poll"))
def leaves_amid_a_rebalance(history: History) -> Iterator[Violation]:
    """What a consumer owns when it leaves during a rebalance is lost, as in Kafka's consumer, and not revoked."""
    for step in _leaving(history):
        view, revoked = step.before, callbacks(step.actions, Revoked)
        if revoked and view.is_out is False and view.round in (Round.JOINING, Round.SYNCING):
            why = f"{partition_names(revoked)} was revoked, and may belong to another member already"
            yield violation(step, why, "lost", "revoked", step.name, view.round.value)


# After a sync


@impact(
    "A cooperative consumer does not revoke the partitions that were taken from it", "double processing", "ownership",
    "double-processing", links=("KIP-429",),
)  # fmt: skip
@of_ownership("member/revokes-what-it-lost", "429-15", applies_to=on("member-poll"))
def revokes_what_it_lost(history: History) -> Iterator[Violation]:
    """A cooperative member revokes exactly what it owned and was not assigned again, before it adds the rest."""
    for step in member_steps(history):
        if step.assigned is None or not step.cooperative:
            continue
        done, _ = step.parts
        due, revoked = step.before.owned - step.assigned, {*callbacks(done, Revoked)}
        if (less := due - revoked) and done:
            why = f"{partition_names(less)} was not assigned again, and not revoked"
            yield violation(step, why, partition_names(due), "too little", "some" if revoked else "none")
        if more := revoked - due:
            yield violation(step, f"{partition_names(more)} was revoked", partition_names(due), "too much")


@impact(
    "Revoked partitions get no new owner, because the consumer does not join again", "stuck group", "ownership",
    "unread-partition", links=("KIP-429",),
)  # fmt: skip
@of_ownership("member/rejoins-after-revoking", "429-15", applies_to=on("member-poll"))
def rejoins_after_revoking(history: History) -> Iterator[Violation]:
    """A cooperative member that revoked what it was not assigned again joins again, in the next poll at the latest."""
    for step in member_steps(history):
        due = step.before.revoked and step.before.is_idle and step.before.taking is None
        if step.polls and due and not joins(step):
            why = "it revoked partitions, and no join follows"
            yield violation(step, why, "a JoinGroup", "stays", outcome(step))


# KIP-429's draft


@impact(
    "The number of incompatible rebalances is reported incorrectly", "trivia", "answers", "misled-operator",
    links=("KIP-429",),
)  # fmt: skip
@of_draft("member/counts-incompatible", "429-03", applies_to=on("member-poll"))
def counts_incompatible(history: History) -> Iterator[Violation]:
    """num.incompatible.rebalance rises by one with every assignment that carries the error, and at no other time."""
    for step in member_steps(history):
        due = isinstance(step.event, Poll) and step.before.can_take and is_incompatible(step.rules, step.before.taking)
        reported = [action.value for action in step.actions if isinstance(action, Metric)]
        wanted = [step.before.metric + 1] if due else []
        unsure = step.before.waits is None or step.before.loose or step.before.may_raise
        if reported != wanted and not (reported and unsure):
            why = f"the metric was {step.before.metric}, and is reported {len(reported)} times"
            yield violation(step, why, f"metric {wanted[0]}" if due else "no metric", "uncounted" if due else "counted")


@impact(
    "A member subscribes in another version than the draft asks for", "double processing", "versions",
    "double-processing", links=("KIP-429",),
)  # fmt: skip
@of_draft("member/drafted-subscription", "429-17", applies_to=on("member-poll"))
def drafted_subscription(history: History) -> Iterator[Violation]:
    """As drafted, an eager member sends version 0 and a cooperative one version 1, in JoinGroup v5 as well."""
    for step in member_steps(history):
        if not step.rules.draft:
            continue
        version = 1 if step.cooperative else 0
        for action in step.actions:
            if not isinstance(action, Join):
                continue
            reported = {blob.version for _, blob in action.protocols if isinstance(blob, Subscription)}
            if reported != {version} or action.protocol_version != version or action.version < 5:
                protocol = COOPERATIVE if version else EAGER
                why = f"a member with the {protocol} protocol joins with subscriptions of version {sorted(reported)}"
                yield violation(step, why, f"version {version}, in JoinGroup v5 as well", protocol)


# The protocol


@impact(
    "A consumer starts with assignors that have no rebalance protocol in common", "stuck group", "guards",
    "stuck-upgrade", links=("KIP-429",),
)  # fmt: skip
@member_invariant(
    "member/finds-a-protocol", "429-20", "429-17", checks=(PROTOCOLS, "member/draft"), applies_to=on("member-open")
)
def finds_a_protocol(history: History) -> Iterator[Violation]:
    """A consumer can be created exactly if its assignors have a rebalance protocol in common."""
    for step in member_steps(history):
        if not isinstance(step.event, Open):
            continue
        common = protocol_of(step.rules, step.event)
        refused = isinstance(step.op.observation, Refused)
        if refused is (common is not None):
            names = ", ".join(step.event.assignors)
            why = f"{names} have {f'{common} in common' if common else 'no protocol in common'}"
            yield violation(step, why, "accepted" if common else "refused", "refused" if refused else "accepted")
