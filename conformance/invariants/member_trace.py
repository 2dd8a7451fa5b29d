"""Reconstructs what a consumer knows at each step of a conversation: id, generation, assignment, pending requests."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.apis.member import action_of, event_of, rules_of
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.core.history import History, Op, Refused, Replied
from kipcheck.conformance.core.once import cached_on_history
from kipcheck.conformance.invariants.member_view import (
    LATEST_MS,
    NO_IDENTITY,
    Identity,
    Owned,
    Round,
    Sent,
    View,
    is_cooperative,
    is_incompatible,
)
from kipcheck.conformance.models.group.messages import (
    Beat,
    Blob,
    Commit,
    Committed,
    Error,
    Heartbeat,
    Join,
    Joined,
    Sync,
    Synced,
)
from kipcheck.conformance.models.member.client import POLL_MS, SESSION_MS, AnswerReceived, Elapse, Event, Open
from kipcheck.conformance.models.member.messages import (
    ILLEGAL_STATE,
    Close,
    CommitEnded,
    CommitOffsets,
    Disconnected,
    Given,
    Lost,
    Metadata,
    Metric,
    Poll,
    Raised,
    Request,
    Revoked,
    Subscribe,
    Unsubscribe,
    UserEvent,
)
from kipcheck.conformance.models.member.rules import Rules
from kipcheck.conformance.models.membership import Assigned

CONSUMER: Final = "consumer"
SEARCHED: Final = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})


@dataclass(frozen=True, slots=True)
class MemberStep:
    """A step that was answered, with the consumer's view before and after it."""

    op: Op
    event: Event
    actions: tuple[Request | UserEvent, ...]
    before: View
    received: View
    """The view after the event, before the consumer's own actions."""
    after: View
    rules: Rules

    @property
    def cooperative(self) -> bool:
        return is_cooperative(self.rules, self.before.opened)

    @property
    def assigned(self) -> Owned | None:
        """The partitions that a poll has to adopt; None if there is no assignment, or none that can be adopted."""
        view = self.before
        if not isinstance(self.event, Poll) or not view.can_take or not isinstance(view.taking, Assigned):
            return None
        return None if is_incompatible(self.rules, view.taking) or not view.fits else frozenset(view.taking.partitions)

    @property
    def parts(self) -> tuple[tuple[Request | UserEvent, ...], tuple[Request | UserEvent, ...]]:
        """The actions up to the assigned callback of an adopted assignment, and those after it."""
        ends = [k for k, each in enumerate(self.actions, 1) if isinstance(each, Given)]
        cut = ends[0] if ends and self.before.taking is not None else 0
        return self.actions[:cut], self.actions[cut:]


@cached_on_history
def member_steps(history: History) -> tuple[MemberStep, ...]:
    """The steps up to the first one without an answer: after that the consumer's state is not known."""
    return tuple(_member_steps(history))


def _member_steps(history: History) -> Iterator[MemberStep]:
    rules = rules_of(edition(history.case.edition))
    if rules is None:
        return
    view = View()
    for op in history.ops:
        actions: tuple[Request | UserEvent, ...] = ()
        match op.observation:
            case Replied(payload):
                actions = tuple(map(action_of, dict(payload).get("actions", ())))
            case Refused():
                pass
            case _:
                return
        event = event_of(op.step)
        reader = ViewUpdater(rules, view)
        received = reader.receive(event, isinstance(op.observation, Refused))
        after = reader.after(event, actions)
        yield MemberStep(op, event, actions, view, received, after, rules)
        view = after


class ViewUpdater:
    """Applies one event, and the actions that answered it, to a copy of the view."""

    def __init__(self, rules: Rules, view: View) -> None:
        self.rules = rules
        self.view = copy(view)

    def put(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self.view, name, value)

    def receive(self, event: Event, refused: bool) -> View:
        if isinstance(event, Elapse):
            self.put(now_ms=self.view.now_ms + event.ms)
        if isinstance(event, Open):
            self.view = View(self.view.now_ms, None if refused else event)
        elif self.view.opened is not None:
            self.handle(event)
        return copy(self.view)

    def after(self, event: Event, actions: tuple[Request | UserEvent, ...]) -> View:
        for each in actions:
            self.act(each)
        if isinstance(event, AnswerReceived) and self.view.round is Round.SYNCING and self.view.sync is None:
            self.put(round=Round.FAILED, raises=ILLEGAL_STATE)  # The leader found no assignment.
        if isinstance(event, Poll):
            self.put(polled_ms=self.view.now_ms)
        elif isinstance(event, Close):
            self.put(opened=None)
        return self.view

    def handle(self, event: Event) -> None:
        view = self.view
        match event:
            case Subscribe(topics):
                self.put(topics=tuple(sorted({*topics})))
            case Unsubscribe() | Close():
                self.reset(keeps_id=False)
                self.put(topics=())
                if not self.rules.incremental:  # It gives up all without a callback.
                    self.put(owned=frozenset())
            case Poll() if view.taking is not None:
                self.take(view.taking)
            case CommitOffsets():
                self.put(commits=True)
            case Metadata():
                self.put(due=view.due or None, cluster_changed=True)
            case Disconnected():
                self.disconnected()
            case AnswerReceived(Joined() as answer) if (sent := view.join) is not None:
                self.put(join=None)
                self.join_answered(answer, sent)
            case AnswerReceived(Synced() as answer) if (sent := view.sync) is not None:
                self.put(sync=None)
                self.sync_answered(answer, sent)
            case AnswerReceived(Beat(error=error)) if (sent := view.beat) is not None:
                self.put(beat=None)
                self.heartbeat_answered(error, sent)
            case AnswerReceived(Committed(error=error)) if (sent := view.commit) is not None:
                self.put(commit=None)
                self.commit_answered(error, sent)
            case Elapse():
                self.elapsed()

    # Answers

    def join_answered(self, answer: Joined, sent: Sent) -> None:
        joining = self.view.round is Round.JOINING  # Else it left or was removed meanwhile.
        self.put(due=True, round=Round.FAILED if joining else self.view.round)
        match answer.error:
            case Error.NONE if not joining:
                pass
            case Error.NONE if answer.protocol_type not in (None, CONSUMER):
                self.put(raises=Error.INCONSISTENT_GROUP_PROTOCOL.name)
            case Error.NONE:
                identity, leads = Identity(answer.member, answer.generation), answer.leader == answer.member
                changed = self.view.cluster_changed and not leads
                self.put(round=Round.SYNCING, who=identity, joined=answer, cluster_changed=changed)
                if self.rules.phased:
                    self.put(alive_ms=self.view.now_ms, polled_ms=self.view.now_ms)
            case Error.MEMBER_ID_REQUIRED:
                self.put(who=Identity(answer.member))
            case Error.UNKNOWN_MEMBER_ID:
                self.expelled(sent, answer.error)
            case Error.COORDINATOR_LOAD_IN_PROGRESS:
                self.wait()
            case Error.REBALANCE_IN_PROGRESS:
                pass
            case error:
                self.failed(error)

    def sync_answered(self, answer: Synced, sent: Sent) -> None:
        syncing = self.view.round is Round.SYNCING
        self.put(due=True, round=Round.FAILED if syncing else self.view.round)
        chosen = self.view.protocol
        foreign = answer.protocol_type not in (None, CONSUMER) or answer.protocol not in (None, chosen)
        match answer.error:
            case Error.NONE if not syncing:
                pass
            case Error.NONE if foreign:
                self.put(raises=Error.INCONSISTENT_GROUP_PROTOCOL.name)
            case Error.NONE:
                due = None if self.view.cluster_changed else False
                self.put(round=Round.STABLE, taking=answer.assignment, due=due)
                if not self.rules.phased:
                    self.put(alive_ms=self.view.now_ms, polled_ms=self.view.now_ms)
            case Error.UNKNOWN_MEMBER_ID | Error.ILLEGAL_GENERATION:
                self.expelled(sent, answer.error)
            case Error.REBALANCE_IN_PROGRESS:
                if self.rules.resets_on_27:
                    self.reset(keeps_id=True)
            case error:
                self.failed(error)

    def heartbeat_answered(self, error: Error, sent: Sent) -> None:
        match error:
            case Error.NONE:
                self.put(alive_ms=self.view.now_ms)
            case Error.REBALANCE_IN_PROGRESS:
                news = self.view.round is Round.STABLE
                self.put(alive_ms=self.view.now_ms, due=True if news else self.view.due)
            case Error.UNKNOWN_MEMBER_ID | Error.ILLEGAL_GENERATION:
                self.expelled(sent, error)
            case Error.FENCED_INSTANCE_ID if not self.rules.compares:
                self.put(who=None, due=None, round=Round.OUT, raises=error.name)
            case Error.FENCED_INSTANCE_ID:
                if self.view.is_current(sent):
                    self.reset(keeps_id=False)
                    self.put(raises=error.name)
            case _ if error in SEARCHED:
                self.wait()

    def commit_answered(self, error: Error, sent: Sent) -> None:
        match error:
            case Error.REBALANCE_IN_PROGRESS:
                self.put(due=True)
            case Error.UNKNOWN_MEMBER_ID | Error.ILLEGAL_GENERATION:
                if self.view.is_current(sent) or not self.rules.compares:
                    self.reset(self.keeps_id(error))
                elif self.view.round is Round.FAILED:  # It may be joining or not.
                    self.put(who=None, due=None)
                elif self.view.round is not Round.JOINING:
                    self.reset(self.keeps_id(error))
            case Error.COORDINATOR_LOAD_IN_PROGRESS:
                self.wait()
            case _ if error in SEARCHED:
                self.wait()

    def failed(self, error: Error) -> None:
        """An error that makes the consumer look for the coordinator, or that the next poll raises."""
        if error in SEARCHED:
            self.wait()
        else:
            self.put(raises=error.name)

    # Out of the group

    def keeps_id(self, error: Error) -> bool:
        return error is Error.ILLEGAL_GENERATION and self.rules.keeps_id

    def expelled(self, sent: Sent, error: Error) -> None:
        if self.view.is_current(sent) or not self.rules.compares:
            self.reset(self.keeps_id(error))

    def reset(self, keeps_id: bool) -> None:
        identity = self.view.who
        member = identity.member if identity is not None and keeps_id else ""
        self.put(round=Round.OUT, who=None if identity is None and keeps_id else Identity(member), due=True)

    def wait(self) -> None:
        if self.view.waits is False:
            self.put(waits_from=self.view.now_ms)
        else:  # The consumer may or may not start the back-off again.
            self.put(unsure_till=self.view.now_ms + LATEST_MS)

    def disconnected(self) -> None:
        if self.view.join_pending:
            self.put(due=True)
            if self.view.round in (Round.JOINING, Round.SYNCING):
                self.put(round=Round.FAILED)
        self.put(join=None, sync=None, beat=None, commit=None)
        self.wait()

    def elapsed(self) -> None:
        view = self.view
        beating = (Round.STABLE, Round.SYNCING, Round.FAILED) if self.rules.phased else (Round.STABLE,)
        if view.round not in beating:
            return
        if view.now_ms - view.polled_ms >= POLL_MS:
            failed = view.round is Round.FAILED  # It may or may not have had to send heartbeats.
            self.reset(keeps_id=False)
            if failed:
                self.put(who=None)
        if view.now_ms - view.alive_ms >= SESSION_MS:
            # Before this it began to look for the coordinator, perhaps several times.
            self.put(unsure_till=view.now_ms + LATEST_MS)

    def take(self, taking: Blob) -> None:
        """A poll processes the pending assignment."""
        view = self.view
        if view.raises or view.waits:
            return
        if view.waits is None:
            self.put(due=view.due or None, who=view.who if view.round is Round.STABLE else None)
        elif view.round is not Round.STABLE:  # The consumer was removed meanwhile.
            self.reset(keeps_id=False)
            self.put(taking=None)
        elif not isinstance(taking, Assigned):
            self.put(raises=ILLEGAL_STATE)
        elif is_incompatible(self.rules, taking) or not view.fits or self.gives_up(taking):
            self.put(due=True)

    def gives_up(self, taking: Assigned) -> bool:
        """Does a cooperative member have to revoke partitions, after which it joins again?"""
        return is_cooperative(self.rules, self.view.opened) and bool(self.view.owned - {*taking.partitions})

    # Actions

    def act(self, action: Request | UserEvent) -> None:
        view = self.view
        match action:
            case Join():
                sent = Sent(action, Identity(action.member, (view.who or NO_IDENTITY).generation), view.protocol)
                topics = {topic for _, each in action.protocols for topic in getattr(each, "topics", ())}
                self.put(join=sent, round=Round.JOINING, due=False, topics_told=tuple(sorted(topics)), taking=None)
            case Sync(member=member, generation=generation):
                self.put(sync=Sent(action, Identity(member, generation), view.protocol))
            case Heartbeat(member=member, generation=generation):
                self.put(beat=Sent(action, Identity(member, generation), view.protocol))
            case Commit(member=member, generation=generation):
                self.put(commit=Sent(action, Identity(member, generation), view.protocol))
            case Given(partitions):
                self.put(owned=view.owned | {*partitions}, taking=None)
            case Revoked(partitions) | Lost(partitions):
                self.put(owned=view.owned - {*partitions})
            case CommitEnded():
                self.put(commits=False)
            case Metric(value):
                self.put(metric=value, taking=None, due=True)
                self.wait()
            case Raised():
                self.put(raises="")
