"""The coordinator of one KIP-1071 streams group: assigns tasks, and reconciles members by their heartbeats.

Source: ``GroupMetadataManager.streamsGroupHeartbeat``, ``CurrentAssignmentBuilder`` and ``StreamsGroup`` of the
releases from 4.2 on, without delay before target assignments. Which member gets which task is the coordinator's choice.

Not modelled: warm-up tasks and shutdown requests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.ops import INSTANCES
from kipcheck.conformance.protocols.reconciled import log_ops, terms
from kipcheck.conformance.protocols.reconciled.model import ReconciledGroup, balanced, renamed, with_member
from kipcheck.conformance.protocols.reconciled.terms import Rejected, Says
from kipcheck.conformance.protocols.streams_group import ops, topology as streams_group_topology
from kipcheck.conformance.protocols.streams_group.rules import CURRENT, Rules
from kipcheck.conformance.protocols.streams_group.state import Member, Owned, State
from kipcheck.conformance.protocols.streams_group.topology import sizes

STREAMS_INVALID_TOPOLOGY: Final = "STREAMS_INVALID_TOPOLOGY"
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = "STREAMS_INVALID_TOPOLOGY_EPOCH"
STALE_TOPOLOGY: Final = "STALE_TOPOLOGY"
MISSING_SOURCE_TOPICS: Final = "MISSING_SOURCE_TOPICS"
INCORRECTLY_PARTITIONED_TOPICS: Final = "INCORRECTLY_PARTITIONED_TOPICS"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"
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

    session_ms: int = ops.SESSION_MS
    """``group.streams.session.timeout.ms``"""
    standbys: int = 1
    """``group.streams.num.standby.replicas``"""
    max_size: int = 3
    """``group.streams.max.size``"""


DEFAULT: Final = Config()
SETTINGS: Final[Mapping[str, str]] = {
    "group.streams.session.timeout.ms": "session_ms",
    "group.streams.num.standby.replicas": "standbys",
    "group.streams.max.size": "max_size",
}
"""The field that has a setting."""


class StreamsGroup(ReconciledGroup[State, Member, ops.Beat, Owned]):
    revocation_ms = ops.REBALANCE_MS

    def __init__(self, rules: Rules = CURRENT, config: Config = DEFAULT) -> None:
        self.rules = rules
        self.config = config

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Beat():
                return self.beat(state, event)
            case ops.Describe():
                return Transition(state, (self.described(state),))
            case ops.Consume():
                return self.consumed(state)
            case ops.Pass(ms):
                return Transition(self.passed(state, ms))
            case ops.Configure(standbys):
                return Transition(state._replace(standby_copies=standbys))
            case _:
                return self.logged(state, event)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        """Events that the coordinator accepts."""
        if state.form == "none":
            yield ops.Consume()
        if state.form == "consumer":
            return
        if state.form == "streams":
            yield ops.Describe()
        if state.members:
            # Without members time changes nothing, and running brokers take it in full.
            yield from map(ops.Pass, (ops.PASSES[0], *ops.PASSES))
        for client in ops.CLIENTS:
            joins = [ops.Beat(client, Says.JOIN, 0, *known, "none") for known in self._runnable(state)]
            member = state.member(client)
            if member is None or member.epoch == terms.AWAY:
                yield from joins
                yield from (replace(each, instance=INSTANCES[0]) for each in joins[:1] if self.rules.takes_instances)
                continue
            instance = member.instance
            yield replace(joins[0], instance=instance)
            yield ops.Beat(client, Says.LEAVE, instance=instance)
            if instance is not None:
                yield ops.Beat(client, Says.AWAY, instance=instance)
            stays = [ops.Beat(client, Says.STAY, owned=owned, instance=instance) for owned in (None, "told", "before")]
            yield from stays * STAYS
            if 0 < member.previous < member.epoch:
                yield ops.Beat(client, Says.STAY, member.epoch - member.previous, owned="told", instance=instance)

    def _runnable(self, state: State) -> Iterator[tuple[tuple[str, ...], int]]:
        """Topologies with which a member may join, each with its epoch."""
        if state.topology is None:
            yield from ((each, epoch) for each in ops.TOPOLOGIES for epoch in range(2))
        else:
            yield state.topology, state.topology_epoch
            yield from ((each, epoch) for each in ops.TOPOLOGIES[:2] for epoch in range(state.topology_epoch))

    # A heartbeat

    def beat(self, state: State, beat: ops.Beat) -> Transition[State, ops.Action]:
        memory = state.memory(beat.client)
        epoch, owned = memory.epoch_in(beat), owned_tasks(memory, state.standby_memory(beat.client), beat)
        error = self.invalid(beat, epoch, owned.active) or self.fault(state, beat, epoch, owned)
        if error is not None:
            return Transition(state, (Rejected(beat.client, error),))
        if epoch in terms.LEFT:
            return self._answered(self.gone(state, beat.client, epoch), memory, ops.Answered(beat.client, epoch, None))
        known = state
        state = self.joined(self.replaced(state, beat), beat) if epoch == 0 else state
        state = self.located(state, known, beat)
        if self.is_ready(state) != state.validated:
            state = state._replace(validated=not state.validated, epoch=max(state.epoch, self.bumped(known)))
        state = self.configured(state, known)
        if state.epoch > state.target_epoch:
            state = state._replace(target=tuple(self.shares(state)), target_epoch=state.epoch)
            state = state._replace(standby_target=tuple(self.standby_shares(state)))
        before = state.member(beat.client)
        assert before is not None
        after = self.reconciled(state, before, owned)._replace(silent_ms=0)
        changed = (after.assigned, after.standby) != (before.assigned, before.standby)
        tells = epoch == 0 or changed
        statuses = self.statuses(state, after)
        missing = (
            () if state.created else tuple(sorted(streams_group_topology.internal_topics(state.topology or ()).items()))
        )
        active, spares, warm = (after.assigned, after.standby, ()) if tells else (None, None, None)
        state = with_member(state, after)._replace(created=state.created or bool(missing))
        if epoch == 0:
            others = tuple(each for each in state.known_endpoints if each[0] != beat.client)
            state = state._replace(known_endpoints=others)
        if tells and after.endpoint is not None:
            state = state._replace(endpoint_epoch=self.next_endpoint_epoch(state))
        if self.fails(state, beat.client):
            return Transition(known, (Rejected(beat.client, UNKNOWN_SERVER_ERROR),))
        answer = ops.Answered(
            beat.client, after.epoch, active, spares, warm, statuses, self.creates(missing), state.endpoint_epoch,
            self.endpoints(state, beat.client),
        )  # fmt: skip
        known_endpoints = {**dict(state.known_endpoints), beat.client: state.endpoint_epoch}
        state = state._replace(known_endpoints=tuple(sorted(known_endpoints.items())))
        return self._answered(state, memory, answer)

    def fails(self, state: State, client: str) -> bool:
        """Whether the coordinator cannot compute the endpoint information, which it owes to the client."""
        unknown = self.problem(state) in (MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS)
        located = any(member.endpoint is not None for member in state.members)
        return self.rules.fails_on_endpoints and unknown and located and self.endpoints(state, client) is not None

    def reloaded(self, state: State, reload: log_ops.Reload) -> State:
        """The epoch of the endpoints is in no record."""
        return super().reloaded(state, reload)._replace(endpoint_epoch=State().endpoint_epoch)

    def next_endpoint_epoch(self, state: State) -> int:
        """When the tasks of a member with an endpoint have changed."""
        return state.endpoint_epoch + 1

    def endpoints(self, state: State, client: str) -> ops.Endpoints | None:
        """What the client does not know yet of partitions at endpoints; None: it knows all."""
        if dict(state.known_endpoints).get(client) == state.endpoint_epoch:
            return None
        topology = state.topology or ()
        return tuple(
            sorted(
                (member.endpoint, streams_group_topology.source(name), number)
                for member in state.members
                if member.endpoint is not None
                for name, number in member.assigned
                if name in topology
            )
        )

    def creates(self, missing: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        """The internal topics that the broker creates. ``missing``: those that do not exist."""
        return missing

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        known = memory.after(answer.epoch, answer.tasks)
        standby = state.standby_memory(memory.client).after(answer.epoch, answer.standby)
        state = state._replace(
            clients=terms.with_memory(state.clients, known), standbys=terms.with_memory(state.standbys, standby)
        )
        return Transition(state, (answer,))

    def invalid(self, beat: ops.Beat, epoch: int, owned: ops.Tasks | None) -> str | None:
        """The error of a heartbeat that no group accepts."""
        if is_invalid(beat, epoch, owned) or (beat.instance is not None and not self.rules.takes_instances):
            return terms.INVALID_REQUEST
        return STREAMS_INVALID_TOPOLOGY if beat.flaw == "changelog" and epoch == 0 else None

    def shut(self, state: State, beat: ops.Beat, epoch: int) -> str | None:
        absent = state.form == "consumer" or (state.form == "none" and epoch != 0)
        if absent:
            return terms.GROUP_ID_NOT_FOUND
        return terms.GROUP_MAX_SIZE_REACHED if epoch == 0 and self.is_full(state, beat) else None

    def is_full(self, state: State, beat: ops.Beat) -> bool:
        """Whether the group has no room for a member that joins."""
        if len(state.members) < self.config.max_size:
            return False
        is_there = state.member(beat.client) is not None or state.holder(beat.instance) is not None
        return not is_there or self.rules.counts_rejoins

    def unfit(self, state: State, beat: ops.Beat, epoch: int, owned: Owned) -> str | None:
        fits = (epoch != 0 or self.may_run(state, beat)) and self.is_possible(state, owned.active)
        return None if fits else terms.INVALID_REQUEST

    def owns_no_more(self, member: Member, owned: Owned) -> bool:
        if owned.active is None:
            return False
        return {*owned.active} <= {*member.assigned} and {*(owned.standby or ())} <= {*member.standby}

    def may_run(self, state: State, beat: ops.Beat) -> bool:
        """Whether a member may join with its topology: that of the group, or any with an older epoch."""
        if state.topology is None or beat.topology_epoch < state.topology_epoch:
            return True
        return (beat.topology, beat.topology_epoch) == (state.topology, state.topology_epoch)

    def is_possible(self, state: State, owned: ops.Tasks | None) -> bool:
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
        if streams_group_topology.missing_sources(topology):
            return MISSING_SOURCE_TOPICS
        if streams_group_topology.WRONG in topology:
            return INCORRECTLY_PARTITIONED_TOPICS
        return MISSING_INTERNAL_TOPICS if streams_group_topology.internal_topics(topology) and not state.created else ""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        problem = self.problem(state)
        found = (problem,) if problem else ()
        return (*found, STALE_TOPOLOGY) if member.topology_epoch < state.topology_epoch else found

    # The group

    def joined(self, state: State, beat: ops.Beat) -> State:
        if state.topology is None:
            state = state._replace(form="streams", topology=beat.topology, topology_epoch=beat.topology_epoch)
        known = state.member(beat.client)
        member = (known or Member(beat.client, 0))._replace(topology_epoch=beat.topology_epoch)
        if beat.instance is not None:
            member = member._replace(instance=beat.instance)
        changed = known is None or known.topology_epoch != beat.topology_epoch
        return with_member(state, member)._replace(epoch=self.bumped(state) if changed else state.epoch)

    def located(self, state: State, before: State, beat: ops.Beat) -> State:
        """With the endpoint of the member, if it states one. ``before``: before the heartbeat."""
        member = state.member(beat.client)
        if member is None or beat.endpoint in (None, member.endpoint):
            return state
        state = with_member(state, member._replace(endpoint=beat.endpoint))
        return state._replace(epoch=max(state.epoch, self.bumped(before)))

    def copies(self, state: State) -> int:
        """The number of standby tasks of each task with a changelog."""
        return self.config.standbys if state.standby_copies is None else state.standby_copies

    def configured(self, state: State, before: State) -> State:
        """The group rebalances after its settings have changed. ``before``: before the heartbeat."""
        applied = self.config.standbys if state.standbys_applied is None else state.standbys_applied
        epoch = state.epoch if applied == self.copies(state) else max(state.epoch, self.bumped(before))
        return state._replace(standbys_applied=self.copies(state), epoch=epoch)

    def replaced(self, state: State, beat: ops.Beat) -> State:
        """Another process may run tasks elsewhere: the group rebalances."""
        holder, after = state.holder(beat.instance), super().replaced(state, beat)
        if holder is None or holder.id == beat.client:
            return after
        standby_target = renamed(after.standby_target, holder.id, beat.client)
        return after._replace(standby_target=standby_target, epoch=self.bumped(after))

    def bumped(self, state: State) -> int:
        return state.epoch + 1

    def shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        """The target assignment of active tasks."""
        found = self.sizes(state) if self.is_ready(state) else {}
        wanted = [(each, number) for each in state.topology or () for number in range(found.get(each, 0))]
        return balanced((each.id for each in state.members), wanted, state.target)

    def standby_shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        """Each task with a changelog has so many standby tasks, of other members than the one that runs it."""
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        former = {(id, task) for id, tasks in state.standby_target for task in tasks}
        for id, tasks in state.target:
            for task in tasks:
                able = [each for each in given if each != id] if task[0] == streams_group_topology.STATEFUL[0] else []
                able.sort(key=lambda each: ((each, task) not in former, len(given[each]), each))
                for each in able[: self.copies(state)]:
                    given[each].append(task)
        return ((id, tuple(sorted(tasks))) for id, tasks in given.items())

    def without(self, state: State, id: str) -> State:
        state = super().without(state, id)
        standby_target = tuple(each for each in state.standby_target if each[0] != id)
        state = state._replace(standby_target=standby_target, epoch=self.bumped(state))
        return state._replace(target_epoch=state.epoch) if self.rules.aims_when_empty and not state.members else state

    def consumed(self, state: State) -> Transition[State, ops.Action]:
        """A consumer joins the group."""
        if not self.admits_consumers(state):
            return Transition(state, (Rejected("", terms.GROUP_ID_NOT_FOUND),))
        return Transition(state._replace(form="consumer"))

    def admits_consumers(self, state: State) -> bool:
        return state.form != "streams"

    # Reconciliation of one member

    def is_revoking(self, member: Member) -> bool:
        return bool(member.pending or member.standby_pending)

    def has_revoked(self, member: Member, owned: Owned) -> bool:
        if owned.active is None:
            return False
        return not ({*owned.active} & {*member.pending} or {*(owned.standby or ())} & {*member.standby_pending})

    def revoked(self, member: Member) -> Member:
        return super().revoked(member)._replace(standby_pending=())

    def computed(self, state: State, member: Member, owned: Owned, epoch: int) -> Member:
        aims, spares = state.target_of(member.id), state.standby_target_of(member.id)
        keep = [each for each in member.assigned if each in aims]
        revoke = [each for each in member.assigned if each not in aims]
        spared = [each for each in member.standby if each in spares]
        released = [each for each in member.standby if each not in spares]
        if self.rules.switches_roles:
            spared += [each for each in revoke if each in spares]
            released = [each for each in released if each not in aims]
        owns = {*(owned.active or ())} & {*revoke} or {*(owned.standby or ())} & {*released}
        if (revoke or released) and (owned.active is None or owns):
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
        return super().is_free(state, member, task)

    def may_stand_by(self, state: State, member: Member, task: Partition) -> bool:
        """Whether the member does not run the task any more."""
        own = state.member(member.id) or member
        return task not in (*own.assigned, *own.pending)

    # Describe

    def described(self, state: State) -> ops.Action:
        if state.form != "streams":
            return Rejected("", terms.GROUP_ID_NOT_FOUND)
        return ops.Described(
            self.phase(state), state.epoch, state.target_epoch, state.topology_epoch,
            tuple(sorted(state.topology or ())), tuple(self.described_member(state, each) for each in state.members),
        )  # fmt: skip

    def described_member(self, state: State, member: Member) -> ops.DescribedMember:
        return ops.DescribedMember(
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
            each.epoch == state.target_epoch and not each.waiting and not self.is_revoking(each)
            for each in state.members
        )
        return STABLE if settled else RECONCILING


def owned_tasks(active: terms.Memory, standby: terms.Memory, beat: ops.Beat) -> Owned:
    """The tasks in a heartbeat of a client that knows this."""
    owned = active.claimed(beat.owned)
    if beat.flaw != "task":
        return Owned(owned, standby.claimed(beat.owned))
    return Owned((*(owned or ()), ("t", NO_TASK)), standby.claimed(beat.owned or "none"))


def is_invalid(beat: ops.Beat, epoch: int, owned: ops.Tasks | None) -> bool:
    """Whether the heartbeat is invalid whatever the group is, its topology aside."""
    if epoch < terms.AWAY or beat.flaw in ("group", "member", "instance", "rack"):
        return True
    if epoch == terms.AWAY and beat.instance is None:
        return True
    if beat.flaw == "standby" and owned is not None:
        return True
    if epoch != 0:
        return beat.topology is not None
    return beat.flaw in ("timeout", "regex") or owned is None or bool(owned) or beat.topology is None
