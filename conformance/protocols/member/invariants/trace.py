"""Reconstructs what a consumer knows at each step of a conversation: id, generation, assignment, pending requests.

It reads the inputs and the observed actions alone, and no machine's answers. Where the consumer did something wrong the
view follows it, so that one defect is one violation, and what comes later is judged by what the consumer knows then.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Refused
from kipcheck.conformance.protocols.assignment.model.membership import Assigned
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.group.request_rules import CONSUMER, NO_IDENTITY, Identity
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.invariants.view import (
    LATEST_MS,
    Owned,
    Round,
    Sent,
    View,
    is_cooperative,
    is_incompatible,
)
from kipcheck.conformance.protocols.member.model.client import POLL_MS, SESSION_MS
from kipcheck.conformance.protocols.member.model.messages import UserEvent
from kipcheck.conformance.protocols.member.model.rules import Rules, rules_of

SEARCHED: Final = frozenset({group.Error.COORDINATOR_NOT_AVAILABLE, group.Error.NOT_COORDINATOR})
REQUEST_MS: Final = 30_000
"""request.timeout.ms: a client may give up a request that is this old."""
JOIN_MS: Final = POLL_MS + 5_000
"""The same for a JoinGroup, which the coordinator parks for the rebalance timeout."""
SILENTLY: Final = "it was adopted without a callback"
Actions: TypeAlias = tuple[ops.Request | UserEvent, ...]


def name_of(event: ops.Event, verb: str) -> str:
    """The event in messages and shapes: the answer's type and error, or the verb of the step."""
    if isinstance(event, ops.AnswerReceived):
        return f"{type(event.answer).__name__.lower()} {event.answer.error.name}"
    return verb.removeprefix("member-")


@dataclass(frozen=True, slots=True)
class MemberStep(AnsweredStep[ops.Event, Actions, View]):
    """A step that was answered, with the consumer's view before and after it."""

    received: View
    """The view after the event, before the consumer's own actions."""
    after: View
    rules: Rules

    def known_after(self) -> View:
        return self.after

    @property
    def event(self) -> ops.Event:
        """What reached the consumer: an answer, or an order of its user."""
        return self.request

    @property
    def actions(self) -> Actions:
        """What the consumer did."""
        return self.answer

    @property
    def name(self) -> str:
        return name_of(self.event, self.verb)

    @property
    def cooperative(self) -> bool:
        return is_cooperative(self.rules, self.before.opened)

    @property
    def polls(self) -> bool:
        """Is it a poll of a consumer that exists?"""
        return isinstance(self.event, ops.Poll) and self.before.opened is not None

    @property
    def assigned(self) -> Owned | None:
        """The partitions that a poll has to adopt; None if there is no assignment, or none that can be adopted."""
        view = self.before
        if not isinstance(self.event, ops.Poll) or not view.can_take or not isinstance(view.taking, Assigned):
            return None
        return None if is_incompatible(self.rules, view.taking) or not view.fits else frozenset(view.taking.partitions)

    @property
    def adopts_in_silence(self) -> bool:
        """Does a poll adopt an assignment with nothing new, without a callback?"""
        quiet = not any(isinstance(each, group.Join | ops.Raised | ops.Given) for each in self.actions)
        return self.assigned is not None and quiet and self.assigned <= self.before.owned

    @property
    def parts(self) -> tuple[Actions, Actions]:
        """The actions up to the assigned callback of an adopted assignment, and those after it."""
        ends = [k for k, each in enumerate(self.actions, 1) if isinstance(each, ops.Given)]
        cut = ends[0] if ends and self.before.taking is not None else 0
        return self.actions[:cut], self.actions[cut:]


@cached_on_history
def member_steps(history: History) -> tuple[MemberStep, ...]:
    """The steps up to the first one without an answer: after that the consumer's state is not known."""
    rules = rules_of(edition(history.case.edition))
    return () if rules is None else tuple(answered_steps(history, View(), partial(_step, rules)))


def _step(rules: Rules, op: Op, view: View) -> MemberStep:
    event, actions = ops.OPERATIONS.event_of(op.step), tuple(map(ops.ACTIONS.from_json, payload(op).get("actions", ())))
    updater = ViewUpdater(rules, view, name_of(event, op.step.verb))
    received = updater.receive(event, isinstance(op.observation, Refused))
    after = updater.after(event, actions)
    step = MemberStep(op, event, actions, view, received, after, rules)
    if step.adopts_in_silence:
        after.taking, after.taking_ended = None, SILENTLY
    return step


class ViewUpdater:
    """Applies one event, and the actions that answered it, to a copy of the view."""

    def __init__(self, rules: Rules, view: View, name: str) -> None:
        self.rules = rules
        self.view = copy(view)
        self.name = name
        self.due_before: tuple[bool | None, str] | None = None
        """Whether a join was due before a poll that has to revoke partitions."""

    def put(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self.view, name, value)

    def receive(self, event: ops.Event, refused: bool) -> View:
        if isinstance(event, Elapse):
            self.put(now_ms=self.view.now_ms + event.ms)
        if isinstance(event, ops.Open):
            self.view = View(self.view.now_ms, None if refused else event)
        elif self.view.opened is not None:
            if not isinstance(event, ops.Poll):
                self.put(later=True)
            self.handle(event)
        return copy(self.view)

    def after(self, event: ops.Event, actions: Actions) -> View:
        if self.due_before is not None and not any(isinstance(each, ops.Given | ops.Revoked) for each in actions):
            due, since = self.due_before  # It did not adopt the assignment, so it owes no join for that either.
            self.put(due=due, due_since=since, revoked=False)
        started = self.view.now_ms - (event.ms if isinstance(event, Elapse) else 0)
        for each in actions:
            self.act(each, started)
        if isinstance(event, ops.AnswerReceived) and self.view.round is Round.SYNCING and self.view.sync is None:
            # The leader found no assignment: what follows is up to its assignor.
            self.put(round=Round.FAILED, may_raise=True)
        if isinstance(event, ops.Poll):
            self.put(polled_ms=self.view.now_ms, begun_ms=self.view.now_ms)
            if self.view.waits is False:
                self.put(raises="", may_raise=False)
        elif isinstance(event, ops.Close):
            self.put(opened=None)
        if isinstance(event, ops.Unsubscribe) and self.view.owned:  # Whatever it called, it is no owner any more.
            self.put(owned=frozenset(), moved_by=self.name)
        return self.view

    def handle(self, event: ops.Event) -> None:
        view = self.view
        match event:
            case ops.Subscribe(topics):
                self.put(topics=tuple(sorted({*topics})))
            case ops.Unsubscribe() | ops.Close():
                self.leave()
            case ops.Poll() if view.taking is not None:
                self.take(view.taking)
            case ops.CommitOffsets(offsets) if not view.commits:
                self.put(commits=True, offsets=offsets)
            case ops.Metadata():
                self.put(due=view.due or None, cluster_changed=True)
            case ops.Disconnected():
                self.disconnected()
            case ops.AnswerReceived(group.Joined() as answer) if (sent := view.join) is not None:
                self.put(join=None, loose=view.loose or self.is_late(sent))
                self.join_answered(answer, sent)
            case ops.AnswerReceived(group.Synced() as answer) if (sent := view.sync) is not None:
                self.put(sync=None, loose=view.loose or self.is_late(sent))
                self.sync_answered(answer, sent)
            case ops.AnswerReceived(group.Beat(error=error)) if (sent := view.beat) is not None:
                self.put(beat=None, loose=view.loose or self.is_late(sent))
                self.heartbeat_answered(error, sent)
            case ops.AnswerReceived(group.Committed(error=error)) if (sent := view.commit) is not None:
                self.put(commit=None, loose=view.loose or self.is_late(sent))
                self.commit_answered(error, sent)
            case Elapse():
                self.elapsed()

    def is_late(self, sent: Sent) -> bool:
        """May the client have given up the request?"""
        limit = JOIN_MS if isinstance(sent.request, group.Join) else REQUEST_MS
        return self.view.now_ms - sent.sent_ms >= limit

    # Answers

    def join_due(self) -> None:
        if self.view.due is not True:
            self.put(due=True, due_since=self.name)

    def join_answered(self, answer: group.Joined, sent: Sent) -> None:
        joining = self.view.round is Round.JOINING and not sent.left  # Else it left or was removed meanwhile.
        self.join_due()
        self.put(round=Round.FAILED if joining else self.view.round)
        match answer.error:
            case group.Error.NONE if not joining:
                pass
            case group.Error.NONE if answer.protocol_type not in (None, CONSUMER):
                self.raise_(group.Error.INCONSISTENT_GROUP_PROTOCOL)
            case group.Error.NONE:
                self.joined(answer)
            case group.Error.MEMBER_ID_REQUIRED:
                self.identify(Identity(answer.member), NO_IDENTITY if sent.left else None)
            case group.Error.UNKNOWN_MEMBER_ID:
                self.expelled(sent, answer.error)
            case group.Error.COORDINATOR_LOAD_IN_PROGRESS:
                self.wait(searches=False)
            case group.Error.REBALANCE_IN_PROGRESS:
                pass
            case error:
                self.failed(error, sent)

    def joined(self, answer: group.Joined) -> None:
        self.identify(Identity(answer.member, answer.generation))
        leads, now_ms = answer.leader == answer.member, self.view.now_ms
        changed = self.view.cluster_changed and not leads
        self.put(round=Round.SYNCING, joined=answer, cluster_changed=changed)
        self.put(alive_ms=now_ms, begun_ms=now_ms, beat_from_ms=None, unanswered=False)
        offered = self.view.opened.assignors if self.view.opened is not None else ()
        ids = [id for id, _, _ in answer.members]
        listed = len(ids) == len(set(ids)) and answer.member in ids
        if not self.rules.draft and (answer.protocol not in offered or (leads and not listed)):
            # No coordinator chooses an assignor that was not offered, or lists a leader's group like that.
            self.put(loose=True)

    def sync_answered(self, answer: group.Synced, sent: Sent) -> None:
        syncing = self.view.round is Round.SYNCING and not sent.left
        self.join_due()
        self.put(round=Round.FAILED if syncing else self.view.round)
        chosen = self.view.protocol
        foreign = answer.protocol_type not in (None, CONSUMER) or answer.protocol not in (None, chosen)
        match answer.error:
            case group.Error.NONE if not syncing:
                pass
            case group.Error.NONE if foreign:
                self.raise_(group.Error.INCONSISTENT_GROUP_PROTOCOL)
            case group.Error.NONE:
                due = None if self.view.cluster_changed else False
                self.put(round=Round.STABLE, taking=answer.assignment, later=False, due=due)
                self.put(alive_ms=self.view.now_ms, begun_ms=self.view.now_ms)
            case group.Error.UNKNOWN_MEMBER_ID | group.Error.ILLEGAL_GENERATION:
                self.expelled(sent, answer.error)
            case group.Error.REBALANCE_IN_PROGRESS:
                pass
            case error:
                self.failed(error, sent)

    def heartbeat_answered(self, error: group.Error, sent: Sent) -> None:
        match error:
            case group.Error.NONE:
                self.put(alive_ms=self.view.now_ms)
            case group.Error.REBALANCE_IN_PROGRESS:
                self.put(alive_ms=self.view.now_ms)
                if self.view.round is Round.STABLE and not sent.left:
                    self.join_due()
                elif sent.left:
                    self.put(due=self.view.due or None)
            case group.Error.UNKNOWN_MEMBER_ID | group.Error.ILLEGAL_GENERATION:
                self.expelled(sent, error)
            case group.Error.FENCED_INSTANCE_ID:
                self.failed(error, sent)
                if self.view.is_current(sent) and not sent.left:
                    # Whether it may join again, and as which member, no document says.
                    self.put(round=Round.FAILED, due=None, or_else=self.view.or_else | {NO_IDENTITY})
                else:
                    self.put(loose=True)
            case _ if error in SEARCHED:
                self.wait()
        if error not in (group.Error.NONE, group.Error.REBALANCE_IN_PROGRESS):
            self.put(beat_from_ms=None)  # A failed heartbeat may be repeated earlier.

    def commit_answered(self, error: group.Error, sent: Sent) -> None:
        match error:
            case group.Error.REBALANCE_IN_PROGRESS:
                self.join_due()
            case group.Error.UNKNOWN_MEMBER_ID | group.Error.ILLEGAL_GENERATION:
                self.expelled(sent, error)
            case group.Error.FENCED_INSTANCE_ID:
                self.put(due=self.view.due or None, or_else=self.view.or_else | {NO_IDENTITY}, may_raise=True)
            case group.Error.COORDINATOR_LOAD_IN_PROGRESS:
                self.wait(searches=False)
            case _ if error in SEARCHED:
                self.wait()

    def failed(self, error: group.Error, sent: Sent) -> None:
        """An error that makes the consumer look for the coordinator, or that the next poll raises."""
        if error in SEARCHED:
            self.wait()
        elif sent.left or not self.view.is_current(sent):
            self.put(may_raise=True, due=self.view.due or None)
        else:
            self.raise_(error)

    def raise_(self, error: group.Error) -> None:
        """After a fatal error nothing but the exception is owed."""
        self.put(raises=error.name, raises_since=self.name, due=None, later=False)

    # Out of the group

    def identify(self, identity: Identity, *others: Identity | None) -> None:
        found = frozenset(each for each in others if each is not None)
        if (identity, found) != (self.view.who, self.view.or_else):
            self.put(who=identity, or_else=found - {identity}, who_since=self.name)

    def expelled(self, sent: Sent, error: group.Error) -> None:
        """ILLEGAL_GENERATION leaves the member id open: it says nothing about the id."""
        known = Identity(self.view.who.member)
        after = (NO_IDENTITY, None) if error is group.Error.UNKNOWN_MEMBER_ID else (known, NO_IDENTITY)
        if self.view.is_current(sent) and not sent.left:
            self.identify(*after)
            self.join_due()
            self.put(round=Round.OUT, beat_from_ms=None)
        elif self.view.round is not Round.OUT or error is group.Error.UNKNOWN_MEMBER_ID:
            self.put(loose=True)  # It concerns what the consumer was before: no document says what to do.

    def leave(self) -> None:
        """Static members stay known by their id, so it may keep that one."""
        view = self.view
        self.identify(NO_IDENTITY, Identity(view.who.member) if view.is_static else None)
        for kind in ("join", "sync", "beat", "commit"):
            sent: Sent | None = getattr(view, kind)
            if sent is not None:
                self.put(**{kind: sent._replace(left=True)})
        self.join_due()
        self.put(topics=(), taking=None, taking_ended="it left", beat_from_ms=None)
        # What it had to raise it may still raise.
        self.put(raises="", may_raise=view.may_raise or bool(view.raises), round=Round.OUT)
        self.put(dropped=False, revoked=False)
        if not self.rules.incremental:  # It gives up all without a callback.
            self.put(owned=frozenset(), moved_by=self.name)

    def wait(self, searches: bool = True) -> None:
        self.put(searches=searches)
        if self.view.waits is False:
            self.put(waits_from=self.view.now_ms)
        else:  # The consumer may or may not start the back-off again.
            self.put(unsure_till=self.view.now_ms + LATEST_MS)

    def disconnected(self) -> None:
        if self.view.join_pending:
            self.join_due()
            if self.view.round in (Round.JOINING, Round.SYNCING):
                self.put(round=Round.FAILED)
        self.put(join=None, sync=None, beat=None, commit=None, beat_from_ms=None)
        self.wait()

    def elapsed(self) -> None:
        view = self.view
        if any(sent is not None and self.is_late(sent) for sent in (view.join, view.sync, view.beat)):
            self.put(loose=True)
        if view.round not in (Round.STABLE, Round.SYNCING, Round.FAILED):
            return
        if view.now_ms - view.polled_ms >= POLL_MS:
            self.put(loose=True)  # It may have left, which a static member does without a request.
        if view.now_ms - view.alive_ms >= SESSION_MS:
            # Before this it began to look for the coordinator, perhaps several times.
            self.put(unsure_till=view.now_ms + LATEST_MS, unanswered=True)

    def take(self, taking: group.Blob) -> None:
        """A poll processes the pending assignment."""
        view = self.view
        if not view.topics or view.raises or view.waits or view.loose:
            return
        if view.round is not Round.STABLE:  # The consumer was removed meanwhile: it may adopt it or not.
            self.put(or_else=view.or_else | {NO_IDENTITY})
        elif not isinstance(taking, Assigned):
            self.put(may_raise=True, due=None)
        elif view.waits is None:
            self.put(due=view.due or None)
        elif is_incompatible(self.rules, taking):
            self.join_due()
        elif not view.fits:
            self.put(taking=None, taking_ended="it did not fit", dropped=True, due=None)
        elif is_cooperative(self.rules, view.opened) and view.owned - {*taking.partitions}:
            self.due_before = view.due, view.due_since
            self.put(due=True, due_since="revoking", revoked=True)

    # Actions

    def act(self, action: ops.Request | UserEvent, started_ms: int) -> None:
        match action:
            case group.Join() | group.Sync() | group.Heartbeat() | group.Commit():
                self.send(action, started_ms)
            case group.Leave():
                left = Identity(self.view.who.member) if self.view.is_static else None
                self.identify(NO_IDENTITY, left)
                self.join_due()
                self.put(round=Round.OUT, loose=False, taking=None, taking_ended="it left")
            case ops.CommitEnded():
                self.put(commits=False)
            case ops.Metric(value):
                self.put(metric=value, taking=None, taking_ended="it had an error")
                self.join_due()
                self.wait()
                self.put(backs_off_from=self.view.now_ms)
            case ops.Raised(error):
                expected = error == self.view.raises or self.view.may_raise or not self.view.topics
                self.put(raises="", loose=self.view.loose or not expected)
            case _:
                self.own(action)

    def send(self, action: group.Join | group.Sync | group.Heartbeat | group.Commit, started_ms: int) -> None:
        view = self.view
        if isinstance(action, group.Join):
            self.join(action)
            return
        carried = Identity(action.member, action.generation)
        sent = Sent(action, carried, view.protocol, started_ms)
        match action:
            case group.Sync():
                self.put(sync=sent, round=Round.SYNCING)
                if carried not in view.identities:
                    self.identify(carried)
            case group.Heartbeat():
                self.put(beat=sent, beat_from_ms=started_ms)
            case group.Commit():
                self.put(commit=sent)

    def join(self, action: group.Join) -> None:
        """Whatever identity it carries is its own from now on."""
        view = self.view
        known = [each for each in (view.who, *sorted(view.or_else)) if each.member == action.member]
        identity = known[0] if known else Identity(action.member)
        if not view.join_reason.startswith("a failed join"):
            self.put(joins_since=view.join_reason)
        if identity != view.who or view.or_else:
            self.put(who=identity, or_else=frozenset())
        topics = {topic for _, each in action.protocols for topic in getattr(each, "topics", ())}
        self.put(join=Sent(action, identity, view.protocol, view.now_ms), sync=None, round=Round.JOINING, due=False)
        self.put(topics_told=tuple(sorted(topics)), loose=False, raises="", dropped=False, revoked=False)
        if view.taking is not None:
            self.put(taking=None, taking_ended="it joined")

    def own(self, action: ops.Request | UserEvent) -> None:
        view = self.view
        match action:
            case ops.Given(partitions):
                self.put(taking=None, taking_ended="it was adopted")
                owned = view.owned | {*partitions}
            case ops.Revoked(partitions):
                owned = view.owned - {*partitions}
            case ops.Lost(partitions):
                owned = view.owned - {*partitions}
                if out := [each for each in view.identities if each.is_out]:
                    self.put(who=max(out), or_else=frozenset(out) - {max(out)})
            case ops.Reads(partitions):
                owned = frozenset(partitions)
            case _:
                return
        if owned != view.owned:
            self.put(owned=owned, moved_by=self.name)
