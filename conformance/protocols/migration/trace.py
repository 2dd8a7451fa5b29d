"""The trace of a group with members of both protocols: what requests and answers say of it, step by step.

A client owns a partition from the answer that assigns it until it joins again, or sends a heartbeat, with a list of
owned partitions that lacks it, until it leaves, or until the coordinator may have removed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kipcheck.conformance.core.history import History, Op
from kipcheck.conformance.core.once import cached_on_history
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import AWAY, LEAVING, Memory, claimed, sent_epoch
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS, Answered, Beat, Pass
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT, Config
from kipcheck.conformance.protocols.consumer_group.trace import settings
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.migration.model import DOWNGRADES, RESETS
from kipcheck.conformance.protocols.migration.ops import (
    BUSY,
    NONE,
    OPERATIONS,
    PARKED,
    SESSION_MS,
    Classic,
    ClassicJoin,
    ClassicLeave,
    ClassicSync,
    Event,
    Receive,
)

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
    readable: Mapping[Partition, int] = field(default_factory=dict)
    """The partitions that it may still read, each with the step that assigned it."""
    given: tuple[Partition, ...] = ()
    """To one that uses the classic protocol: its last assignment."""
    silent_ms: int = 0
    late_ms: int = 0
    """The time for which it may have owed a JoinGroup, a SyncGroup or a revocation."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The last request of a client of the classic protocol, while its answer is not received."""

    request: Classic
    form: str
    """Of the group when it was sent."""
    changed: bool
    """As of the group then."""


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
    """Epoch or generation that a member was given since the group was empty."""
    assigned: bool = False
    """The classic group is stable: its leader has assigned, and no member has joined since."""
    changed: bool = False
    """A consumer group became a classic one, and no join phase has ended since."""
    config: Config = DEFAULT

    def sent(self, request: Classic) -> Pending:
        return Pending(request, self.form, self.changed)

    def having(self, member: Member) -> "Group":
        return replace(self, members={**self.members, member.name: member}, gone=self.gone - {member.name})

    def without(self, name: str, surely: bool) -> "Group":
        members = {each: found for each, found in self.members.items() if each != name}
        gone = self.gone - {name} if surely else self.gone | {name}
        return replace(self, members=members, gone=gone)


@dataclass(frozen=True, slots=True)
class MixedStep(AnsweredStep[Event, Mapping[str, Any], Group]):
    """An answered step."""

    @property
    def name(self) -> str:
        assert not isinstance(self.request, Pass)
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
        return sent_epoch(self.memory, self.request)

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
        if isinstance(self.request, Beat | Pass) or self.received in (PARKED, BUSY, "nothing"):
            return None
        known = self.before.pending.get(self.name)
        return known if isinstance(self.request, Receive) else self.before.sent(self.request)

    @property
    def generation(self) -> int | None:
        return self.answer.get("generation")

    @property
    def given(self) -> tuple[Partition, ...]:
        """The partitions that the answer assigns."""
        return tuple((topic, number) for topic, number in self.answer.get("assignment") or ())

    def known_after(self) -> Group:
        match self.request:
            case Pass(ms):
                return _later(self.before, ms)
            case Beat():
                known = self._after_beat(self.request)
            case _:
                known = self._after_classic(self.request)
        return known if known.members or known.gone else replace(known, highest=0)

    # Heartbeats of KIP-848

    def _after_beat(self, beat: Beat) -> Group:
        known = self.before
        if not self.accepted:
            # Even so it may have interrupted a join phase.
            return replace(known.without(self.name, surely=False) if self.member else known, assigned=False)
        given = None if self.answer.get("assignment") is None else self.given
        answer = Answered(self.name, self.answered_epoch, given)
        known = replace(known, memories={**known.memories, self.name: self.memory.after(answer)})
        if self.epoch == LEAVING:
            return _after_leaving(known, self.name)
        if self.epoch == AWAY:
            return known.without(self.name, surely=False)
        owned, before = claimed(self.memory, beat.owned), self.member or Member(self.name, True)
        kept = {each: at for each, at in before.readable.items() if owned is None or each in owned}
        readable = {**dict.fromkeys(self.given, self.op.index), **kept}
        late_ms = before.late_ms if before.readable else 0
        member = Member(self.name, True, self.answered_epoch, readable, late_ms=late_ms)
        form = CONSUMER if self.epoch == 0 else known.form
        if form != known.form and not known.assigned:
            known = _without_claims(known)
        return replace(
            known.having(member),
            form=form,
            highest=max(known.highest, self.answered_epoch),
            assigned=False,
            changed=False,
        )

    # Requests of the classic protocol

    def _after_classic(self, request: Classic) -> Group:
        known = self.before
        if not isinstance(request, Receive) and self.received != BUSY:
            known = self._after_sending(known, request)
        found = self.answers
        if found is None:
            if self.received == PARKED and not isinstance(request, Receive):
                known = replace(known, pending={**known.pending, self.name: known.sent(request)})
            return known
        pending = {each: other for each, other in known.pending.items() if each != self.name}
        return self._after_answer(replace(known, pending=pending), found)

    def _after_sending(self, known: Group, request: Classic) -> Group:
        if not isinstance(request, ClassicJoin):
            return known
        member = known.members.get(self.name)
        if member is None:
            return replace(known, assigned=False)
        owned = member.given if request.owned == "told" else ()
        kept = {each: at for each, at in member.readable.items() if each in owned}
        return replace(known.having(replace(member, readable=kept)), assigned=False)

    def _after_answer(self, known: Group, found: Pending) -> Group:
        member = known.members.get(self.name)
        if isinstance(found.request, ClassicLeave):
            return replace(known.without(self.name, surely=self.received == NONE), assigned=False)
        if self.received in RESETS:
            return known.without(self.name, surely=False)
        if self.received != NONE:
            return known
        if isinstance(found.request, ClassicJoin):
            return self._after_join(known, found)
        if member is None:
            return known
        if isinstance(found.request, ClassicSync):
            readable = {**dict.fromkeys(self.given, self.op.index), **member.readable}
            known = known.having(replace(member, readable=readable, given=self.given, silent_ms=0, late_ms=0))
            return replace(known, assigned=known.form == CLASSIC and found.form == CLASSIC)
        return known.having(replace(member, silent_ms=0))

    def _after_join(self, known: Group, found: Pending) -> Group:
        generation = self.generation or 0
        member = known.members.get(self.name) or Member(self.name, False)
        known = known.having(replace(member, epoch=generation, silent_ms=0, late_ms=0))
        if self.answer.get("led"):
            # Members of the classic group that did not join again are no members any more.
            for each in [*known.members.values()]:
                if each.name != self.name and each.epoch < generation and each.name not in known.pending:
                    known = known.without(each.name, surely=False)
        return replace(
            known, generations={**known.generations, self.name: generation}, highest=max(known.highest, generation),
            changed=False,
        )  # fmt: skip


def _without_claims(known: Group) -> Group:
    """A classic group that is upgraded within a rebalance: the coordinator does not know what its members still own."""
    members = {name: replace(each, readable={}) for name, each in known.members.items()}
    return replace(known, members=members)


def _after_leaving(known: Group, name: str) -> Group:
    known = replace(known.without(name, surely=True), assigned=False)
    rest = known.members.values()
    if any(each.is_consumer for each in rest) or known.form == CLASSIC:
        return known
    if known.gone or not rest:
        return replace(known, form=UNKNOWN if known.gone else known.form)
    if known.config.policy not in DOWNGRADES:
        return known
    return replace(known, form=CLASSIC, changed=True)


def _later(known: Group, ms: int) -> Group:
    config = known.config
    for each in [*known.members.values()]:
        session = config.session_ms if each.is_consumer else SESSION_MS
        aged = replace(each, silent_ms=each.silent_ms + ms, late_ms=each.late_ms + ms)
        may_be_late = aged.late_ms > REBALANCE_MS - NEAR_MS
        if aged.silent_ms > session - NEAR_MS or may_be_late:
            known = known.without(each.name, surely=False)
            known = replace(known, form=UNKNOWN, assigned=False, changed=False)
        else:
            known = known.having(aged)
    return known


@cached_on_history
def mixed_steps(history: History) -> tuple[MixedStep, ...]:
    """The steps up to the first one without an answer."""

    def read(op: Op, known: Group) -> MixedStep:
        return MixedStep(op, OPERATIONS.event_of(op.step), payload(op), known)

    found = answered_steps(history, Group(config=settings(history)), read)
    return tuple(each for each in found if not isinstance(each.request, Pass))
