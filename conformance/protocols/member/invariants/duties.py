"""Invariants of what the coordinator and the user expect of a member: SyncGroup, heartbeats, leaving, commits."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.group.request_rules import shares
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.invariants import member_invariant
from kipcheck.conformance.protocols.member.invariants.callbacks import every, on, violation
from kipcheck.conformance.protocols.member.invariants.requests import ANSWERED
from kipcheck.conformance.protocols.member.invariants.trace import SILENTLY, MemberStep, member_steps
from kipcheck.conformance.protocols.member.invariants.view import Round
from kipcheck.conformance.protocols.member.model.client import HEARTBEAT_MS, POLL_MS, SESSION_MS
from kipcheck.conformance.protocols.member.model.messages import COMMIT_FAILED, REBALANCING

PLACE = 30

of_duties = partial(member_invariant, checks=("member/duties",))
of_errors = partial(member_invariant, checks=("member/errors",))

RETRIED = frozenset(
    {group.Error.COORDINATOR_LOAD_IN_PROGRESS, group.Error.COORDINATOR_NOT_AVAILABLE, group.Error.NOT_COORDINATOR}
)


# The duties in a round


def _cannot_lead(step: MemberStep) -> bool:
    """May the leader's assignor fail? One of the user's own may, and the draft says nothing about it."""
    joined = step.received.joined
    return joined is not None and joined.leader == joined.member and joined.protocol == ops.INCREMENTAL


@impact(
    "A consumer that joined does not ask for its assignment", "stuck group", "answers", "stuck-group",
    links=("KIP-814",),
)  # fmt: skip
@of_duties("member/syncs", "grp-67", applies_to=on(ANSWERED))
def syncs(history: History) -> Iterator[Violation]:
    """After a successful JoinGroup a consumer sends one SyncGroup, and at no other time."""
    for step in member_steps(history):
        sent = [action for action in step.actions if isinstance(action, group.Sync)]
        due = step.before.round is Round.JOINING and step.received.round is Round.SYNCING
        answer = step.event.answer if isinstance(step.event, ops.AnswerReceived) else None
        joined = isinstance(answer, group.Joined) and answer.error is group.Error.NONE and step.before.join is not None
        if sent and not joined:
            yield violation(step, f"it sends SyncGroup after {step.name}", "no SyncGroup", "undue", step.name)
        elif len(sent) > 1:
            yield violation(step, f"it sends {len(sent)} SyncGroup requests", "one SyncGroup", "several")
        elif due and not sent and not step.received.loose and not _cannot_lead(step):
            role = "leader" if isinstance(answer, group.Joined) and answer.leader == answer.member else "follower"
            yield violation(step, "it joined, and sends no SyncGroup", "one SyncGroup", "none", role)


@impact(
    "The leader omits members from its assignment, or assigns to strangers", "stuck group", "answers",
    "unread-partition", "stuck-group", links=("KIP-814",),
)  # fmt: skip
@of_duties("member/leads", "grp-67", applies_to=on(ANSWERED))
def leads(history: History) -> Iterator[Violation]:
    """The leader assigns to every member, and to no others, unless it has to skip that; followers assign nothing."""
    for step in member_steps(history):
        joined = step.event.answer if isinstance(step.event, ops.AnswerReceived) else None
        if not isinstance(joined, group.Joined) or joined.error is not group.Error.NONE:
            continue
        leader = joined.leader == joined.member and not joined.skip_assignment
        role = "the leader" if leader else "to skip the assignment" if joined.leader == joined.member else "no leader"
        wanted = {id for id, _, _ in joined.members} if leader else set[str]()
        for action in step.actions:
            if not isinstance(action, group.Sync):
                continue
            named = [id for id, _ in action.assignments]
            if any(wrong := shares(named, wanted)):
                what = "too few" if wrong.missing else "too many"
                if leader and wrong.missing == (joined.member,):
                    what = "not to itself"
                why = f"it is {role}, and assigns to {', '.join(named) or 'no member'}"
                yield violation(step, why, ", ".join(sorted(wanted)) or "no assignments", role, what)


# Heartbeats


@impact(
    "A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group",
    links=("KAFKA-10134", "KIP-62"),
)  # fmt: skip
@of_duties("member/beats", "grp-69", applies_to=on("member-elapse"))
def beats(history: History) -> Iterator[Violation]:
    """In a stable group a consumer sends a heartbeat whenever the heartbeat interval has passed."""
    for step in member_steps(history):
        view = step.before
        stable = view.round is Round.STABLE and view.beat is None and view.waits is False and not view.loose
        if not isinstance(step.event, Elapse) or not stable or step.event.ms < HEARTBEAT_MS:
            continue
        now_ms = step.received.now_ms
        soon = now_ms - max(view.alive_ms, 0) < SESSION_MS and now_ms - view.polled_ms < POLL_MS
        soon = soon and view.taking_ended != SILENTLY  # It may not have adopted it.
        if soon and not any(isinstance(action, group.Heartbeat) for action in step.actions):
            adopted = "before the assignment is adopted" if view.taking is not None else "assigned"
            yield violation(step, f"{step.event.ms} ms passed without a heartbeat", "a heartbeat", "none", adopted)


@impact("A consumer sends more heartbeats than its interval allows", "trivia", "gating", "needless-move")
@of_duties("member/beats-in-time", "grp-89", applies_to=every, needs=on("member-poll"))
def beats_in_time(history: History) -> Iterator[Violation]:
    """Between two heartbeats, of which the first did not fail, at least the heartbeat interval passes."""
    for step in member_steps(history):
        sent = sum(isinstance(action, group.Heartbeat) for action in step.actions)
        before_ms = step.received.beat_from_ms
        if not sent or step.received.loose or step.received.waits is not False:
            continue
        span_ms = step.event.ms if isinstance(step.event, Elapse) else 0
        if (sent - 1) * HEARTBEAT_MS > span_ms:
            yield violation(step, f"it sends {sent} heartbeats within {span_ms} ms", "one", "several")
        elif before_ms is not None and step.received.now_ms - before_ms < HEARTBEAT_MS:
            passed = step.received.now_ms - before_ms
            why = f"it sends a heartbeat, and at most {passed} ms passed since the last one"
            yield violation(step, why, f"{HEARTBEAT_MS} ms between heartbeats", "too early")


# Leaving


@impact(
    "A member leaves its group without a request, or a static member with one", "stuck group", "gating",
    "unread-partition", "needless-move", links=("KAFKA-20985", "KIP-345"),
)  # fmt: skip
@of_duties("member/leaves", "grp-69", applies_to=every, needs=on("member-poll"))
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that closes sends LeaveGroup; none sends it amid its membership, and a static one never."""
    for step in member_steps(history):
        view, sent = step.before, [action for action in step.actions if isinstance(action, group.Leave)]
        static = step.rules.static and view.is_static
        if sent and static:
            yield violation(step, "a static member sends LeaveGroup", "no LeaveGroup", "static", step.name)
        elif sent and not isinstance(step.event, ops.Close | ops.Unsubscribe):
            if step.received.now_ms - view.polled_ms < POLL_MS:
                why = f"it sends LeaveGroup after {step.name}, and max.poll.interval.ms has not passed"
                yield violation(step, why, "no LeaveGroup", "undue", step.name)
        elif not sent and isinstance(step.event, ops.Close) and _leaves_with_request(step):
            yield violation(step, "a member of the group closes without LeaveGroup", "a LeaveGroup", "none")


@impact(
    "A consumer that unsubscribes stays a member until its session ends", "stuck group", "gating", "unread-partition"
)
@of_duties("member/leaves-when-unsubscribed", "grp-80", grade=Grade.SHOULD, applies_to=every, needs=on("member-poll"))
def leaves_when_unsubscribed(history: History) -> Iterator[Violation]:
    """A dynamic member that unsubscribes sends LeaveGroup."""
    for step in member_steps(history):
        sent = any(isinstance(action, group.Leave) for action in step.actions)
        if not sent and isinstance(step.event, ops.Unsubscribe) and _leaves_with_request(step):
            yield violation(step, "a member of the group unsubscribes without LeaveGroup", "a LeaveGroup", "none")


def _leaves_with_request(step: MemberStep) -> bool:
    view = step.before
    if view.opened is None or (step.rules.static and view.is_static):
        return False
    return view.is_out is False and view.round is Round.STABLE and view.waits is False


@impact(
    "A consumer that is not polled any more keeps its partitions", "stuck group", "gating", "unread-partition",
    "stuck-group", links=("KIP-62",),
)  # fmt: skip
@of_duties("member/leaves-unpolled", "grp-78", applies_to=on("member-elapse"))
def leaves_unpolled(history: History) -> Iterator[Violation]:
    """A member that is not polled for max.poll.interval.ms leaves; a static one stops sending heartbeats."""
    for step in member_steps(history):
        view, received = step.before, step.received
        if not isinstance(step.event, Elapse) or view.round is not Round.STABLE or view.waits is not False:
            continue
        # Only while the coordinator answers, else the consumer is looking for it.
        unpolled_ms = received.now_ms - view.begun_ms
        if received.unanswered or unpolled_ms - step.event.ms < POLL_MS:
            continue
        static = step.rules.static and view.is_static
        if any(isinstance(action, group.Heartbeat) for action in step.actions):
            why = "it is not polled, and sends heartbeats"
            yield violation(step, why, "no heartbeat", "beats", "static" if static else "dynamic")
        # One interval is left for a consumer that looks at the time when a heartbeat is due.
        elif unpolled_ms >= POLL_MS + HEARTBEAT_MS and not static and view.beat is None:
            why = f"it is not polled for {unpolled_ms} ms, and did not leave"
            if not any(isinstance(action, group.Leave) for action in step.actions):
                yield violation(step, why, "a LeaveGroup", "stays")


# Commits


@impact(
    "A commit is reported as done or failed although that is not known", "double processing", "durability", "wrong-data"
)
@of_errors("member/commit-is-known", "grp-68", applies_to=every, needs=on("member-poll"))
def commit_is_known(history: History) -> Iterator[Violation]:
    """A commit is done only if the coordinator says so, and failed only if that is known: a lost answer is neither."""
    for step in member_steps(history):
        answer = step.event.answer if isinstance(step.event, ops.AnswerReceived) else None
        done = answer.error if isinstance(answer, group.Committed) and step.before.commit is not None else None
        for action in step.actions:
            if not isinstance(action, ops.CommitEnded):
                continue
            error = action.exception or action.error
            if not step.received.commits:
                yield violation(step, f"a commit ended with {action.error}, and none is pending", "nothing", "unasked")
            elif action.error == group.Error.NONE.name and done is not group.Error.NONE:
                yield violation(step, f"a commit ended as done after {step.name}", "not done", "done", step.name)
            elif isinstance(step.event, ops.Disconnected):
                why = f"a commit without an answer ended with {action.error}"
                yield violation(step, why, "sent again", "lost", error)
            elif done in RETRIED:
                why = f"a commit ended with {action.error} after {step.name}"
                yield violation(step, why, "sent again", "passing error", step.name, error)
            elif done is None and action.error not in (COMMIT_FAILED, REBALANCING):
                why = f"a commit ended with {action.error} after {step.name}"
                yield violation(step, why, "not yet", "unanswered", step.name, error)
            elif done is group.Error.NONE and action.error != group.Error.NONE.name:
                yield violation(step, f"a commit was done, and ended with {action.error}", "done", "failed", error)


@impact("A commit never ends", "crash or hang", "durability", "wrong-data")
@of_errors("member/commit-ends", "grp-68", applies_to=every, needs=on("member-poll"))
def commit_ends(history: History) -> Iterator[Violation]:
    """A commit's end is reported to the user; after a lost answer or retriable error it is sent again."""
    for step in member_steps(history):
        ended = any(isinstance(action, ops.CommitEnded) for action in step.actions)
        sent = any(isinstance(action, group.Commit) for action in step.actions)
        view = step.before
        committed = isinstance(step.event, ops.AnswerReceived) and isinstance(step.event.answer, group.Committed)
        if committed and view.commit is not None:
            assert isinstance(step.event, ops.AnswerReceived)
            if not ended and step.event.answer.error not in RETRIED:
                why = f"after {step.name} the commit does not end"
                yield violation(step, why, "the end of the commit", "untold", step.name)
        elif isinstance(step.event, ops.CommitOffsets) and view.opened is not None and not view.commits:
            if not ended and not sent and view.waits is False and not view.loose:
                why = "a commit was neither sent nor ended"
                yield violation(step, why, "an OffsetCommit", "unsent", view.round.value)
        elif isinstance(step.event, Elapse) and view.waits and view.commits and view.commit is None:
            over = step.received.waits is False
            if over and not ended and not sent and not step.received.loose:
                yield violation(step, "the back-off ended, and the commit was not sent", "an OffsetCommit", "forgotten")
