"""The coordinator of one KIP-848 consumer group, released with 4.0.0: reconciles members by their heartbeats.

Source: ``GroupMetadataManager``, ``CurrentAssignmentBuilder`` and ``ConsumerGroupMember`` of the releases. Only dynamic
members, whose ids the clients generate. Every heartbeat is answered immediately.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, assert_never

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.ops import (
    CLIENTS,
    PASSES,
    REBALANCE_MS,
    SESSION_MS,
    SUBSCRIPTIONS,
    Action,
    Answered,
    Beat,
    Event,
    Owns,
    Partitions,
    Pass,
    Rejected,
    Says,
)

TOPICS: Final = {"t": 3, "u": 2}
"""Existing topics, with their numbers of partitions."""
LEAVING: Final = -1
"""The member epoch of a leaving member, and of the answer to it."""

INVALID_REQUEST = "INVALID_REQUEST"
GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"


class Memory(NamedTuple):
    """What a client knows from earlier answers."""

    client: str
    epoch: int = 0
    given: Partitions = ()
    before: Partitions = ()

    def after(self, answer: Answered) -> "Memory":
        if answer.epoch == LEAVING:
            return Memory(self.client)
        if answer.assignment is None:
            return self._replace(epoch=answer.epoch)
        return Memory(self.client, answer.epoch, answer.assignment, self.given)


class Member(NamedTuple):
    id: str
    topics: tuple[str, ...]
    epoch: int = 0
    previous: int = 0
    """The previous epoch, which a client uses that did not get the last answer."""
    assigned: Partitions = ()
    pending: Partitions = ()
    """Partitions that it must revoke, and has not confirmed as revoked."""
    waiting: bool = False
    """It waits for partitions that other members must revoke."""
    silent_ms: int = 0
    revoking_ms: int = 0


class State(NamedTuple):
    exists: bool = False
    group_epoch: int = 0
    target_epoch: int = 0
    target: tuple[tuple[str, Partitions], ...] = ()
    members: tuple[Member, ...] = ()
    """Sorted by id."""
    clients: tuple[Memory, ...] = ()

    def member(self, id: str) -> Member | None:
        return next((each for each in self.members if each.id == id), None)

    def memory(self, client: str) -> Memory:
        return next((each for each in self.clients if each.client == client), Memory(client))

    def target_of(self, id: str) -> Partitions:
        return next((given for member, given in self.target if member == id), ())


class ConsumerGroup:
    topics: Mapping[str, int] = TOPICS

    def __init__(self, topics: Mapping[str, int] = TOPICS) -> None:
        """``topics``: the existing topics, with their numbers of partitions."""
        self.topics = topics

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case Beat():
                return self.beat(state, event)
            case Pass(ms):
                return Transition(self.passed(state, ms))
            case _:
                assert_never(event)

    def enabled(self, state: State, /) -> Iterator[Event]:
        """Events that the coordinator accepts."""
        for client in CLIENTS:
            if state.member(client) is None:
                yield from (Beat(client, Says.JOIN, topics=topics, owned="none") for topics in SUBSCRIPTIONS)
                continue
            yield from (Beat(client, Says.STAY, owned=owned) for owned in (None, "told", "before"))
            yield from (Beat(client, Says.STAY, topics=topics, owned="told") for topics in SUBSCRIPTIONS)
            yield Beat(client, Says.LEAVE)
        yield from map(Pass, PASSES)

    # A heartbeat

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        memory = state.memory(beat.client)
        owned = claimed(memory, beat.owned)
        epoch = {Says.JOIN: 0, Says.LEAVE: LEAVING, Says.STAY: memory.epoch - beat.behind}[beat.says]
        return self.heartbeat(state, beat, epoch, owned)

    def heartbeat(self, state: State, beat: Beat, epoch: int, owned: Partitions | None) -> Transition[State, Action]:
        """A heartbeat with this epoch and these partitions, which may differ from what the client received."""
        memory = state.memory(beat.client)
        error = self.fault(state, beat, epoch, owned)
        if error is not None:
            return Transition(state, (Rejected(beat.client, error),))
        if epoch == LEAVING:
            answer = Answered(beat.client, LEAVING, None)
            return Transition(remembered(self.without(state, beat.client), memory.after(answer)), (answer,))
        state = self.subscribed(state, beat)
        if state.group_epoch > state.target_epoch:
            state = self.aimed(state)
        before = state.member(beat.client)
        assert before is not None
        after = self.reconciled(state, before, owned)._replace(silent_ms=0)
        full = epoch == 0 or (beat.topics is not None and owned is not None)
        changed = after.assigned if full or after.assigned != before.assigned else None
        answer = Answered(beat.client, after.epoch, changed)
        return Transition(remembered(replaced(state, after), memory.after(answer)), (answer,))

    def fault(self, state: State, beat: Beat, epoch: int, owned: Partitions | None) -> str | None:
        if epoch < LEAVING or (epoch == 0 and (beat.topics is None or owned is None or owned)):
            return INVALID_REQUEST
        if not state.exists and epoch != 0:
            return GROUP_ID_NOT_FOUND
        member = state.member(beat.client)
        if member is None:
            return None if epoch == 0 else UNKNOWN_MEMBER_ID
        if epoch == LEAVING or not self.is_stale(member, epoch, owned):
            return None
        return FENCED_MEMBER_EPOCH

    def is_stale(self, member: Member, epoch: int, owned: Partitions | None) -> bool:
        """The previous epoch is still valid if the member owns only partitions that are assigned to it."""
        if epoch == member.epoch:
            return False
        return not (epoch == member.previous and owned is not None and {*owned} <= {*member.assigned})

    # The group

    def subscribed(self, state: State, beat: Beat) -> State:
        member = state.member(beat.client) or Member(beat.client, ())
        topics = member.topics if beat.topics is None else beat.topics
        if state.member(beat.client) is not None and topics == member.topics:
            return state
        return replaced(state, member._replace(topics=topics))._replace(exists=True, group_epoch=self.bumped(state))

    def bumped(self, state: State) -> int:
        return state.group_epoch + 1

    def aimed(self, state: State) -> State:
        return state._replace(target=tuple(self.shares(state)), target_epoch=state.group_epoch)

    def shares(self, state: State) -> Iterator[tuple[str, Partitions]]:
        """A balanced and sticky target assignment; the protocol leaves the choice among such assignments open."""
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        owners = {partition: member for member, partitions in state.target for partition in partitions}
        topics = {topic for each in state.members for topic in each.topics}
        wanted = [(topic, number) for topic, size in self.topics.items() if topic in topics for number in range(size)]
        quota = -(-len(wanted) // max(len(state.members), 1))
        late: list[Partition] = []
        for partition in wanted:
            owner = state.member(owners.get(partition, ""))
            keeps = owner is not None and partition[0] in owner.topics and len(given[owner.id]) < quota
            if owner is not None and keeps:
                given[owner.id].append(partition)
            else:
                late.append(partition)
        for partition in late:
            able = [each.id for each in state.members if self.may_have(each, partition)]
            if able:
                given[min(able, key=lambda id: (len(given[id]), id))].append(partition)
        return ((id, tuple(sorted(partitions))) for id, partitions in given.items())

    def may_have(self, member: Member, partition: Partition) -> bool:
        return partition[0] in member.topics

    def without(self, state: State, id: str) -> State:
        members = tuple(each for each in state.members if each.id != id)
        return state._replace(members=members, group_epoch=self.bumped(state))

    # Reconciliation of one member

    def reconciled(self, state: State, member: Member, owned: Partitions | None) -> Member:
        if member.pending:
            if not self.has_revoked(member, owned):
                return member
            return self.computed(state, member._replace(pending=(), revoking_ms=0), owned, member.epoch + 1)
        if member.epoch == state.target_epoch and not member.waiting:
            return member
        return self.computed(state, member, owned, member.epoch)

    def has_revoked(self, member: Member, owned: Partitions | None) -> bool:
        return owned is not None and not {*owned} & {*member.pending}

    def computed(self, state: State, member: Member, owned: Partitions | None, epoch: int) -> Member:
        """The member's next assignment: with ``epoch`` while it has partitions to revoke, else with the target's."""
        aims = state.target_of(member.id)
        keep = [each for each in member.assigned if each in aims]
        revoke = [each for each in member.assigned if each not in aims]
        if revoke and (owned is None or {*owned} & {*revoke}):
            revoking_member = self.advanced(member, epoch)
            return revoking_member._replace(assigned=tuple(sorted(keep)), pending=tuple(sorted(revoke)), waiting=False)
        new = [each for each in aims if each not in member.assigned]
        free = [each for each in new if self.is_free(state, member, each)]
        settled = self.advanced(member, state.target_epoch)
        return settled._replace(assigned=tuple(sorted([*keep, *free])), waiting=len(free) < len(new))

    def is_free(self, state: State, member: Member, partition: Partition) -> bool:
        others = (each for each in state.members if each.id != member.id)
        return not any(partition in each.assigned or partition in each.pending for each in others)

    def advanced(self, member: Member, epoch: int) -> Member:
        return member if member.epoch == epoch else member._replace(epoch=epoch, previous=member.epoch)

    # Time

    def passed(self, state: State, ms: int) -> State:
        aged = state._replace(members=tuple(_aged(each, ms) for each in state.members))
        for each in aged.members:
            if self.is_late(each):
                aged = self.without(aged, each.id)
        return aged

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= SESSION_MS or member.revoking_ms >= REBALANCE_MS


def claimed(memory: Memory, owned: Owns) -> Partitions | None:
    """The partitions that ``owned`` stands for."""
    match owned:
        case None:
            return None
        case "none":
            return ()
        case "told":
            return memory.given
        case "before":
            return tuple(sorted({*memory.given, *memory.before}))
        case _:
            assert_never(owned)


def replaced(state: State, member: Member) -> State:
    others = (each for each in state.members if each.id != member.id)
    return state._replace(members=tuple(sorted((*others, member))))


def remembered(state: State, memory: Memory) -> State:
    others: Iterable[Memory] = (each for each in state.clients if each.client != memory.client)
    return state._replace(clients=tuple(sorted((*others, memory))))


def _aged(member: Member, ms: int) -> Member:
    revoking = member.revoking_ms + ms if member.pending else 0
    return member._replace(silent_ms=member.silent_ms + ms, revoking_ms=revoking)
