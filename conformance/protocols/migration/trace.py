"""The trace of a group with members of both protocols: what requests and answers say of it, step by step.

A client owns a partition from the answer that assigns it until it joins again, or sends a heartbeat, with a list of
owned partitions that lacks it, until it leaves, until another client joins with its instance id, or until the
coordinator may have removed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT, Config
from kipcheck.conformance.protocols.consumer_group.trace import settings
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.classic_members import ILLEGAL_GENERATION, MEMBER_ID_REQUIRED
from kipcheck.conformance.protocols.migration.conversions import DOWNGRADES
from kipcheck.conformance.protocols.migration.model import RESETS
from kipcheck.conformance.protocols.migration.quiescence import Rest, Subscription
from kipcheck.conformance.protocols.reconciled.log_laws import served
from kipcheck.conformance.protocols.reconciled.log_ops import Commit, Fetch, Reload
from kipcheck.conformance.protocols.reconciled.terms import AWAY, LEAVING, Memory

NEAR_MS = 5_000
"""A session or a timeout that ends in less than this may have ended: requests take time, too."""
CLASSIC, CONSUMER, UNKNOWN = "classic", "consumer", ""
"""The form of the group."""


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of a client: a member, for certain, while it is in ``Group.members``."""

    name: str
    is_consumer: bool
    epoch: int = 0
    """Or generation."""
    may_still_own: Mapping[Partition, int] = field(default_factory=dict)
    """The partitions that it may still read, each with the step that assigned it."""
    given: tuple[Partition, ...] = ()
    """To one that uses the classic protocol: its last assignment."""
    topics: frozenset[str] | None = None
    """To which one that uses the classic protocol subscribed in a consumer group; None: it did not, or who knows."""
    after_expression: bool = False
    """It took over the instance of a consumer that did not subscribe to topics by name alone."""
    silent_ms: int = 0
    late_ms: int = 0
    """The time for which it may have owed a JoinGroup, a SyncGroup or a revocation."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The last request of a client of the classic protocol, while its answer is not received."""

    request: ops.Classic
    form: str
    """Of the group when it was sent."""
    conversions: int
    """Of the group until then."""
    age_ms: int = 0
    """The time since it was sent: its answer may be as old."""
    outdated: bool = False
    """The log was read since it was sent: what its answer says may be forgotten."""


@dataclass(frozen=True, slots=True)
class Group:
    form: str = CLASSIC
    members: Mapping[str, Member] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    """Clients that the coordinator may have removed, or not."""
    pending: Mapping[str, Pending] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)
    """The last one of each client of the classic protocol."""
    memories: Mapping[str, Memory] = field(default_factory=dict)
    """Of the clients of KIP-848's protocol."""
    highest: int = 0
    """Epoch or generation that a member was given since the group may have been empty."""
    assigned: bool = False
    """The classic group is stable: its leader has assigned, and no member has joined since."""
    conversions: int = 0
    """How often it has changed its form."""
    changed: bool = False
    """A consumer group became a classic one in a join phase, and none has ended since."""
    restated: bool = False
    """It became so when a client took over an instance and stated other topics."""
    taken_over: bool = False
    """It became a classic one when a client of the classic protocol took over an instance, and no join phase has ended
    since."""
    ids: frozenset[str] = frozenset()
    """The clients of the classic protocol that have been given an id."""
    asked: frozenset[str] = frozenset()
    """Those of them that a consumer group required to join with it, in their last answer, with no time passed since."""
    instances: Mapping[str, str] = field(default_factory=dict)
    """Client -> the instance id that it joined with."""
    doubted: frozenset[str] = frozenset()
    """Those of these clients that may have it no more, or not yet."""
    fenced: frozenset[str] = frozenset()
    """The clients whose instance another one has taken over, which have not joined again since."""
    removed: frozenset[str] = frozenset()
    """The clients that an operator has removed, which have not joined again since."""
    rest: Rest = field(default_factory=Rest)
    config: Config = DEFAULT

    def holders(self, instance: str | None, but: str) -> list[str]:
        """The other clients that may have this instance id."""
        return [name for name, each in self.instances.items() if each == instance and name != but]

    def stated(self, name: str, instance: str) -> "Group":
        """A client may have this instance id."""
        return replace(self, instances={**self.instances, name: instance}, doubted=self.doubted | {name})

    def taken(self, instance: str, name: str) -> "Group":
        """A client has joined with this instance id."""
        known = self
        for each in known.holders(instance, name):
            surely = each not in known.doubted
            fenced = known.fenced | {each} if surely else known.fenced
            known = replace(known.without(each, surely), fenced=fenced)
        others = {each: stated for each, stated in known.instances.items() if stated != instance}
        return replace(known, instances={**others, name: instance}, doubted=known.doubted - {name})

    def sent(self, request: ops.Classic) -> Pending:
        return Pending(request, self.form, self.conversions)

    def having(self, member: Member) -> "Group":
        return replace(self, members={**self.members, member.name: member}, gone=self.gone - {member.name})

    def reset(self, name: str) -> "Group":
        """A client is no member any more."""
        instances = {each: stated for each, stated in self.instances.items() if each != name}
        return replace(
            self, ids=self.ids - {name}, asked=self.asked - {name}, fenced=self.fenced - {name}, instances=instances,
            doubted=self.doubted - {name}, removed=self.removed - {name},
        )  # fmt: skip

    def without(self, name: str, surely: bool) -> "Group":
        members = {each: found for each, found in self.members.items() if each != name}
        gone = self.gone - {name} if surely else self.gone | {name}
        return replace(self, members=members, gone=gone)


@dataclass(frozen=True, slots=True)
class MixedStep(AnsweredStep[ops.Event, Mapping[str, Any], Group]):
    """An answered step."""

    @property
    def name(self) -> str:
        assert not isinstance(self.request, Pass | Reload | Fetch)
        return self.request.client

    @property
    def member(self) -> Member | None:
        """The client, if it is a member for certain."""
        return self.before.members.get(self.name)

    @property
    def memory(self) -> Memory:
        return self.before.memories.get(self.name) or Memory(self.name)

    @property
    def epoch(self) -> int:
        """In a heartbeat of KIP-848."""
        assert isinstance(self.request, Beat)
        return self.memory.epoch_in(self.request)

    @property
    def answered_epoch(self) -> int:
        return int(self.answer.get("epoch", 0))

    @property
    def received(self) -> str:
        """The error of a response of the classic protocol, or what is in its place."""
        return str(self.answer.get("received", ""))

    @property
    def answers(self) -> Pending | None:
        """The request that is answered in this step; None: none is."""
        if isinstance(self.request, Beat | Pass | Reload | Commit | Fetch) or self.received in (
            ops.PARKED,
            ops.BUSY,
            "nothing",
        ):
            return None
        known = self.before.pending.get(self.name)
        return known if isinstance(self.request, ops.Receive) else self.before.sent(self.request)

    @property
    def generation(self) -> int | None:
        return self.answer.get("generation")

    @property
    def given(self) -> tuple[Partition, ...]:
        """The partitions that the answer assigns."""
        return tuple((topic, number) for topic, number in self.answer.get("assignment") or ())

    @property
    def confirms(self) -> bool:
        """Whether a member of a consumer group confirms its epoch, and says nothing new."""
        request, member = self.request, self.member
        if member is None or self.before.form != CONSUMER:
            return False
        if isinstance(request, ops.ClassicBeat):
            return not request.behind and self.received == ops.NONE
        if not isinstance(request, Beat) or not self.accepted:
            return False
        news = request.topics, request.regex, request.assignor
        return request.owned == "told" and self.epoch > 0 and self.answered_epoch == member.epoch and not any(news)

    @property
    def subscription(self) -> Subscription | None:
        """What a client states; None: nothing, or something else than topics and assignors of clients."""
        match self.request:
            case ops.ClassicJoin(topics=topics, protocols=assignors):
                return frozenset(topics), assignors
            case Beat(topics=topics, regex=None, assignor=None) if topics and self.accepted:
                return frozenset(topics), ()
            case _:
                return None

    @property
    def replaces(self) -> bool:
        """Whether a new client joins as the instance of one that used the same protocol, with its subscription."""
        request, known = self.request, self.before
        if not isinstance(request, Beat | ops.ClassicJoin) or request.instance is None or self.subscription is None:
            return False
        former = known.holders(request.instance, self.name)
        is_new = self.name not in {*known.members, *known.ids, *known.instances, *known.gone}
        if len(former) != 1 or not is_new or known.form != CONSUMER or {*former} & known.doubted:
            return False
        same = (former[0] in known.memories) == isinstance(request, Beat)
        return same and known.rest.subscriptions.get(former[0]) == self.subscription

    @property
    def joined_epoch(self) -> int | None:
        """The epoch or generation that a successor gets; None: it is not accepted at once."""
        if isinstance(self.request, Beat):
            return self.answered_epoch if self.accepted else None
        return self.generation if self.received == ops.NONE else None

    def _rest_after(self, known: Group) -> Rest:
        """``known``: what else is known after this step."""
        before, request = self.before.rest, self.request
        if isinstance(request, Reload | Commit | Fetch):
            return before.disturbed() if isinstance(request, Reload) else before
        if isinstance(request, Pass):
            return before.later(request.ms) if {*known.members} == {*self.before.members} else before.disturbed()
        if self.confirms:
            if known.gone or known.pending:
                return before.disturbed()
            epochs = {name: each.epoch for name, each in known.members.items()}
            return before.confirmed(self.name, epochs, known.config.interval_ms)
        if isinstance(request, ops.ClassicSync) and known.form == CONSUMER and self.received == ops.NONE:
            return replace(before, quiet_rounds={})
        if isinstance(request, Beat) and self.epoch == AWAY and self.accepted:
            return replace(before, quiet_rounds={}, waited_ms=0)
        stays = self.replaces and self.joined_epoch == before.epoch
        rest = replace(before, quiet_rounds={}, waited_ms=0) if stays else before.disturbed()
        if not isinstance(request, Beat):
            return rest if self.subscription is None else rest.subscribed(self.name, *self.subscription)
        if self.subscription is not None and (self.epoch == 0 or self.name in rest.subscriptions):
            return rest.subscribed(self.name, *self.subscription)
        states = request.regex or request.topics is not None or request.assignor
        return rest.unsubscribed(self.name) if states and self.accepted else rest

    def known_after(self) -> Group:
        known = self._known_after()
        return replace(known, rest=self._rest_after(known))

    def _known_after(self) -> Group:
        match self.request:
            case Pass(ms):
                known = _later(self.before, ms)
            case Beat():
                known = self._after_beat(self.request)
            case Reload():
                known = _reloaded(self.before)
            case Commit() | Fetch():
                known = self.before
            case _:
                known = self._after_classic(self.request)
        return known if known.members else replace(known, highest=0)

    # Heartbeats of KIP-848

    def _after_beat(self, beat: Beat) -> Group:
        known = self.before
        if not self.accepted:
            # Even so it may have interrupted a join phase.
            return replace(known.without(self.name, surely=False) if self.member else known, assigned=False)
        given = None if self.answer.get("assignment") is None else self.given
        memory = self.memory.after(self.answered_epoch, given)
        known = replace(known, memories={**known.memories, self.name: memory})
        if self.epoch == LEAVING:
            return _after_leaving(known, self.name)
        if self.epoch == AWAY:
            return known.without(self.name, surely=False)
        owned, before = self.memory.claimed(beat.owned), self.member or Member(self.name, True)
        kept = {each: at for each, at in before.may_still_own.items() if owned is None or each in owned}
        may_still_own = {**dict.fromkeys(self.given, self.op.index), **kept}
        late_ms = before.late_ms if before.may_still_own else 0
        member = Member(self.name, True, self.answered_epoch, may_still_own, late_ms=late_ms)
        if self.epoch == 0:
            known = self._after_stating(known, beat.instance)
        form = CONSUMER if self.epoch == 0 else known.form
        if form != known.form:
            known = _without_topics(known if known.assigned else _without_claims(known))
        return replace(
            known.having(member),
            form=form,
            conversions=known.conversions + (form != known.form),
            highest=max(known.highest, self.answered_epoch),
            assigned=False,
            changed=False,
            taken_over=False,
        )

    def _after_stating(self, known: Group, instance: str | None) -> Group:
        """The client has joined. One that was a member may do so without its instance id, and keeps it."""
        known = replace(known, fenced=known.fenced - {self.name}, removed=known.removed - {self.name})
        if instance is not None:
            return known.taken(instance, self.name)
        had = known.instances.get(self.name)
        return known if had is None else known.stated(self.name, had)

    # Requests of the classic protocol

    def _after_classic(self, request: ops.Classic) -> Group:
        known = self.before
        if not isinstance(request, ops.Receive) and self.received != ops.BUSY:
            known = self._after_sending(known, request)
        found = self.answers
        if found is None:
            if self.received == ops.PARKED and not isinstance(request, ops.Receive):
                known = replace(known, pending={**known.pending, self.name: known.sent(request)})
            return known
        pending = {each: other for each, other in known.pending.items() if each != self.name}
        return self._after_answer(replace(known, pending=pending), found)

    def _after_sending(self, known: Group, request: ops.Classic) -> Group:
        if not isinstance(request, ops.ClassicJoin):
            return known
        known = replace(
            known, fenced=known.fenced - {self.name}, asked=known.asked - {self.name},
            removed=known.removed - {self.name},
        )  # fmt: skip
        if request.instance is not None and known.form != CONSUMER:
            # The request may take effect long before its answer.
            for each in known.holders(request.instance, self.name):
                known = known.without(each, surely=False)
            known = known.stated(self.name, request.instance)
        member = known.members.get(self.name)
        if member is None:
            return replace(known, assigned=False)
        owned = member.given if request.owned == "told" else ()
        kept = {each: at for each, at in member.may_still_own.items() if each in owned}
        return replace(known.having(replace(member, may_still_own=kept, topics=None)), assigned=False)

    def _after_answer(self, known: Group, found: Pending) -> Group:
        member = known.members.get(self.name)
        if isinstance(found.request, ops.ClassicRemove):
            return _after_removal(known, found.request.instance) if self.received == ops.NONE else known
        if isinstance(found.request, ops.ClassicLeave):
            known = known.reset(self.name)
            return replace(known.without(self.name, surely=self.received == ops.NONE), assigned=False)
        if self.received in RESETS:
            had = known.instances.get(self.name)
            known = known.reset(self.name).without(self.name, surely=False)
            # It may be a member still: what it stated may not be what the member has.
            return known if had is None else known.stated(self.name, had)
        if self.received == ILLEGAL_GENERATION and member is not None:
            # It gives up its partitions.
            return known.having(replace(member, may_still_own={}))
        if isinstance(found.request, ops.ClassicJoin) and self.received in (ops.NONE, *ops.GIVING_IDS):
            known = replace(known, ids=known.ids | {self.name})
            if self.received == MEMBER_ID_REQUIRED and known.form == CONSUMER:
                known = replace(known, asked=known.asked | {self.name})
        if found.outdated:
            return known.without(self.name, surely=False)
        if self.received != ops.NONE:
            return known
        if isinstance(found.request, ops.ClassicJoin):
            return self._after_join(known, found)
        if member is None:
            return known
        if isinstance(found.request, ops.ClassicSync):
            kept = member.may_still_own if known.form == CONSUMER else {}
            may_still_own = {**dict.fromkeys(self.given, self.op.index), **kept}
            known = known.having(replace(member, may_still_own=may_still_own, given=self.given, silent_ms=0, late_ms=0))
            stable = known.form == CLASSIC and found.form == CLASSIC and not known.taken_over
            return replace(known, assigned=stable)
        return known.having(replace(member, silent_ms=0))

    def _after_join(self, known: Group, found: Pending) -> Group:
        assert isinstance(found.request, ops.ClassicJoin)
        generation, instance = self.generation or 0, found.request.instance
        member = known.members.get(self.name) or Member(self.name, False)
        former = known.holders(instance, self.name)
        if instance is not None and former and isinstance(self.request, ops.Receive):
            # They may have taken over the instance since the answer.
            return known.stated(self.name, instance).without(self.name, surely=False)
        known = self._after_stating(known, instance)
        topics = frozenset(found.request.topics) if known.form == CONSUMER else None
        by_expression = any(each in known.memories and each not in known.rest.subscriptions for each in former)
        by_expression = by_expression or (not former and member.after_expression)
        member = replace(member, topics=topics, after_expression=by_expression)
        known = known.having(replace(member, epoch=generation, silent_ms=found.age_ms, late_ms=found.age_ms))
        restated = False
        if known.form != CLASSIC and any(each in known.memories for each in former):
            known = _as_classic(known)
            restated = known.form == CLASSIC and self._restates(*former)
            known = replace(known, taken_over=known.form == CLASSIC)
        if self.answer.get("led"):
            known = replace(known, taken_over=False)
            # Members of the classic group that did not join again are no members any more.
            for each in [*known.members.values()]:
                if each.name != self.name and each.epoch < generation and each.name not in known.pending:
                    known = known.without(each.name, surely=False)
        known = replace(
            known, generations={**known.generations, self.name: generation}, highest=max(known.highest, generation),
            changed=restated, restated=restated,
        )  # fmt: skip
        return _without_late(known)

    def _restates(self, former: str, *others: str) -> bool:
        """Whether a client states other topics than the one client had whose instance it takes over."""
        had, states = self.before.rest.subscriptions.get(former), self.subscription
        is_certain = not others and former not in self.before.doubted
        return is_certain and had is not None and states is not None and had[0] != states[0]


def _without_claims(known: Group) -> Group:
    """A classic group that is upgraded within a rebalance: the coordinator does not know what its members still own."""
    members = {name: replace(each, may_still_own={}) for name, each in known.members.items()}
    return replace(known, members=members)


def _without_topics(known: Group) -> Group:
    """A group that is upgraded: leaders have assigned what they would."""
    return replace(known, members={name: replace(each, topics=None) for name, each in known.members.items()})


def _after_leaving(known: Group, name: str) -> Group:
    return _departed(known.reset(name).without(name, surely=True))


def _after_removal(known: Group, instance: str) -> Group:
    """An operator has removed the member with an instance id."""
    for each in known.holders(instance, ops.OPERATOR):
        surely = each not in known.doubted
        removed = known.removed | {each} if surely else known.removed
        instances = {name: stated for name, stated in known.instances.items() if name != each}
        known = replace(known.without(each, surely), removed=removed, instances=instances)
    return _departed(known)


def _departed(known: Group) -> Group:
    """The group after members are gone."""
    before = replace(known, assigned=False)
    known = _as_classic(before)
    return replace(known, changed=known.changed or known.form == CLASSIC != before.form)


def _as_classic(known: Group) -> Group:
    """The group after a member of KIP-848's protocol is gone: a classic one, if it was the last and others remain."""
    rest = known.members.values()
    if any(each.is_consumer for each in rest) or known.form == CLASSIC:
        return known
    if known.gone or not rest:
        return replace(known, form=UNKNOWN)
    if known.config.policy not in DOWNGRADES:
        return known
    return replace(known, form=CLASSIC, conversions=known.conversions + 1)


def _reloaded(known: Group) -> Group:
    """After the log was read. Of a join phase it has nothing, and who was asked to join with an id is forgotten."""
    known = replace(known, asked=frozenset())
    unsettled = known.form != CONSUMER and not known.assigned
    for each in [*known.members.values()]:
        known = known.having(replace(each, silent_ms=0, late_ms=0))
        if unsettled or each.name in known.pending:
            known = known.without(each.name, surely=False)
    known = replace(known, pending={name: replace(each, outdated=True) for name, each in known.pending.items()})
    return replace(known, form=UNKNOWN, changed=False, taken_over=False) if unsettled else known


def _later(known: Group, ms: int) -> Group:
    known = replace(known, asked=frozenset())
    if known.gone and not any(each.is_consumer for each in known.members.values()):
        # One of those that are gone may be removed only now.
        known = replace(known, form=UNKNOWN)
    for each in [*known.members.values()]:
        known = known.having(replace(each, silent_ms=each.silent_ms + ms, late_ms=each.late_ms + ms))
    pending = {name: replace(each, age_ms=each.age_ms + ms) for name, each in known.pending.items()}
    return _without_late(replace(known, pending=pending))


def _without_late(known: Group) -> Group:
    """Without those that the coordinator may have removed, because of a session or a timeout that may have ended."""
    for each in [*known.members.values()]:
        session = known.config.session_ms if each.is_consumer else ops.SESSION_MS
        if each.silent_ms > session - NEAR_MS or each.late_ms > REBALANCE_MS - NEAR_MS:
            known = replace(known.without(each.name, surely=False), form=UNKNOWN, assigned=False, changed=False)
    return known


@cached_on_history
def mixed_steps(history: History) -> tuple[MixedStep, ...]:
    """The steps up to the first one without an answer."""

    def read(op: Op, known: Group) -> MixedStep:
        return MixedStep(op, ops.OPERATIONS.event_of(op.step), payload(op), known)

    found = answered_steps(served(history), Group(config=settings(history)), read)
    return tuple(each for each in found if not isinstance(each.request, Pass | Reload | Commit | Fetch))
