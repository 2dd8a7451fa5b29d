"""The coordinator of one KIP-1071 streams group: assigns tasks, and reconciles members by their heartbeats.

Source: ``GroupMetadataManager.streamsGroupHeartbeat``, ``CurrentAssignmentBuilder`` and ``StreamsGroup`` of the
releases from 4.2 on, without delay before target assignments. Which member gets which task is the coordinator's choice.

Not modelled: warm-up tasks, endpoints and shutdown requests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import (
    AWAY,
    FENCED_INSTANCE_ID,
    LEAVING,
    LEFT,
    UNRELEASED_INSTANCE_ID,
    Memory,
    claimed,
    sent_epoch,
)
from kipcheck.conformance.protocols.consumer_group.ops import INSTANCES, Answered as Remembered, Rejected, Says
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
from kipcheck.conformance.protocols.streams_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.streams_group.state import Member, State, with_member
from kipcheck.conformance.protocols.streams_group.topology import (
    STATEFUL,
    WRONG,
    internal_topics,
    missing_sources,
    sizes,
)

INVALID_REQUEST: Final = "INVALID_REQUEST"
GROUP_ID_NOT_FOUND: Final = "GROUP_ID_NOT_FOUND"
UNKNOWN_MEMBER_ID: Final = "UNKNOWN_MEMBER_ID"
FENCED_MEMBER_EPOCH: Final = "FENCED_MEMBER_EPOCH"
STREAMS_INVALID_TOPOLOGY: Final = "STREAMS_INVALID_TOPOLOGY"
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = "STREAMS_INVALID_TOPOLOGY_EPOCH"
STALE_TOPOLOGY: Final = "STALE_TOPOLOGY"
MISSING_SOURCE_TOPICS: Final = "MISSING_SOURCE_TOPICS"
INCORRECTLY_PARTITIONED_TOPICS: Final = "INCORRECTLY_PARTITIONED_TOPICS"
MISSING_INTERNAL_TOPICS: Final = "MISSING_INTERNAL_TOPICS"
EMPTY, NOT_READY, ASSIGNING, RECONCILING, STABLE = "Empty", "NotReady", "Assigning", "Reconciling", "Stable"
"""The states of a group that describes have."""
NO_TASK: Final = 99
"""A partition that no topic has."""
STAYS: Final = 2
"""A member stays so much more often than it joins again or leaves."""


@final
@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the broker, in milliseconds."""

    session_ms: int = SESSION_MS
    """``group.streams.session.timeout.ms``"""
    standbys: int = 1
    """``group.streams.num.standby.replicas``"""


DEFAULT: Final = Config()
SETTINGS: Final[Mapping[str, str]] = {
    "group.streams.session.timeout.ms": "session_ms",
    "group.streams.num.standby.replicas": "standbys",
}
"""The field that has a setting."""


class StreamsGroup:
    def __init__(self, rules: Rules = CURRENT, config: Config = DEFAULT) -> None:
        self.rules = rules
        self.config = config

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
            if member is None or member.epoch == AWAY:
                yield from joins
                yield from (replace(each, instance=INSTANCES[0]) for each in joins[:1] if self.rules.takes_instances)
                continue
            instance = member.instance
            yield replace(joins[0], instance=instance)
            yield Beat(client, Says.LEAVE, instance=instance)
            if instance is not None:
                yield Beat(client, Says.AWAY, instance=instance)
            stays = [Beat(client, Says.STAY, owned=owned, instance=instance) for owned in (None, "told", "before")]
            yield from stays * STAYS
            if 0 < member.previous < member.epoch:
                yield Beat(client, Says.STAY, member.epoch - member.previous, owned="told", instance=instance)

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
        standby = owned_standby(state.standby_memory(beat.client), beat)
        error = self.invalid(beat, epoch, owned) or self.fault(state, beat, epoch, owned, standby)
        if error is not None:
            return Transition(state, (Rejected(beat.client, error),))
        if epoch in LEFT:
            left = self.without(state, beat.client) if epoch == LEAVING else self.away(state, beat.client)
            return self._answered(left, memory, Answered(beat.client, epoch, None))
        known = state
        state = self.joined(self.replaced(state, beat), beat) if epoch == 0 else state
        if self.is_ready(state) != state.validated:
            state = state._replace(validated=not state.validated, epoch=max(state.epoch, self.bumped(known)))
        if state.epoch > state.target_epoch:
            state = state._replace(target=tuple(self.shares(state)), target_epoch=state.epoch)
            state = state._replace(standby_target=tuple(self.standby_shares(state)))
        before = state.member(beat.client)
        assert before is not None
        after = self.reconciled(state, before, owned, standby)._replace(silent_ms=0)
        changed = (after.assigned, after.standby) != (before.assigned, before.standby)
        tells = epoch == 0 or changed
        statuses = self.statuses(state, after)
        missing = () if state.created else tuple(sorted(internal_topics(state.topology or ()).items()))
        active, spares, warm = (after.assigned, after.standby, ()) if tells else (None, None, None)
        answer = Answered(beat.client, after.epoch, active, spares, warm, statuses, self.creates(missing))
        return self._answered(
            with_member(state, after)._replace(created=state.created or bool(missing)), memory, answer
        )

    def creates(self, missing: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        """The internal topics that the broker creates. ``missing``: those that do not exist."""
        return missing

    def _answered(self, state: State, memory: Memory, answer: Answered) -> Transition[State, Action]:
        known = memory.after(Remembered(answer.client, answer.epoch, answer.tasks))
        standby = state.standby_memory(memory.client).after(Remembered(answer.client, answer.epoch, answer.standby))
        state = state._replace(clients=_with(state.clients, known), standbys=_with(state.standbys, standby))
        return Transition(state, (answer,))

    def invalid(self, beat: Beat, epoch: int, owned: Tasks | None) -> str | None:
        """The error of a heartbeat that no group accepts."""
        if is_invalid(beat, epoch, owned) or (beat.instance is not None and not self.rules.takes_instances):
            return INVALID_REQUEST
        return STREAMS_INVALID_TOPOLOGY if beat.flaw == "changelog" and epoch == 0 else None

    def fault(
        self, state: State, beat: Beat, epoch: int, owned: Tasks | None, standby: Tasks | None = ()
    ) -> str | None:
        if state.form == "consumer" or (state.form == "none" and epoch != 0):
            return GROUP_ID_NOT_FOUND
        member, holder = state.member(beat.client), state.holder(beat.instance)
        if beat.instance is not None:
            if epoch == 0:
                if holder is not None and not self.is_released(holder):
                    return UNRELEASED_INSTANCE_ID
            elif holder is None:
                return UNKNOWN_MEMBER_ID
            elif not self.holds(holder, beat.client):
                return FENCED_INSTANCE_ID
        if member is None and epoch != 0:
            return UNKNOWN_MEMBER_ID
        if epoch in LEFT:
            return None
        if member is not None and self.is_stale(member, epoch, owned, standby):
            return FENCED_MEMBER_EPOCH
        if epoch == 0 and not self.may_run(state, beat):
            return INVALID_REQUEST
        return INVALID_REQUEST if not self.is_possible(state, owned) else None

    def is_released(self, holder: Member) -> bool:
        """Whether another process may take over the instance of a member."""
        return holder.epoch == AWAY

    def holds(self, holder: Member, client: str) -> bool:
        return holder.id == client

    def is_stale(self, member: Member, epoch: int, owned: Tasks | None, standby: Tasks | None) -> bool:
        """The previous epoch is still valid if the member owns only tasks that are assigned to it."""
        if epoch == 0 or epoch == member.epoch:
            return False
        repeats = epoch == member.previous and owned is not None and {*owned} <= {*member.assigned}
        repeats = repeats and {*(standby or ())} <= {*member.standby}
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
        return task[1] < self.sizes(state).get(task[0], 0)

    def sizes(self, state: State) -> Mapping[str, int]:
        """The number of tasks of each subtopology."""
        return sizes(state.topology or ())

    def is_ready(self, state: State) -> bool:
        """Whether all topics of the topology exist, and have the right numbers of partitions."""
        return state.topology is not None and not self.problem(state)

    def problem(self, state: State) -> str:
        """The status that says why no tasks can be assigned; empty: they can."""
        topology = state.topology or ()
        if missing_sources(topology):
            return MISSING_SOURCE_TOPICS
        if WRONG in topology:
            return INCORRECTLY_PARTITIONED_TOPICS
        return MISSING_INTERNAL_TOPICS if internal_topics(topology) and not state.created else ""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        problem = self.problem(state)
        found = (problem,) if problem else ()
        return (*found, STALE_TOPOLOGY) if member.topology_epoch < state.topology_epoch else found

    # The group

    def joined(self, state: State, beat: Beat) -> State:
        if state.topology is None:
            state = state._replace(form="streams", topology=beat.topology, topology_epoch=beat.topology_epoch)
        known = state.member(beat.client)
        member = (known or Member(beat.client, 0))._replace(topology_epoch=beat.topology_epoch)
        if beat.instance is not None:
            member = member._replace(instance=beat.instance)
        changed = known is None or known.topology_epoch != beat.topology_epoch
        return with_member(state, member)._replace(epoch=self.bumped(state) if changed else state.epoch)

    def replaced(self, state: State, beat: Beat) -> State:
        """A process that joins as an instance takes the place of the one that left for a while. Another process may run
        tasks elsewhere: the group rebalances."""
        holder = state.holder(beat.instance)
        if holder is None:
            return state
        others = tuple(each for each in state.members if each.id != holder.id)
        state = with_member(state._replace(members=others), holder._replace(id=beat.client, epoch=0, previous=0))
        if holder.id == beat.client:
            return state
        return state._replace(
            target=_renamed(state.target, holder.id, beat.client),
            standby_target=_renamed(state.standby_target, holder.id, beat.client),
            epoch=self.bumped(state),
        )

    def away(self, state: State, id: str) -> State:
        """A static member leaves for a while."""
        member = state.member(id)
        assert member is not None
        return with_member(state, member._replace(epoch=AWAY, pending=(), standby_pending=(), revoking_ms=0))

    def bumped(self, state: State) -> int:
        return state.epoch + 1

    def shares(self, state: State) -> Iterator[tuple[str, Tasks]]:
        """A balanced and sticky target assignment; the protocol leaves the choice among such assignments open."""
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        found = self.sizes(state) if self.is_ready(state) else {}
        wanted = [(each, number) for each in state.topology or () for number in range(found.get(each, 0))]
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

    def standby_shares(self, state: State) -> Iterator[tuple[str, Tasks]]:
        """Each task with a changelog has so many standby tasks, of other members than the one that runs it."""
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        former = {(id, task) for id, tasks in state.standby_target for task in tasks}
        for id, tasks in state.target:
            for task in tasks:
                able = [each for each in given if each != id] if task[0] == STATEFUL[0] else []
                able.sort(key=lambda each: ((each, task) not in former, len(given[each]), each))
                for each in able[: self.config.standbys]:
                    given[each].append(task)
        return ((id, tuple(sorted(tasks))) for id, tasks in given.items())

    def without(self, state: State, id: str) -> State:
        members = tuple(each for each in state.members if each.id != id)
        target = tuple(each for each in state.target if each[0] != id)
        standby = tuple(each for each in state.standby_target if each[0] != id)
        state = state._replace(members=members, target=target, standby_target=standby, epoch=self.bumped(state))
        return state._replace(target_epoch=state.epoch) if self.rules.aims_when_empty and not members else state

    def consumed(self, state: State) -> Transition[State, Action]:
        """A consumer joins the group."""
        if not self.admits_consumers(state):
            return Transition(state, (Rejected("", GROUP_ID_NOT_FOUND),))
        return Transition(state._replace(form="consumer"))

    def admits_consumers(self, state: State) -> bool:
        return state.form != "streams"

    # Reconciliation of one member

    def reconciled(self, state: State, member: Member, owned: Tasks | None, standby: Tasks | None) -> Member:
        if member.pending or member.standby_pending:
            if not self.has_revoked(member, owned, standby):
                return member
            after = member._replace(pending=(), standby_pending=(), revoking_ms=0)
            return self.computed(state, after, owned, standby, member.epoch + 1)
        if member.epoch == state.target_epoch and not member.waiting:
            return member
        return self.computed(state, member, owned, standby, member.epoch)

    def has_revoked(self, member: Member, owned: Tasks | None, standby: Tasks | None) -> bool:
        if owned is None:
            return False
        return not ({*owned} & {*member.pending} or {*(standby or ())} & {*member.standby_pending})

    def computed(self, state: State, member: Member, owned: Tasks | None, standby: Tasks | None, epoch: int) -> Member:
        """The member's next assignment: with ``epoch`` while it has tasks to revoke, else with the target's."""
        aims, spares = state.target_of(member.id), state.standby_target_of(member.id)
        keep = [each for each in member.assigned if each in aims]
        revoke = [each for each in member.assigned if each not in aims]
        spared = [each for each in member.standby if each in spares]
        released = [each for each in member.standby if each not in spares]
        if self.rules.switches_roles:
            spared += [each for each in revoke if each in spares]
            released = [each for each in released if each not in aims]
        owns = {*(owned or ())} & {*revoke} or {*(standby or ())} & {*released}
        if (revoke or released) and (owned is None or owns):
            revoking = member._replace(epoch=epoch, previous=member.epoch, waiting=False)
            return revoking._replace(
                assigned=tuple(sorted(keep)), pending=tuple(sorted(revoke)), standby=tuple(sorted(spared)),
                standby_pending=tuple(sorted(released)),
            )  # fmt: skip
        new, spare = [each for each in aims if each not in keep], [each for each in spares if each not in spared]
        free = [each for each in new if self.is_free(state, member, each)]
        ready = [each for each in spare if self.may_stand_by(state, member, each)]
        waiting = len(free) < len(new) or len(ready) < len(spare)
        settled = member._replace(epoch=state.target_epoch, previous=member.epoch, waiting=waiting)
        return settled._replace(assigned=tuple(sorted([*keep, *free])), standby=tuple(sorted([*spared, *ready])))

    def is_free(self, state: State, member: Member, task: Partition) -> bool:
        """Whether no member runs the task, or has still to revoke it, and this one has no standby of it."""
        own = state.member(member.id) or member
        if task in own.pending:
            return False
        if task in (*own.standby, *own.standby_pending) and not self.rules.switches_roles:
            return False
        others = (each for each in state.members if each.id != member.id)
        return not any(task in each.assigned or task in each.pending for each in others)

    def may_stand_by(self, state: State, member: Member, task: Partition) -> bool:
        """Whether the member does not run the task any more."""
        own = state.member(member.id) or member
        return task not in (*own.assigned, *own.pending)

    # Describe

    def described(self, state: State) -> Action:
        if state.form != "streams":
            return Rejected("", GROUP_ID_NOT_FOUND)
        return Described(
            self.phase(state), state.epoch, state.target_epoch, state.topology_epoch,
            tuple(sorted(state.topology or ())), tuple(self.described_member(state, each) for each in state.members),
        )  # fmt: skip

    def described_member(self, state: State, member: Member) -> DescribedMember:
        return DescribedMember(
            member.id, member.epoch, member.topology_epoch, member.assigned, state.target_of(member.id), member.standby,
            state.standby_target_of(member.id),
        )  # fmt: skip

    def phase(self, state: State) -> str:
        """The state of the group."""
        if not state.members:
            return EMPTY
        if not state.validated:
            return NOT_READY
        if state.epoch > state.target_epoch:
            return ASSIGNING
        settled = all(
            each.epoch == state.target_epoch and not each.waiting and not (each.pending or each.standby_pending)
            for each in state.members
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
        return member.silent_ms >= self.config.session_ms or member.revoking_ms >= REBALANCE_MS


def owned_tasks(memory: Memory, beat: Beat) -> Tasks | None:
    """The active tasks in a heartbeat of a client that knows this."""
    found = claimed(memory, beat.owned)
    return (*(found or ()), ("t", NO_TASK)) if beat.flaw == "task" else found


def owned_standby(memory: Memory, beat: Beat) -> Tasks | None:
    """The standby tasks in it."""
    return () if beat.owned is None and beat.flaw == "task" else claimed(memory, beat.owned)


def is_invalid(beat: Beat, epoch: int, owned: Tasks | None) -> bool:
    """Whether the heartbeat is invalid whatever the group is, its topology aside."""
    if epoch < AWAY or beat.flaw in ("group", "member", "instance", "rack"):
        return True
    if epoch == AWAY and beat.instance is None:
        return True
    if beat.flaw == "standby" and owned is not None:
        return True
    if epoch != 0:
        return beat.topology is not None
    return beat.flaw in ("timeout", "regex") or owned is None or bool(owned) or beat.topology is None


def _with(clients: tuple[Memory, ...], memory: Memory) -> tuple[Memory, ...]:
    return tuple(sorted((*(each for each in clients if each.client != memory.client), memory)))


def _renamed(target: tuple[tuple[str, Tasks], ...], former: str, id: str) -> tuple[tuple[str, Tasks], ...]:
    return tuple(sorted((id if each == former else each, tasks) for each, tasks in target))


def _aged(member: Member, ms: int) -> Member:
    revoking = member.revoking_ms + ms if member.pending or member.standby_pending else 0
    return member._replace(silent_ms=member.silent_ms + ms, revoking_ms=revoking)
