"""The coordinator of one KIP-1071 streams group: assigns tasks, and reconciles members by their heartbeats.

Source: ``GroupMetadataManager.streamsGroupHeartbeat``, ``CurrentAssignmentBuilder`` and ``StreamsGroup`` of the
releases from 4.2 on, without delay before target assignments. Which member gets which task is the coordinator's choice.

Not modelled: static members, standby and warm-up tasks, internal topics, endpoints and shutdown requests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never, final

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import LEAVING, TOPICS, Memory, claimed, sent_epoch
from kipcheck.conformance.protocols.consumer_group.ops import Answered as Remembered, Rejected, Says
from kipcheck.conformance.protocols.streams_group.ops import (
    CLIENTS,
    PASSES,
    REBALANCE_MS,
    SESSION_MS,
    TOPOLOGIES,
    Action,
    Answered,
    Beat,
    Consume,
    Describe,
    Described,
    DescribedMember,
    Event,
    Pass,
    Tasks,
)

INVALID_REQUEST: Final = "INVALID_REQUEST"
GROUP_ID_NOT_FOUND: Final = "GROUP_ID_NOT_FOUND"
UNKNOWN_MEMBER_ID: Final = "UNKNOWN_MEMBER_ID"
FENCED_MEMBER_EPOCH: Final = "FENCED_MEMBER_EPOCH"
STREAMS_INVALID_TOPOLOGY: Final = "STREAMS_INVALID_TOPOLOGY"
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = "STREAMS_INVALID_TOPOLOGY_EPOCH"
STALE_TOPOLOGY: Final = "STALE_TOPOLOGY"
MISSING_SOURCE_TOPICS: Final = "MISSING_SOURCE_TOPICS"
EMPTY, NOT_READY, ASSIGNING, RECONCILING, STABLE = "Empty", "NotReady", "Assigning", "Reconciling", "Stable"
"""The states of a group that describes have."""
NO_TASK: Final = 99
"""A partition that no topic has."""
STAYS: Final = 2
"""A member stays so much more often than it joins again or leaves."""
Form: TypeAlias = Literal["none", "streams", "consumer"]


@final
@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the broker, in milliseconds."""

    session_ms: int = SESSION_MS
    """``group.streams.session.timeout.ms``"""


DEFAULT: Final = Config()


class Member(NamedTuple):
    id: str
    topology_epoch: int
    epoch: int = 0
    previous: int = 0
    """The previous epoch, which a client uses that did not get the last answer."""
    assigned: Tasks = ()
    pending: Tasks = ()
    """Tasks that it must revoke, and has not confirmed as revoked."""
    waiting: bool = False
    """It waits for tasks that other members must revoke."""
    silent_ms: int = 0
    revoking_ms: int = 0


class State(NamedTuple):
    form: Form = "none"
    """``none``: there is no group."""
    epoch: int = 1
    target_epoch: int = 1
    target: tuple[tuple[str, Tasks], ...] = ()
    topology: tuple[str, ...] | None = None
    topology_epoch: int = 0
    members: tuple[Member, ...] = ()
    """Sorted by id."""
    clients: tuple[Memory, ...] = ()

    def member(self, id: str) -> Member | None:
        return next((each for each in self.members if each.id == id), None)

    def memory(self, client: str) -> Memory:
        return next((each for each in self.clients if each.client == client), Memory(client))

    def target_of(self, id: str) -> Tasks:
        return next((given for member, given in self.target if member == id), ())


class StreamsGroup:
    topics: Mapping[str, int] = TOPICS

    def __init__(self, aims_when_empty: bool = True) -> None:
        """``aims_when_empty``: a target assignment is computed when the last member leaves."""
        self.aims_when_empty = aims_when_empty

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case Beat():
                return self.beat(state, event)
            case Describe():
                return Transition(state, (self.described(state),))
            case Consume():
                return self.consumed(state)
            case Pass(ms):
                return Transition(self.passed(state, ms))
            case _:
                assert_never(event)

    def enabled(self, state: State, /) -> Iterator[Event]:
        """Events that the coordinator accepts."""
        if state.form == "none":
            yield Consume()
        if state.form == "consumer":
            return
        if state.form == "streams":
            yield Describe()
        if state.members:
            # Without members time changes nothing, and running brokers take it in full.
            yield from map(Pass, (PASSES[0], *PASSES))
        for client in CLIENTS:
            joins = [Beat(client, Says.JOIN, 0, *known, "none") for known in self._runnable(state)]
            member = state.member(client)
            if member is None:
                yield from joins
                continue
            yield joins[0]
            yield Beat(client, Says.LEAVE)
            stays = [Beat(client, Says.STAY, owned=owned) for owned in (None, "told", "before")]
            yield from stays * STAYS
            if 0 < member.previous < member.epoch:
                yield Beat(client, Says.STAY, member.epoch - member.previous, owned="told")

    def _runnable(self, state: State) -> Iterator[tuple[tuple[str, ...], int]]:
        """Topologies with which a member may join, each with its epoch."""
        if state.topology is None:
            yield from ((each, epoch) for each in TOPOLOGIES for epoch in range(2))
        else:
            yield state.topology, state.topology_epoch
            yield from ((each, epoch) for each in TOPOLOGIES[:2] for epoch in range(state.topology_epoch))

    # A heartbeat

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        memory = state.memory(beat.client)
        epoch, owned = sent_epoch(memory, beat.says, beat.behind), owned_tasks(memory, beat)
        error = self.invalid(beat, epoch, owned) or self.fault(state, beat, epoch, owned)
        if error is not None:
            return Transition(state, (Rejected(beat.client, error),))
        if epoch == LEAVING:
            return self._answered(self.without(state, beat.client), memory, Answered(beat.client, LEAVING, None))
        state = self.joined(state, beat) if epoch == 0 else state
        if state.epoch > state.target_epoch:
            state = state._replace(target=tuple(self.shares(state)), target_epoch=state.epoch)
        before = state.member(beat.client)
        assert before is not None
        after = self.reconciled(state, before, owned)._replace(silent_ms=0)
        given = after.assigned if epoch == 0 or after.assigned != before.assigned else None
        answer = Answered(beat.client, after.epoch, given, self.statuses(state, after))
        return self._answered(with_member(state, after), memory, answer)

    def _answered(self, state: State, memory: Memory, answer: Answered) -> Transition[State, Action]:
        known = memory.after(Remembered(answer.client, answer.epoch, answer.tasks))
        others = (each for each in state.clients if each.client != memory.client)
        return Transition(state._replace(clients=tuple(sorted((*others, known)))), (answer,))

    def invalid(self, beat: Beat, epoch: int, owned: Tasks | None) -> str | None:
        """The error of a heartbeat that no group accepts."""
        if is_invalid(beat, epoch, owned):
            return INVALID_REQUEST
        return STREAMS_INVALID_TOPOLOGY if beat.flaw == "changelog" and epoch == 0 else None

    def fault(self, state: State, beat: Beat, epoch: int, owned: Tasks | None) -> str | None:
        if state.form == "consumer" or (state.form == "none" and epoch != 0):
            return GROUP_ID_NOT_FOUND
        member = state.member(beat.client)
        if member is None and epoch != 0:
            return UNKNOWN_MEMBER_ID
        if epoch == LEAVING:
            return None
        if member is not None and self.is_stale(member, epoch, owned):
            return FENCED_MEMBER_EPOCH
        if epoch == 0 and not self.may_run(state, beat):
            return INVALID_REQUEST
        return INVALID_REQUEST if not self.is_possible(state, owned) else None

    def is_stale(self, member: Member, epoch: int, owned: Tasks | None) -> bool:
        """The previous epoch is still valid if the member owns only tasks that are assigned to it."""
        if epoch == 0 or epoch == member.epoch:
            return False
        repeats = epoch == member.previous and owned is not None and {*owned} <= {*member.assigned}
        return epoch > member.epoch or not repeats

    def may_run(self, state: State, beat: Beat) -> bool:
        """Whether a member may join with its topology: that of the group, or any with an older epoch."""
        if state.topology is None or beat.topology_epoch < state.topology_epoch:
            return True
        return (beat.topology, beat.topology_epoch) == (state.topology, state.topology_epoch)

    def is_possible(self, state: State, owned: Tasks | None) -> bool:
        """Whether the owned tasks exist, as far as the group knows its tasks."""
        return not self.is_ready(state) or all(self.exists(state, each) for each in owned or ())

    def exists(self, state: State, task: Partition) -> bool:
        return task[0] in (state.topology or ()) and task[1] < self.topics[task[0]]

    def is_ready(self, state: State) -> bool:
        """Whether all topics of the topology exist."""
        return state.topology is not None and all(each in self.topics for each in state.topology)

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        found = () if self.is_ready(state) else (MISSING_SOURCE_TOPICS,)
        return (*found, STALE_TOPOLOGY) if member.topology_epoch < state.topology_epoch else found

    # The group

    def joined(self, state: State, beat: Beat) -> State:
        if state.topology is None:
            state = state._replace(form="streams", topology=beat.topology, topology_epoch=beat.topology_epoch)
        known = state.member(beat.client)
        if known is not None and known.topology_epoch == beat.topology_epoch:
            return state
        member = (known or Member(beat.client, 0))._replace(topology_epoch=beat.topology_epoch)
        return with_member(state, member)._replace(epoch=self.bumped(state))

    def bumped(self, state: State) -> int:
        return state.epoch + 1

    def shares(self, state: State) -> Iterator[tuple[str, Tasks]]:
        """A balanced and sticky target assignment; the protocol leaves the choice among such assignments open."""
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        wanted = [(each, number) for each in state.topology or () for number in range(self.topics.get(each, 0))]
        wanted = wanted if self.is_ready(state) else []
        owners = {task: member for member, tasks in state.target for task in tasks}
        quota = -(-len(wanted) // max(len(state.members), 1))
        late: list[Partition] = []
        for task in wanted:
            owner = owners.get(task, "")
            if owner in given and len(given[owner]) < quota:
                given[owner].append(task)
            else:
                late.append(task)
        for task in late:
            given[min(given, key=lambda id: (len(given[id]), id))].append(task)
        return ((id, tuple(sorted(tasks))) for id, tasks in given.items())

    def without(self, state: State, id: str) -> State:
        members = tuple(each for each in state.members if each.id != id)
        target = tuple(each for each in state.target if each[0] != id)
        state = state._replace(members=members, target=target, epoch=self.bumped(state))
        return state._replace(target_epoch=state.epoch) if self.aims_when_empty and not members else state

    def consumed(self, state: State) -> Transition[State, Action]:
        """A consumer joins the group."""
        if not self.admits_consumers(state):
            return Transition(state, (Rejected("", GROUP_ID_NOT_FOUND),))
        return Transition(state._replace(form="consumer"))

    def admits_consumers(self, state: State) -> bool:
        return state.form != "streams"

    # Reconciliation of one member

    def reconciled(self, state: State, member: Member, owned: Tasks | None) -> Member:
        if member.pending:
            if not self.has_revoked(member, owned):
                return member
            return self.computed(state, member._replace(pending=(), revoking_ms=0), owned, member.epoch + 1)
        if member.epoch == state.target_epoch and not member.waiting:
            return member
        return self.computed(state, member, owned, member.epoch)

    def has_revoked(self, member: Member, owned: Tasks | None) -> bool:
        return owned is not None and not {*owned} & {*member.pending}

    def computed(self, state: State, member: Member, owned: Tasks | None, epoch: int) -> Member:
        """The member's next assignment: with ``epoch`` while it has tasks to revoke, else with the target's."""
        aims = state.target_of(member.id)
        keep = [each for each in member.assigned if each in aims]
        revoke = [each for each in member.assigned if each not in aims]
        if revoke and (owned is None or {*owned} & {*revoke}):
            revoking = member._replace(epoch=epoch, previous=member.epoch, waiting=False)
            return revoking._replace(assigned=tuple(sorted(keep)), pending=tuple(sorted(revoke)))
        new = [each for each in aims if each not in member.assigned]
        free = [each for each in new if self.is_free(state, member, each)]
        settled = member._replace(epoch=state.target_epoch, previous=member.epoch, waiting=len(free) < len(new))
        return settled._replace(assigned=tuple(sorted([*keep, *free])))

    def is_free(self, state: State, member: Member, task: Partition) -> bool:
        others = (each for each in state.members if each.id != member.id)
        return not any(task in each.assigned or task in each.pending for each in others)

    # Describe

    def described(self, state: State) -> Action:
        if state.form != "streams":
            return Rejected("", GROUP_ID_NOT_FOUND)
        return Described(
            self.phase(state), state.epoch, state.target_epoch, state.topology_epoch,
            tuple(sorted(state.topology or ())), tuple(self.described_member(state, each) for each in state.members),
        )  # fmt: skip

    def described_member(self, state: State, member: Member) -> DescribedMember:
        target = state.target_of(member.id)
        return DescribedMember(member.id, member.epoch, member.topology_epoch, member.assigned, target)

    def phase(self, state: State) -> str:
        """The state of the group."""
        if not state.members:
            return EMPTY
        if not self.is_ready(state):
            return NOT_READY
        if state.epoch > state.target_epoch:
            return ASSIGNING
        settled = all(
            each.epoch == state.target_epoch and not each.waiting and not each.pending for each in state.members
        )
        return STABLE if settled else RECONCILING

    # Time

    def passed(self, state: State, ms: int) -> State:
        aged = state._replace(members=tuple(_aged(each, ms) for each in state.members))
        for each in aged.members:
            if self.is_late(each):
                aged = self.without(aged, each.id)
        return aged

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= SESSION_MS or member.revoking_ms >= REBALANCE_MS


def owned_tasks(memory: Memory, beat: Beat) -> Tasks | None:
    """The active tasks in a heartbeat of a client that knows this."""
    found = claimed(memory, beat.owned)
    return (*(found or ()), ("t", NO_TASK)) if beat.flaw == "task" else found


def is_invalid(beat: Beat, epoch: int, owned: Tasks | None) -> bool:
    """Whether the heartbeat is invalid whatever the group is, its topology aside. A static member has an instance id,
    which none has here."""
    if epoch < LEAVING or beat.flaw in ("group", "member", "instance", "rack"):
        return True
    if beat.flaw == "standby" and owned is not None:
        return True
    if epoch != 0:
        return beat.topology is not None
    return beat.flaw in ("timeout", "regex") or owned is None or bool(owned) or beat.topology is None


def with_member(state: State, member: Member) -> State:
    others = (each for each in state.members if each.id != member.id)
    return state._replace(members=tuple(sorted((*others, member))))


def _aged(member: Member, ms: int) -> Member:
    revoking = member.revoking_ms + ms if member.pending else 0
    return member._replace(silent_ms=member.silent_ms + ms, revoking_ms=revoking)
