"""The coordinator of one KIP-932 share group, released with 4.2.0: members share partitions, and revoke none.

Source: ``GroupMetadataManager``, ``ShareGroupAssignmentBuilder`` and ``SimpleAssignor`` of the releases. Partitions get
state from a persister, which answers at once here. Epochs are those of 4.3.1 and 4.4.0; 4.2.0 raises them more often.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.ops import Answered
from kipcheck.conformance.protocols.reconciled import log_ops, terms
from kipcheck.conformance.protocols.reconciled.model import PacedGroup, member_of, part_of, with_member
from kipcheck.conformance.protocols.share_group import ops
from kipcheck.conformance.protocols.share_group.rules import CURRENT, DEFAULT, Config, Rules

Shares: TypeAlias = dict[str, set[tuple[str, int]]]


class Member(NamedTuple):
    id: str
    topics: tuple[str, ...]
    epoch: int = 0
    previous: int = 0
    """The previous epoch, which a client uses that did not get the last answer."""
    assigned: terms.Partitions = ()
    silent_ms: int = 0
    pending: terms.Partitions = ()
    """It never has to revoke a partition, or to wait for one, and is never static."""
    waiting: bool = False
    revoking_ms: int = 0
    instance: str | None = None


class State(NamedTuple):
    exists: bool = False
    group_epoch: int = 0
    target_epoch: int = 0
    target: tuple[tuple[str, terms.Partitions], ...] = ()
    members: tuple[Member, ...] = ()
    """Sorted by id."""
    clients: tuple[terms.Memory, ...] = ()
    aimed_ms: int | None = None
    """The time since the target assignment was computed; None: it was not."""
    initialized: tuple[str, ...] = ()
    """The topics whose partitions have state. Sorted."""
    offsets: tuple[log_ops.Offset, ...] = ()
    """None: the partitions of share groups have their state elsewhere."""
    new_topics: Literal["none", "now", "earlier"] = "none"
    """Whether topics got state since the group last looked at its topics, and some time has passed since then."""


class ShareGroup(PacedGroup[State, Member, ops.Beat, None]):
    rules: Rules = CURRENT
    config: Config = DEFAULT
    revocation_ms = ops.SESSION_MS

    def __init__(self, rules: Rules = CURRENT, config: Config = DEFAULT) -> None:
        self.rules = rules
        self.config = config

    def initial(self) -> State:
        first = 1 if self.rules.begins_at_1 else 0
        return State(group_epoch=first, target_epoch=first)

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Beat():
                return self.beat(state, event)
            case ops.Pass(ms):
                return Transition(self.passed(state, ms))
            case _:
                return self.logged(state, event)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        """Events that the coordinator accepts."""
        for client in ops.CLIENTS:
            if member_of(state.members, client) is None:
                yield from (ops.Beat(client, terms.Says.JOIN, topics=topics) for topics in ops.SUBSCRIPTIONS)
            else:
                yield from (
                    ops.Beat(client, terms.Says.STAY, topics=topics) for topics in (None, *ops.SUBSCRIPTIONS)
                )  # fmt: skip
                yield ops.Beat(client, terms.Says.LEAVE)
        yield from map(ops.Pass, ops.PASSES)

    def beat(self, state: State, beat: ops.Beat) -> Transition[State, ops.Action]:
        memory = terms.memory_of(state.clients, beat.client)
        epoch = memory.epoch_in(beat)
        error = terms.INVALID_REQUEST if is_invalid(beat, epoch) else self.fault(state, beat, epoch, None)
        if error is not None:
            return Transition(state, (terms.Rejected(beat.client, error),))
        if epoch == terms.LEAVING:
            answer = Answered(beat.client, epoch, None)
            return Transition(remembered(self.gone(state, beat.client, epoch), memory, answer), (answer,))
        is_first = not state.members
        state = self.initialized(self.looked_again(self.subscribed(state, beat)))
        if self.may_aim(state, is_first):
            state = state._replace(target=tuple(self.shares(state)), target_epoch=state.group_epoch, aimed_ms=0)
        before = member_of(state.members, beat.client)
        assert before is not None
        after = self.reconciled(state, before, None)._replace(silent_ms=0)
        full = epoch == 0 or beat.topics is not None
        given = after.assigned if full or after.assigned != before.assigned else None
        answer = Answered(beat.client, after.epoch, given)
        return Transition(remembered(with_member(state, after), memory, answer), (answer,))

    def shut(self, state: State, beat: ops.Beat, epoch: int) -> str | None:
        if not state.exists and epoch != 0:
            return terms.GROUP_ID_NOT_FOUND
        return terms.GROUP_MAX_SIZE_REACHED if epoch != terms.LEAVING and self.is_full(state, beat.client) else None

    def is_full(self, state: State, id: str) -> bool:
        """Whether the group has no room for this client."""
        return len(state.members) >= self.config.max_size and member_of(state.members, id) is None

    def unfit(self, state: State, beat: ops.Beat, epoch: int, owned: None) -> str | None:
        return None

    def owns_no_more(self, member: Member, owned: None) -> bool:
        return True

    def subscribed(self, state: State, beat: ops.Beat) -> State:
        known = member_of(state.members, beat.client)
        member = known or Member(beat.client, ())
        after = member if beat.topics is None else member._replace(topics=beat.topics)
        changed = known is None or {*after.topics} != {*member.topics}
        state = with_member(state._replace(exists=True), after)
        return state._replace(group_epoch=self.bumped(state)) if changed else state

    def looked_again(self, state: State) -> State:
        """Some time after topics got state the group looks at them, and needs a target assignment if none is due."""
        if state.new_topics != "earlier":
            return state
        due = state.group_epoch > state.target_epoch
        return state._replace(group_epoch=state.group_epoch if due else self.bumped(state), new_topics="none")

    def initialized(self, state: State) -> State:
        """The partitions of topics to which a member subscribes get state."""
        topics = tuple(sorted({topic for member in state.members for topic in member.topics} | {*state.initialized}))
        return state if topics == state.initialized else state._replace(initialized=topics, new_topics="now")

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        """Each partition has a member that subscribes to its topic, and each member that subscribes has a partition.

        The protocol leaves the choice among such assignments open.
        """
        shares: Shares = {member.id: set() for member in state.members}
        for topic, size in TOPICS.items():
            able = [member.id for member in state.members if topic in member.topics]
            rows = max(size, len(able)) if able else 0
            for row in range(rows):
                shares[able[row % len(able)]].add((topic, row % size))
        return ((id, tuple(sorted(partitions))) for id, partitions in shares.items())

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after._replace(group_epoch=self.bumped(state))

    def has_revoked(self, member: Member, owned: None) -> bool:
        return True

    def reconciled(self, state: State, member: Member, owned: None) -> Member:
        return self.reduced(super().reconciled(state, member, owned))

    def reduced(self, member: Member) -> Member:
        """The member without the partitions of topics that it does not subscribe to, which an old target may have."""
        return member._replace(assigned=tuple(each for each in member.assigned if each[0] in member.topics))

    def computed(self, state: State, member: Member, owned: None, epoch: int) -> Member:
        previous = member.epoch
        return member._replace(epoch=state.target_epoch, previous=previous, assigned=part_of(state.target, member.id))

    def older(self, state: State, ms: int) -> State:
        after = super().older(state, ms)
        if state.new_topics == "now":
            after = after._replace(new_topics="earlier")
        return after._replace(aimed_ms=None if state.aimed_ms is None else state.aimed_ms + ms)


def is_invalid(beat: ops.Beat, epoch: int) -> bool:
    """Whether no group accepts a heartbeat with this epoch. Source: KIP-932, Share group heartbeat."""
    return beat.flaw is not None or epoch < terms.LEAVING or (epoch == 0 and not beat.topics)


def remembered(state: State, memory: terms.Memory, answer: Answered) -> State:
    return state._replace(clients=terms.with_memory(state.clients, memory.after(answer.epoch, answer.assignment)))
