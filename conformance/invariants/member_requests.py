"""Invariants of a consumer's requests: member id and generation, subscriptions, when it joins, syncs, sends heartbeats
and leaves, how it handles errors, and how commits end.
"""

from collections.abc import Iterator

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.member import every, joins, on, violation
from kipcheck.conformance.invariants.member_trace import MemberStep, member_steps
from kipcheck.conformance.invariants.member_view import NO_IDENTITY, Identity, Round
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.assignment import partition_names
from kipcheck.conformance.models.group.messages import (
    EMPTY,
    NO_GENERATION,
    Commit,
    Committed,
    Error,
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from kipcheck.conformance.models.member.client import (
    HEARTBEAT_MS,
    INCREMENTAL,
    POLL_MS,
    SESSION_MS,
    AnswerReceived,
    Elapse,
)
from kipcheck.conformance.models.member.messages import (
    COMMIT_FAILED,
    ILLEGAL_STATE,
    REBALANCING,
    Close,
    CommitEnded,
    CommitOffsets,
    Disconnected,
    Metric,
    Poll,
    Raised,
    Unsubscribe,
)
from kipcheck.conformance.models.membership import Subscription

ANSWERED = "member-told"
RETRIED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})


def event_name(step: MemberStep) -> str:
    """The event in messages and shapes: the answer's type and error, or the verb of the step."""
    if isinstance(step.event, AnswerReceived):
        return f"{type(step.event.answer).__name__.lower()} {step.event.answer.error.name}"
    return step.op.step.verb.removeprefix("member-")


# Member id and generation


@invariant("member/speaks-as-it-was-told", "grp-64", role=Role.MEMBER, applies_to=every)
def uses_its_identity(history: History) -> Iterator[Violation]:
    """Each request carries the member id and generation of the last response, unless a later error reset them."""
    reset_by = "the beginning"
    for each in member_steps(history):
        if each.received.who != each.before.who:
            reset_by = event_name(each)
        identity = each.received.who
        if identity is None:
            continue
        for action in each.actions:
            match action:
                case Join(member=member):
                    wrong, wanted = member != identity.member, Identity(identity.member)
                case Sync(member=member, generation=generation):
                    wrong, wanted = (member, generation) != identity, identity
                case Heartbeat(member=member, generation=generation):
                    wrong, wanted = (member, generation) not in (identity, each.before.who), identity
                case Commit(member=member, generation=generation):
                    wanted = identity if each.received.topics else NO_IDENTITY
                    wrong = (member, generation) not in (wanted, each.before.who)
                case Leave(members=members):
                    wanted = each.before.who or identity
                    wrong = each.before.who is not None and [id for id, _ in members] != [wanted.member]
                case _:
                    continue
            if wrong:
                kind = type(action).__name__
                why = f"{kind} does not carry {describe_identity(wanted)}, which is right since {reset_by}"
                yield violation(each, why, describe_identity(wanted), kind, reset_by)


def describe_identity(identity: Identity) -> str:
    id = f"member id {identity.member}" if identity.member else "an empty member id"
    return id if identity.generation == NO_GENERATION else f"{id} and generation {identity.generation}"


@invariant("member/tells-what-it-holds", "grp-62", "429-17", role=Role.MEMBER, applies_to=on("member-poll"))
def subscription_is_true(history: History) -> Iterator[Violation]:
    """A subscription names the subscribed topics, the owned partitions and the generation in which they are owned."""
    for each in member_steps(history):
        for action in each.actions:
            if not isinstance(action, Join):
                continue
            for name, blob in action.protocols:
                if isinstance(blob, Subscription):
                    yield from _untrue(each, name, blob)


def _untrue(step: MemberStep, assignor: str, subscription: Subscription) -> Iterator[Violation]:
    identity, owned = step.received.who, step.after.owned
    if {*subscription.topics} != {*step.received.topics}:
        why = f"its subscription for {assignor} names {', '.join(subscription.topics)}"
        yield violation(step, why, ", ".join(step.received.topics), "topics")
    if {*subscription.owned} != (owned if subscription.version >= 1 else set()):
        why = (
            f"it owns {partition_names(owned)}, and its subscription names {partition_names(subscription.owned)} in "
            f"version {subscription.version}"
        )
        yield violation(step, why, partition_names(owned) if subscription.version else "nothing in version 0", "owned")
    if subscription.version >= 2 and identity is not None and subscription.generation != identity.generation:
        why = f"its generation is {identity.generation}, and its subscription names {subscription.generation}"
        yield violation(step, why, f"generation {identity.generation}", "generation")


# Errors


@invariant("member/raises-what-is-fatal", "grp-65", role=Role.MEMBER, applies_to=every)
def raises_what_is_fatal(history: History) -> Iterator[Violation]:
    """The next poll raises an error that the consumer cannot recover from, once; it raises no other error."""
    for each in member_steps(history):
        if not isinstance(each.event, Poll) or each.before.opened is None:
            continue
        raised = [action.error for action in each.actions if isinstance(action, Raised)]
        # Kafka's consumer raises an error if it has no subscription, which no requirement asks for.
        unsubscribed = ILLEGAL_STATE if raised else ""
        wanted = each.received.raises if each.received.topics else unsubscribed
        unsure = raised == [ILLEGAL_STATE] and (
            (each.before.waits is None and each.before.taking == EMPTY) or _has_foreign_assignor(each)
        )
        if raised != ([wanted] if wanted else []) and not unsure:
            why = f"the poll raised {' and '.join(raised) or 'nothing'}"
            yield violation(each, why, f"raised {wanted}" if wanted else "nothing raised", wanted or "nothing", *raised)


def _has_foreign_assignor(step: MemberStep) -> bool:
    """Was an assignor chosen that the consumer lacks? Then it may raise (``ConsumerCoordinator.onJoinComplete``)."""
    joined, opened = step.before.joined, step.before.opened
    if step.before.taking is None or joined is None or opened is None:
        return False
    return joined.protocol not in opened.assignors


def _cannot_lead(step: MemberStep) -> bool:
    """May the leader find no assignment for its group?"""
    joined, opened = step.received.joined, step.received.opened
    if joined is None or opened is None or joined.leader != joined.member or step.rules.draft:
        return False
    ids = [id for id, _, _ in joined.members]
    if joined.member not in ids or len(ids) > len(set(ids)):
        return True  # no coordinator sends such a list
    strict = joined.protocol == INCREMENTAL or step.rules.validates_own
    return joined.protocol not in opened.assignors or (strict and step.cooperative)


# When it joins


@invariant("member/joins-when-due", "grp-66", "429-03", role=Role.MEMBER, applies_to=every)
def joins_when_due(history: History) -> Iterator[Violation]:
    """A poll joins if and only if a rebalance, an error, a lost answer or a new subscription requires it."""
    since = "the beginning"
    for each in member_steps(history):
        if each.received.due and not each.before.due:
            since = event_name(each)
        if not isinstance(each.event, Poll) or each.before.opened is None:
            if joins(each):
                yield violation(each, "it joins while the user does not poll", "no JoinGroup", "outside a poll")
            continue
        if any(isinstance(action, Metric) for action in each.actions):
            continue  # The back-off of the draft's error comes first.
        if (
            each.received.must_join is not None
            and each.received.must_join is not joins(each)
            and not each.received.waits
        ):
            if joins(each):
                yield violation(each, "it joins without a reason to", "no JoinGroup", "undue")
            else:
                yield violation(each, f"a join is due since {since}, and none is sent", "a JoinGroup", "none", since)


@invariant("member/backs-off", "grp-66", "429-03", role=Role.MEMBER, applies_to=every)
def backs_off(history: History) -> Iterator[Violation]:
    """After a retriable error, a lost answer or the draft's error no JoinGroup is sent before the back-off ends."""
    for each in member_steps(history):
        counted = each.before.waits is False and each.after.waits is True and isinstance(each.event, Poll)
        if (each.received.waits or counted) and joins(each):
            yield violation(each, "it joins before its back-off ends", "no JoinGroup", "joins", "counted" * counted)


# The duties in a round


@invariant("member/syncs", "grp-67", role=Role.MEMBER, applies_to=on(ANSWERED))
def syncs(history: History) -> Iterator[Violation]:
    """After a successful JoinGroup a consumer sends one SyncGroup, and at no other time."""
    for each in member_steps(history):
        sent = [action for action in each.actions if isinstance(action, Sync)]
        due = each.before.round is Round.JOINING and each.received.round is Round.SYNCING
        if sent and not due:
            yield violation(each, f"it sends SyncGroup after {event_name(each)}", "no SyncGroup", "undue")
        elif due and len(sent) != 1 and not (not sent and _cannot_lead(each)):
            why = f"it joined, and sends {len(sent)} SyncGroup requests"
            yield violation(each, why, "one SyncGroup", "none" * (not sent))


@invariant("member/leads", "grp-67", role=Role.MEMBER, applies_to=on(ANSWERED))
def leads(history: History) -> Iterator[Violation]:
    """The leader assigns to every member, and to no others, unless it has to skip that; followers assign nothing."""
    for each in member_steps(history):
        joined = each.received.joined
        if joined is None:
            continue
        for action in each.actions:
            if isinstance(action, Sync):
                leader = joined.leader == joined.member and not joined.skip_assignment
                wanted = {id for id, _, _ in joined.members} if leader else set()
                named = [id for id, _ in action.assignments]
                if sorted(named) != sorted(wanted):
                    identity = (
                        "the leader" if leader else "no leader" if joined.leader != joined.member else "told to skip"
                    )
                    what = {"told to skip": "to skip the assignment", "no leader": "not the leader"}.get(
                        identity, identity
                    )
                    why = f"it is {what}, and assigns to {', '.join(named) or 'no member'}"
                    yield violation(each, why, ", ".join(sorted(wanted)) or "no assignments", identity)


# Heartbeats, and how it leaves


@invariant("member/beats", "grp-69", role=Role.MEMBER, applies_to=on("member-elapse"))
def beats(history: History) -> Iterator[Violation]:
    """In a stable group a consumer sends a heartbeat whenever the heartbeat interval has passed."""
    for each in member_steps(history):
        view = each.before
        stable = view.round is Round.STABLE and view.beat is None and view.waits is False
        if not isinstance(each.event, Elapse) or not stable or each.event.ms < HEARTBEAT_MS:
            continue
        soon = (
            each.received.now_ms - max(view.alive_ms, 0) < SESSION_MS
            and each.received.now_ms - view.polled_ms < POLL_MS
        )
        if soon and not any(isinstance(action, Heartbeat) for action in each.actions):
            yield violation(each, f"{each.event.ms} ms passed without a heartbeat", "a heartbeat", "none")


@invariant("member/leaves", "grp-69", role=Role.MEMBER, applies_to=every)
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that closes, unsubscribes or is not polled for too long sends LeaveGroup, a static one never."""
    for each in member_steps(history):
        view, sent = each.before, [action for action in each.actions if isinstance(action, Leave)]
        static = each.rules.static and view.opened is not None and view.opened.instance is not None
        if sent and static:
            yield violation(each, "a static member sends LeaveGroup", "no LeaveGroup", "static")
        elif sent and not isinstance(each.event, Close | Unsubscribe | Elapse):
            yield violation(each, f"it sends LeaveGroup after {event_name(each)}", "no LeaveGroup", "undue")
        elif not sent and not static and view.opened is not None and _is_leaving(each):
            yield violation(each, "a member of the group leaves without LeaveGroup", "a LeaveGroup", "none")


def _is_leaving(step: MemberStep) -> bool:
    view = step.before
    if view.who is None or view.who.is_out or view.round is not Round.STABLE or view.waits is not False:
        return False
    if isinstance(step.event, Elapse):
        # Only while the coordinator answers; else the consumer is looking for it.
        answered = step.received.now_ms - view.alive_ms < SESSION_MS
        return step.received.now_ms - view.polled_ms >= POLL_MS and answered
    return isinstance(step.event, Close | Unsubscribe)


# Commits


@invariant("member/commit-is-known", "grp-68", role=Role.MEMBER, applies_to=every)
def commit_is_known(history: History) -> Iterator[Violation]:
    """A commit is done only if the coordinator says so, and failed only if that is known: a lost answer is neither."""
    for each in member_steps(history):
        answer = each.event.answer if isinstance(each.event, AnswerReceived) else None
        done = answer.error if isinstance(answer, Committed) and each.before.commit is not None else None
        for action in each.actions:
            if not isinstance(action, CommitEnded):
                continue
            if not each.received.commits:
                yield violation(each, f"a commit ended with {action.error}, and none is pending", "nothing", "unasked")
            elif action.error == Error.NONE.name and done is not Error.NONE:
                yield violation(each, f"a commit ended as done after {event_name(each)}", "not done", "done")
            elif isinstance(each.event, Disconnected):
                yield violation(each, f"a commit without an answer ended with {action.error}", "sent again", "lost")
            elif done in RETRIED:
                why = f"a commit ended with {action.error} after {event_name(each)}"
                yield violation(each, why, "sent again", "passing error")
            elif done is None and action.error not in (COMMIT_FAILED, REBALANCING):
                yield violation(
                    each, f"a commit ended with {action.error} after {event_name(each)}", "not yet", "unanswered"
                )
            elif done is Error.NONE and action.error != Error.NONE.name:
                yield violation(each, f"a commit was done, and ended with {action.error}", "done", "failed")


@invariant("member/commit-ends", "grp-68", role=Role.MEMBER, applies_to=every)
def commit_ends(history: History) -> Iterator[Violation]:
    """A commit's end is reported to the user; after a lost answer or retriable error it is sent again."""
    for each in member_steps(history):
        ended = any(isinstance(action, CommitEnded) for action in each.actions)
        sent = any(isinstance(action, Commit) for action in each.actions)
        view = each.before
        if (
            isinstance(each.event, AnswerReceived)
            and isinstance(each.event.answer, Committed)
            and view.commit is not None
        ):
            if not ended and each.event.answer.error not in RETRIED:
                why = f"after {event_name(each)} the commit does not end"
                yield violation(each, why, "the end of the commit", "untold")
        elif isinstance(each.event, CommitOffsets) and view.opened is not None and not view.commits:
            if not ended and not sent and view.waits is False:
                yield violation(each, "a commit was neither sent nor ended", "an OffsetCommit", "unsent")
        elif isinstance(each.event, Elapse) and view.waits and view.commits and view.commit is None:
            over = each.received.waits is False
            if over and not ended and not sent:
                yield violation(each, "the back-off ended, and the commit was not sent", "an OffsetCommit", "forgotten")
