"""The rebalances of a classic group: joins, generations, assignments, removals and timeouts."""

from typing import TypeAlias, assert_never

from kipcheck.conformance.protocols.group.model import messages, state as group_state
from kipcheck.conformance.protocols.group.model.decisions import Decisions
from kipcheck.conformance.protocols.group.model.messages import Error

Out: TypeAlias = list[messages.Action]
"""The actions of a step, in order. The methods append to it, and return the next state."""


class Rounds(Decisions):
    # Joining

    def add_member(self, state: group_state.State, join: messages.Join, id: str, out: Out) -> group_state.State:
        """Adds a new member, which waits for the end of the rebalance."""
        if id in state.pending:
            state = self.without_pending(state, id, out)
        member = self.newcomer(join, id)
        if member.new:
            out.append(group_state.arm_session(id, self.config.new_member_ms))
        state = state._replace(
            protocol_type=state.protocol_type if state.members else join.protocol_type,
            leader=id if state.leader is None else state.leader,
            members=(*state.members, member),
            grown=state.grown or self.prolongs(state),
        )
        return self.prepare_or_complete(state, out)

    def newcomer(self, join: messages.Join, id: str) -> group_state.Member:
        return group_state.Member(
            id,
            join.instance,
            join.session_ms,
            self.patience_ms(join),
            join.protocols,
            join=group_state.Parked(join.request, join.version),
            new=self.rules.bounded_new_members,
            protocol_version=join.protocol_version,
        )

    def rejoin(
        self, state: group_state.State, member: group_state.Member, join: messages.Join, out: Out
    ) -> group_state.State:
        """Updates a member that joins again."""
        if member.join is not None:
            self.supersede_join(member, member.join, out)
        elif not member.waits:
            self.rest(member, out)
        return self.prepare_or_complete(state.placed(self.updated(member, join)), out)

    def rest(self, member: group_state.Member, out: Out) -> None:
        """The member's request is parked, which keeps it alive without heartbeats."""
        out.append(group_state.disarm_session(member.id))

    def updated(self, member: group_state.Member, join: messages.Join) -> group_state.Member:
        session_ms, rebalance_ms = self.timeouts(member, join)
        return member._replace(
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
            protocols=join.protocols,
            join=group_state.Parked(join.request, join.version),
            protocol_version=join.protocol_version,
        )

    def timeouts(self, member: group_state.Member, join: messages.Join) -> tuple[int, int]:
        """Session and rebalance timeout of a member that joins again."""
        if self.rules.timeouts_renewed:
            return join.session_ms, self.patience_ms(join)
        return member.session_ms, member.rebalance_ms

    def patience_ms(self, join: messages.Join) -> int:
        """How long a join phase waits for the member."""
        return join.patience_ms if join.version > 0 or self.rules.old_joins_wait else 0

    def supersede_join(self, member: group_state.Member, former: group_state.Parked, out: Out) -> None:
        """A newer JoinGroup of the same member replaces the parked one."""
        if self.rules.superseded_answered:
            out.append(self.join_refusal(former.to, Error.NOT_COORDINATOR, member.id))

    def prepare_or_complete(self, state: group_state.State, out: Out) -> group_state.State:
        if state.phase is messages.Phase.PREPARING:
            return self.complete_if_all_joined(state, out)
        return self.prepare(state, out)

    # Start of a rebalance

    def prepare(self, state: group_state.State, out: Out) -> group_state.State:
        """Starts the join phase."""
        if state.phase is messages.Phase.COMPLETING:
            state = self.answer_parked_syncs(self.unassigned(state), Error.REBALANCE_IN_PROGRESS, out)
        if state.owing:
            state = self.no_more_owed(state, out)
        if state.phase is messages.Phase.EMPTY and self.rules.initial_delay:
            return self.prepare_first(state, out)
        state = state._replace(phase=messages.Phase.PREPARING)
        if self.all_joined(state) or self.waits_for_nobody(state):
            return self.complete_join(state, out)
        out.append(messages.Arm(group_state.REBALANCE, state.rebalance_ms))
        return state

    def waits_for_nobody(self, state: group_state.State) -> bool:
        """Whether the timer of the join phase expires at once; where a group has no members, this stays open."""
        return bool(state.members) and state.rebalance_ms == 0

    def prepare_first(self, state: group_state.State, out: Out) -> group_state.State:
        delay = self.config.initial_delay_ms
        out.append(messages.Arm(group_state.REBALANCE, delay))
        remaining = max(state.rebalance_ms - delay, 0)
        return state._replace(phase=messages.Phase.PREPARING, delay_ms=delay, remaining_ms=remaining)

    def unassigned(self, state: group_state.State) -> group_state.State:
        return state._replace(members=tuple([each._replace(assignment=messages.EMPTY) for each in state.members]))

    def no_more_owed(self, state: group_state.State, out: Out) -> group_state.State:
        if self.rules.sync_deadline:
            out.append(messages.Disarm(group_state.SYNC))
        return state._replace(owing=())

    # End of the join phase

    def complete_if_all_joined(self, state: group_state.State, out: Out) -> group_state.State:
        if not self.may_complete(state):
            return state
        out.append(messages.Disarm(group_state.REBALANCE))
        return self.complete_join(state, out)

    def complete_join(self, state: group_state.State, out: Out) -> group_state.State:
        """Ends the join phase. It goes on if only static members are left and none of them has joined again; in Java
        an initial rebalance then still waits for its timer."""
        delay_ms = state.delay_ms
        if state.initial:
            # ``grown`` is reset only when it waits again: the next initial rebalance may take a round longer.
            state = state._replace(delay_ms=group_state.NOT_INITIAL, remaining_ms=0)
        state = self.without_absent(state, out)
        if not state.members:
            return self.emptied(state, out)
        candidates = tuple([each for each in state.members if each.join is not None])
        if not candidates:
            out.append(messages.Arm(group_state.REBALANCE, state.rebalance_ms))
            return state._replace(delay_ms=delay_ms) if self.rules.java else state
        return self.next_generation(self.led(state, candidates), out)

    def without_absent(self, state: group_state.State, out: Out) -> group_state.State:
        for each in state.members:
            if self.is_absent(each) and self.rules.absent_sessions_end:
                state = self.removed(state, each, out)
            elif self.is_absent(each):
                state = self.taken_out(state, each, out)._replace(lapsing=(*state.lapsing, each.id))
        return state

    def led(self, state: group_state.State, candidates: tuple[group_state.Member, ...]) -> group_state.State:
        leader = state.member(state.leader or "")
        if leader is not None and self.keeps_leader(state, leader):
            return state
        return state._replace(leader=self.choose_leader(state, candidates).id)

    def emptied(self, state: group_state.State, out: Out) -> group_state.State:
        """A generation without members. 0.10.0 removes and writes the group; its offsets exist without a group."""
        generation = self.bumped(state.generation)
        state = state._replace(phase=messages.Phase.EMPTY, generation=generation, protocol=None, leader=None)
        state = self.append(state, group_state.Emptying(self.group_record(state)), out)
        if self.rules.keeps_empty_groups:
            return state
        self.without_lapsing(state, out)
        return group_state.State(
            state.standing, offsets=state.offsets, writes=state.writes, log=state.log, unnamed=state.unnamed
        )

    def forgotten(self, state: group_state.State) -> group_state.State:
        """The state without the group. Pending records do not affect a later group."""
        writes = tuple(map(_orphaned, state.writes))
        return group_state.State(state.standing, writes=writes, log=state.log, unnamed=state.unnamed)

    def next_generation(self, state: group_state.State, out: Out) -> group_state.State:
        generation, protocol = self.bumped(state.generation), self.elected_protocol(state)
        state = state._replace(phase=messages.Phase.COMPLETING, generation=generation, protocol=protocol)
        members, owing = [], []
        for each in state.members:
            if each.join is not None:
                leads = each.id == state.leader
                out.append(self.joined(state, each, each.join, state.leader, leads))
                if leads and self.cannot_list(state, each.join.version):
                    state = state._replace(failed=True)
            each = each._replace(join=None, new=False)
            out.append(group_state.arm_session(each.id, each.session_ms))
            members.append(each)
            owing.append(each.id)
        if self.rules.sync_deadline:
            out.append(messages.Arm(group_state.SYNC, state.rebalance_ms))
        return state._replace(members=tuple(members), owing=tuple(owing))

    # Assignments

    def assigned(self, state: group_state.State, record: messages.GroupRecord, out: Out) -> group_state.State:
        """Applies the leader's assignment after it is written."""
        given = {id: assignment for id, _, _, _, _, assignment in record.members}
        members = tuple([each._replace(assignment=given.get(each.id, messages.EMPTY)) for each in state.members])
        return self.answer_parked_syncs(state._replace(members=members, phase=messages.Phase.STABLE), Error.NONE, out)

    def assignment_failed(self, state: group_state.State, error: Error, out: Out) -> group_state.State:
        state = self.answer_parked_syncs(self.unassigned(state), self.write_error(error), out)
        return self.prepare(state, out)

    def answer_parked_syncs(self, state: group_state.State, error: Error, out: Out) -> group_state.State:
        """Answers parked SyncGroup requests, and restarts the sessions of their members."""
        members = []
        for each in state.members:
            if each.sync is not None:
                out.append(self.synced(state, each, each.sync, error))
                each = each._replace(sync=None)
                if each.join is None:
                    out.append(group_state.arm_session(each.id, each.session_ms))
            members.append(each)
        return state._replace(members=tuple(members))

    # Removal of members

    def dismissed(self, state: group_state.State, member: group_state.Member, out: Out) -> group_state.State:
        """Removes a member that left, or whose session expired. Since 2.1.1 brokers answer its parked join, but not its
        parked sync."""
        if member.join is not None and self.rules.removed_joins_answered:
            out.append(self.join_refusal(member.join.to, Error.UNKNOWN_MEMBER_ID, ""))
        if member.sync is not None and self.rules.removed_answered:
            out.append(self.synced(state, member, member.sync, Error.UNKNOWN_MEMBER_ID))
        return self.removed(state, member, out)

    def removed(self, state: group_state.State, member: group_state.Member, out: Out) -> group_state.State:
        """Removes a member without an answer to its parked requests."""
        if not member.waits:
            out.append(group_state.disarm_session(member.id))
        return self.taken_out(state, member, out)

    def taken_out(self, state: group_state.State, member: group_state.Member, out: Out) -> group_state.State:
        """Removes a member; its session timer is left as it is."""
        members = tuple([each for each in state.members if each.id != member.id])
        leader = state.leader
        if leader == member.id:
            leader = self.choose_leader(state, members).id if members else None
        state = state._replace(members=members, leader=leader)
        return self.not_owing(state, member.id, out) if member.id in state.owing else state

    def not_owing(self, state: group_state.State, id: str, out: Out) -> group_state.State:
        """Removes an id from those that owe a SyncGroup; disarms the deadline after the last one."""
        owing = tuple([each for each in state.owing if each != id])
        if not owing and self.rules.sync_deadline:
            out.append(messages.Disarm(group_state.SYNC))
        return state._replace(owing=owing)

    def after_removal(self, state: group_state.State, out: Out) -> group_state.State:
        if state.phase is messages.Phase.STABLE or state.phase is messages.Phase.COMPLETING:
            return self.prepare(state, out)
        return self.complete_if_all_joined(state, out)

    def without_pending(self, state: group_state.State, id: str, out: Out) -> group_state.State:
        """Removes a pending id that was used, given back, or expired."""
        out.append(messages.Disarm(group_state.pending(id)))
        return state._replace(pending=tuple([each for each in state.pending if each != id]))

    def without_all_pending(self, state: group_state.State, out: Out) -> group_state.State:
        """Removes all pending ids."""
        for each in state.pending:
            state = self.without_pending(state, each, out)
        return state

    def without_lapsing(self, state: group_state.State, out: Out) -> group_state.State:
        """Ends the sessions of former members."""
        out += map(group_state.disarm_session, state.lapsing)
        return state._replace(lapsing=())

    # Time

    def on_fired(self, state: group_state.State, timer: messages.Timer, out: Out) -> group_state.State:
        match timer.kind:
            case "session":
                return self.on_session_expired(state, timer.member, out)
            case "pending":
                return self.on_pending_expired(state, timer.member, out)
            case "sync":
                return self.on_sync_deadline(state, out)
            case _:
                return self.on_rebalance_timeout(state, out)

    def on_session_expired(self, state: group_state.State, id: str, out: Out) -> group_state.State:
        if id in state.lapsing:
            state = state._replace(lapsing=tuple([each for each in state.lapsing if each != id]))
        else:
            state = self.dismissed(state, state.known(id), out)
        return (
            self.after_silence(state, out)
            if state.phase is messages.Phase.PREPARING
            else self.after_removal(state, out)
        )

    def after_silence(self, state: group_state.State, out: Out) -> group_state.State:
        """Ends the join phase if only the expired member was missing; in Java also an initial rebalance."""
        if not (self.rules.expired_ids_end_delay and state.initial and self.all_joined(state)):
            return self.complete_if_all_joined(state, out)
        out.append(messages.Disarm(group_state.REBALANCE))
        return self.complete_join(state, out)

    def on_pending_expired(self, state: group_state.State, id: str, out: Out) -> group_state.State:
        state = state._replace(pending=tuple([each for each in state.pending if each != id]))
        return self.after_silence(state, out)

    def on_rebalance_timeout(self, state: group_state.State, out: Out) -> group_state.State:
        return self.another_round(state, out) if self.waits_for_more(state) else self.complete_join(state, out)

    def another_round(self, state: group_state.State, out: Out) -> group_state.State:
        """Starts another round of the initial rebalance, and deducts the last one from the remaining time."""
        delay = min(self.config.initial_delay_ms, state.remaining_ms)
        out.append(messages.Arm(group_state.REBALANCE, delay))
        remaining = max(state.remaining_ms - state.delay_ms, 0)
        return state._replace(delay_ms=delay, remaining_ms=remaining, grown=False)

    def on_sync_deadline(self, state: group_state.State, out: Out) -> group_state.State:
        """Removes the members that sent no SyncGroup."""
        owing = state.owing
        state = state._replace(owing=())
        here = [each for each in owing if state.member(each) is not None]
        if self.rules.fails_on_replaced_ids and len(here) < len(owing):
            return state._replace(failed=state.failed or bool(here))
        for each in state.members:
            if each.id in owing:
                state = self.removed(state, each, out)
        return self.prepare(state, out)

    # Records

    def append(self, state: group_state.State, write: group_state.Write, out: Out) -> group_state.State:
        out.append(messages.Append(write.record))
        return state._replace(writes=(*state.writes, write))

    def group_record(
        self, state: group_state.State, given: dict[str, messages.Blob] | None = None
    ) -> messages.GroupRecord:
        """The record of the current generation; ``given``: assignments that replace those of the members."""
        protocol = state.protocol
        members = [
            (
                each.id,
                each.instance,
                each.session_ms,
                each.rebalance_ms,
                each.metadata(protocol),
                each.assignment if given is None else given.get(each.id, messages.EMPTY),
            )
            for each in state.members
        ]
        return messages.GroupRecord(state.generation, state.protocol_type or "", protocol, state.leader, tuple(members))


def _orphaned(write: group_state.Write) -> group_state.Write:
    match write:
        case group_state.Assigning() | group_state.Replacing() | group_state.Founding():
            return group_state.Emptying(write.record)
        case group_state.Committing(record, to):
            return group_state.Committing(record, to, counts=False)
        case group_state.Emptying() | group_state.Deleting():
            return write
        case _:
            assert_never(write)
