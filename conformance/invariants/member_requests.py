"""Invariants of a consumer's requests: member id and generation, subscriptions, when it joins, syncs, sends heartbeats
and leaves, how it handles errors, and how commits end.
"""

from collections.abc import Iterator

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.member import breach, every, joins, on
from kipcheck.conformance.invariants.member_trace import Moment, moments
from kipcheck.conformance.invariants.member_view import NOBODY, Round, Who
from kipcheck.conformance.invariants.registry import invariant
from kipcheck.conformance.models.assignment import listed
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
from kipcheck.conformance.models.member.client import HEARTBEAT_MS, INCREMENTAL, POLL_MS, SESSION_MS, Elapse, Told
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

TOLD_BY = "member-told"
RETRIED = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})


def news(moment: Moment) -> str:
    """The event in messages and shapes: the answer's type and error, or the verb of the step."""
    if isinstance(moment.event, Told):
        return f"{type(moment.event.answer).__name__.lower()} {moment.event.answer.error.name}"
    return moment.op.step.verb.removeprefix("member-")


# Member id and generation


@invariant("member/speaks-as-it-was-told", "grp-64", role=Role.MEMBER, concerns=every)
def speaks_as_it_was_told(history: History) -> Iterator[Violation]:
    """Each request carries the member id and generation of the last response, unless a later error reset them."""
    reset_by = "the beginning"
    for each in moments(history):
        if each.met.who != each.before.who:
            reset_by = news(each)
        who = each.met.who
        if who is None:
            continue
        for action in each.actions:
            match action:
                case Join(member=member):
                    wrong, wanted = member != who.member, Who(who.member)
                case Sync(member=member, generation=generation):
                    wrong, wanted = (member, generation) != who, who
                case Heartbeat(member=member, generation=generation):
                    wrong, wanted = (member, generation) not in (who, each.before.who), who
                case Commit(member=member, generation=generation):
                    wanted = who if each.met.topics else NOBODY
                    wrong = (member, generation) not in (wanted, each.before.who)
                case Leave(members=members):
                    wanted = each.before.who or who
                    wrong = each.before.who is not None and [id for id, _ in members] != [wanted.member]
                case _:
                    continue
            if wrong:
                kind = type(action).__name__
                why = f"{kind} does not carry {told(wanted)}, which is right since {reset_by}"
                yield breach(each, why, told(wanted), kind, reset_by)


def told(who: Who) -> str:
    id = f"member id {who.member}" if who.member else "an empty member id"
    return id if who.generation == NO_GENERATION else f"{id} and generation {who.generation}"


@invariant("member/tells-what-it-holds", "grp-62", "429-17", role=Role.MEMBER, concerns=on("member-poll"))
def tells_what_it_holds(history: History) -> Iterator[Violation]:
    """A subscription names the subscribed topics, the owned partitions and the generation in which they are owned."""
    for each in moments(history):
        for action in each.actions:
            if not isinstance(action, Join):
                continue
            for name, blob in action.protocols:
                if isinstance(blob, Subscription):
                    yield from _untrue(each, name, blob)


def _untrue(moment: Moment, assignor: str, told: Subscription) -> Iterator[Violation]:
    who, owned = moment.met.who, moment.after.owned
    if {*told.topics} != {*moment.met.topics}:
        why = f"its subscription for {assignor} names {', '.join(told.topics)}"
        yield breach(moment, why, ", ".join(moment.met.topics), "topics")
    if {*told.owned} != (owned if told.version >= 1 else set()):
        why = f"it owns {listed(owned)}, and its subscription names {listed(told.owned)} in version {told.version}"
        yield breach(moment, why, listed(owned) if told.version else "nothing in version 0", "owned")
    if told.version >= 2 and who is not None and told.generation != who.generation:
        why = f"its generation is {who.generation}, and its subscription names {told.generation}"
        yield breach(moment, why, f"generation {who.generation}", "generation")


# Errors


@invariant("member/raises-what-is-fatal", "grp-65", role=Role.MEMBER, concerns=every)
def raises_what_is_fatal(history: History) -> Iterator[Violation]:
    """The next poll raises an error that the consumer cannot recover from, once; it raises no other error."""
    for each in moments(history):
        if not isinstance(each.event, Poll) or each.before.opened is None:
            continue
        raised = [action.error for action in each.actions if isinstance(action, Raised)]
        # Kafka's consumer raises an error if it has no subscription, which no requirement asks for.
        unsubscribed = ILLEGAL_STATE if raised else ""
        wanted = each.met.raises if each.met.topics else unsubscribed
        unsure = raised == [ILLEGAL_STATE] and (
            (each.before.waits is None and each.before.taking == EMPTY) or _takes_what_it_did_not_offer(each)
        )
        if raised != ([wanted] if wanted else []) and not unsure:
            why = f"the poll raised {' and '.join(raised) or 'nothing'}"
            yield breach(each, why, f"raised {wanted}" if wanted else "nothing raised", wanted or "nothing", *raised)


def _takes_what_it_did_not_offer(moment: Moment) -> bool:
    """Was an assignor chosen that the consumer lacks? Then it may raise (``ConsumerCoordinator.onJoinComplete``)."""
    joined, opened = moment.before.joined, moment.before.opened
    if moment.before.taking is None or joined is None or opened is None:
        return False
    return joined.protocol not in opened.assignors


def _cannot_lead(moment: Moment) -> bool:
    """May the leader find no assignment for its group?"""
    joined, opened = moment.met.joined, moment.met.opened
    if joined is None or opened is None or joined.leader != joined.member or moment.rules.draft:
        return False
    ids = [id for id, _, _ in joined.members]
    if joined.member not in ids or len(ids) > len(set(ids)):
        return True  # no coordinator sends such a list
    strict = joined.protocol == INCREMENTAL or moment.rules.validates_own
    return joined.protocol not in opened.assignors or (strict and moment.cooperative)


# When it joins


@invariant("member/joins-when-due", "grp-66", "429-03", role=Role.MEMBER, concerns=every)
def joins_when_due(history: History) -> Iterator[Violation]:
    """A poll joins if and only if a rebalance, an error, a lost answer or a new subscription requires it."""
    since = "the beginning"
    for each in moments(history):
        if each.met.due and not each.before.due:
            since = news(each)
        if not isinstance(each.event, Poll) or each.before.opened is None:
            if joins(each):
                yield breach(each, "it joins while the user does not poll", "no JoinGroup", "outside a poll")
            continue
        if any(isinstance(action, Metric) for action in each.actions):
            continue  # The back-off of the draft's error comes first.
        if each.met.owes_join is not None and each.met.owes_join is not joins(each) and not each.met.waits:
            if joins(each):
                yield breach(each, "it joins without a reason to", "no JoinGroup", "undue")
            else:
                yield breach(each, f"a join is due since {since}, and none is sent", "a JoinGroup", "none", since)


@invariant("member/backs-off", "grp-66", "429-03", role=Role.MEMBER, concerns=every)
def backs_off(history: History) -> Iterator[Violation]:
    """After a retriable error, a lost answer or the draft's error no JoinGroup is sent before the back-off ends."""
    for each in moments(history):
        counted = each.before.waits is False and each.after.waits is True and isinstance(each.event, Poll)
        if (each.met.waits or counted) and joins(each):
            yield breach(each, "it joins before its back-off ends", "no JoinGroup", "joins", "counted" * counted)


# The duties in a round


@invariant("member/syncs", "grp-67", role=Role.MEMBER, concerns=on(TOLD_BY))
def syncs(history: History) -> Iterator[Violation]:
    """After a successful JoinGroup a consumer sends one SyncGroup, and at no other time."""
    for each in moments(history):
        sent = [action for action in each.actions if isinstance(action, Sync)]
        due = each.before.round is Round.JOINING and each.met.round is Round.SYNCING
        if sent and not due:
            yield breach(each, f"it sends SyncGroup after {news(each)}", "no SyncGroup", "undue")
        elif due and len(sent) != 1 and not (not sent and _cannot_lead(each)):
            why = f"it joined, and sends {len(sent)} SyncGroup requests"
            yield breach(each, why, "one SyncGroup", "none" * (not sent))


@invariant("member/leads", "grp-67", role=Role.MEMBER, concerns=on(TOLD_BY))
def leads(history: History) -> Iterator[Violation]:
    """The leader assigns to every member, and to no others, unless it has to skip that; followers assign nothing."""
    for each in moments(history):
        joined = each.met.joined
        if joined is None:
            continue
        for action in each.actions:
            if isinstance(action, Sync):
                leader = joined.leader == joined.member and not joined.skip_assignment
                wanted = {id for id, _, _ in joined.members} if leader else set()
                named = [id for id, _ in action.assignments]
                if sorted(named) != sorted(wanted):
                    who = "the leader" if leader else "no leader" if joined.leader != joined.member else "told to skip"
                    what = {"told to skip": "to skip the assignment", "no leader": "not the leader"}.get(who, who)
                    why = f"it is {what}, and assigns to {', '.join(named) or 'no member'}"
                    yield breach(each, why, ", ".join(sorted(wanted)) or "no assignments", who)


# Heartbeats, and how it leaves


@invariant("member/beats", "grp-69", role=Role.MEMBER, concerns=on("member-elapse"))
def beats(history: History) -> Iterator[Violation]:
    """In a stable group a consumer sends a heartbeat whenever the heartbeat interval has passed."""
    for each in moments(history):
        view = each.before
        stable = view.round is Round.STABLE and view.beat is None and view.waits is False
        if not isinstance(each.event, Elapse) or not stable or each.event.ms < HEARTBEAT_MS:
            continue
        soon = each.met.now_ms - max(view.alive_ms, 0) < SESSION_MS and each.met.now_ms - view.polled_ms < POLL_MS
        if soon and not any(isinstance(action, Heartbeat) for action in each.actions):
            yield breach(each, f"{each.event.ms} ms passed without a heartbeat", "a heartbeat", "none")


@invariant("member/leaves", "grp-69", role=Role.MEMBER, concerns=every)
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that closes, unsubscribes or is not polled for too long sends LeaveGroup, a static one never."""
    for each in moments(history):
        view, sent = each.before, [action for action in each.actions if isinstance(action, Leave)]
        static = each.rules.static and view.opened is not None and view.opened.instance is not None
        if sent and static:
            yield breach(each, "a static member sends LeaveGroup", "no LeaveGroup", "static")
        elif sent and not isinstance(each.event, Close | Unsubscribe | Elapse):
            yield breach(each, f"it sends LeaveGroup after {news(each)}", "no LeaveGroup", "undue")
        elif not sent and not static and view.opened is not None and _is_leaving(each):
            yield breach(each, "a member of the group leaves without LeaveGroup", "a LeaveGroup", "none")


def _is_leaving(moment: Moment) -> bool:
    view = moment.before
    if view.who is None or view.who.is_out or view.round is not Round.STABLE or view.waits is not False:
        return False
    if isinstance(moment.event, Elapse):
        # Only while the coordinator answers; else the consumer is looking for it.
        answered = moment.met.now_ms - view.alive_ms < SESSION_MS
        return moment.met.now_ms - view.polled_ms >= POLL_MS and answered
    return isinstance(moment.event, Close | Unsubscribe)


# Commits


@invariant("member/commit-is-known", "grp-68", role=Role.MEMBER, concerns=every)
def commit_is_known(history: History) -> Iterator[Violation]:
    """A commit is done only if the coordinator says so, and failed only if that is known: a lost answer is neither."""
    for each in moments(history):
        answer = each.event.answer if isinstance(each.event, Told) else None
        done = answer.error if isinstance(answer, Committed) and each.before.commit is not None else None
        for action in each.actions:
            if not isinstance(action, CommitEnded):
                continue
            if not each.met.commits:
                yield breach(each, f"a commit ended with {action.error}, and none is pending", "nothing", "unasked")
            elif action.error == Error.NONE.name and done is not Error.NONE:
                yield breach(each, f"a commit ended as done after {news(each)}", "not done", "done")
            elif isinstance(each.event, Disconnected):
                yield breach(each, f"a commit without an answer ended with {action.error}", "sent again", "lost")
            elif done in RETRIED:
                why = f"a commit ended with {action.error} after {news(each)}"
                yield breach(each, why, "sent again", "passing error")
            elif done is None and action.error not in (COMMIT_FAILED, REBALANCING):
                yield breach(each, f"a commit ended with {action.error} after {news(each)}", "not yet", "unanswered")
            elif done is Error.NONE and action.error != Error.NONE.name:
                yield breach(each, f"a commit was done, and ended with {action.error}", "done", "failed")


@invariant("member/commit-ends", "grp-68", role=Role.MEMBER, concerns=every)
def commit_ends(history: History) -> Iterator[Violation]:
    """A commit's end is reported to the user; after a lost answer or retriable error it is sent again."""
    for each in moments(history):
        ended = any(isinstance(action, CommitEnded) for action in each.actions)
        sent = any(isinstance(action, Commit) for action in each.actions)
        view = each.before
        if isinstance(each.event, Told) and isinstance(each.event.answer, Committed) and view.commit is not None:
            if not ended and each.event.answer.error not in RETRIED:
                why = f"after {news(each)} the commit does not end"
                yield breach(each, why, "the end of the commit", "untold")
        elif isinstance(each.event, CommitOffsets) and view.opened is not None and not view.commits:
            if not ended and not sent and view.waits is False:
                yield breach(each, "a commit was neither sent nor ended", "an OffsetCommit", "unsent")
        elif isinstance(each.event, Elapse) and view.waits and view.commits and view.commit is None:
            over = each.met.waits is False
            if over and not ended and not sent:
                yield breach(each, "the back-off ended, and the commit was not sent", "an OffsetCommit", "forgotten")
