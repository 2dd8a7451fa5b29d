"""How a classic group gets from one generation to the next: who is collected, removed, told, and when time is up."""

from typing import TypeAlias

from conformance.models.group.decisions import SKIP_SINCE, Decisions
from conformance.models.group.state import (
    ANSWERED,
    NOT_INITIAL,
    REBALANCE,
    SYNC,
    Emptying,
    Member,
    Parked,
    Replacing,
    State,
    Write,
    pending,
    session,
)
from conformance.models.group.words import (
    EMPTY,
    Action,
    Append,
    Arm,
    Disarm,
    Error,
    GroupRecord,
    Join,
    Phase,
    Timer,
)

Out: TypeAlias = list[Action]
"""What a step does, in order: every method here adds to it and gives back the state that it leads to."""


class Rounds(Decisions):
    # Joining

    def add_member(self, state: State, join: Join, id: str, out: Out) -> State:
        """Somebody who is not in the group yet, and waits for the round to end."""
        member = Member(
            id,
            join.instance,
            join.session_ms,
            join.patience_ms,
            join.protocols,
            join=Parked(join.request, join.version),
            new=self.rules.bounded_new_members,
            protocol_version=join.protocol_version,
        )
        if not state.members:
            state = state._replace(protocol_type=join.protocol_type)
        if id in state.pending:
            out.append(Disarm(pending(id)))
        state = state._replace(
            members=(*state.members, member),
            pending=tuple([each for each in state.pending if each != id]),
            leader=id if state.leader is None else state.leader,
            grown=state.grown or self.prolongs(state),
        )
        if member.new:
            out.append(Arm(session(id), self.config.new_member_ms))
        return self.prepare_or_complete(state, out)

    def prolongs(self, state: State) -> bool:
        """Who joins now prolongs the initial rebalance. In Scala only that of a group that never had a generation."""
        return state.initial and (self.rules.java or state.generation == 0)

    def rejoin(self, state: State, member: Member, join: Join, out: Out) -> State:
        """Somebody who is in the group, with what it says now."""
        state = state.placed(self.waiting_to_join(self.updated(member, join), join, out))
        return self.prepare_or_complete(state, out)

    def updated(self, member: Member, join: Join) -> Member:
        return member._replace(
            protocols=join.protocols,
            session_ms=join.session_ms,
            rebalance_ms=join.patience_ms,
            protocol_version=join.protocol_version,
        )

    def waiting_to_join(self, member: Member, join: Join, out: Out) -> Member:
        if member.join is not None:
            self.supersede_join(member, member.join, out)
        elif not member.waits:
            out.append(Disarm(session(member.id)))
        return member._replace(join=Parked(join.request, join.version))

    def supersede_join(self, member: Member, former: Parked, out: Out) -> None:
        """A newer request of the same member takes the place of one that waits."""
        if self.rules.superseded_answered and former.to != ANSWERED:
            out.append(self.join_refusal(former.to, Error.NOT_COORDINATOR, member.id))

    def prepare_or_complete(self, state: State, out: Out) -> State:
        if state.phase is Phase.PREPARING:
            return self.complete_if_all_joined(state, out)
        return self.prepare(state, out)

    # A round begins

    def prepare(self, state: State, out: Out) -> State:
        """Members are to join again."""
        if state.phase is Phase.COMPLETING:
            state = self.answer_parked_syncs(self.unassigned(state), Error.REBALANCE_IN_PROGRESS, out)
        state = self.no_more_syncs_owed(state, out)
        if state.phase is Phase.EMPTY and self.rules.initial_delay:
            return self.prepare_first(state, out)
        state = state._replace(phase=Phase.PREPARING)
        if self.all_joined(state):
            return self.complete_join(state, out)
        out.append(Arm(REBALANCE, state.rebalance_ms))
        return state

    def prepare_first(self, state: State, out: Out) -> State:
        delay = self.config.initial_delay_ms
        out.append(Arm(REBALANCE, delay))
        remaining = max(state.rebalance_ms - delay, 0)
        return state._replace(phase=Phase.PREPARING, delay_ms=delay, remaining_ms=remaining, grown=False)

    def unassigned(self, state: State) -> State:
        return state._replace(members=tuple([each._replace(assignment=EMPTY) for each in state.members]))

    def no_more_syncs_owed(self, state: State, out: Out) -> State:
        if not any(each.owes_sync for each in state.members):
            return state
        if self.rules.sync_deadline:
            out.append(Disarm(SYNC))
        return state._replace(members=tuple([each._replace(owes_sync=False) for each in state.members]))

    # A round ends

    def complete_if_all_joined(self, state: State, out: Out) -> State:
        if not self.may_complete(state):
            return state
        out.append(Disarm(REBALANCE))
        return self.complete_join(state, out)

    def complete_join(self, state: State, out: Out) -> State:
        """The join phase is over, or its time is."""
        state = self.without_absent(state, out)
        state = state._replace(delay_ms=NOT_INITIAL, remaining_ms=0, grown=False)
        if not state.members:
            return self.emptied(state, out)
        candidates = tuple([each for each in state.members if each.join is not None])
        if not candidates:
            out.append(Arm(REBALANCE, state.rebalance_ms))
            return state
        return self.next_generation(self.led(state, candidates), out)

    def led(self, state: State, candidates: tuple[Member, ...]) -> State:
        leader = state.member(state.leader or "")
        if leader is not None and self.keeps_leader(state, leader):
            return state
        return state._replace(leader=self.choose_leader(state, candidates).id)

    def without_absent(self, state: State, out: Out) -> State:
        """Dynamic members that did not join again are removed; static ones stay until their session ends."""
        for each in state.members:
            if self.is_absent(each):
                state = self.removed(state, each, out)
        return state

    def is_absent(self, member: Member) -> bool:
        return member.join is None and member.instance is None

    def emptied(self, state: State, out: Out) -> State:
        """A generation without members. 0.10.0 forgets the group instead."""
        if not self.rules.keeps_empty_groups:
            return self.forgotten(state)
        generation = self.bumped(state.generation)
        state = state._replace(phase=Phase.EMPTY, generation=generation, protocol=None, leader=None)
        return self.append(state, Emptying(self.group_record(state)), out)

    def forgotten(self, state: State) -> State:
        return State(standing=state.standing, writes=state.writes, log=state.log)

    def next_generation(self, state: State, out: Out) -> State:
        state = state._replace(
            phase=Phase.COMPLETING,
            generation=self.bumped(state.generation),
            protocol=self.elected_protocol(state),
        )
        members = []
        for each in state.members:
            if each.join is not None and each.join.to != ANSWERED:
                out.append(self.joined(state, each, each.join, state.leader, each.id == state.leader))
            members.append(each._replace(join=None, new=False, owes_sync=True))
            if each.sync is None:
                out.append(Arm(session(each.id), each.session_ms))
        if self.rules.sync_deadline:
            out.append(Arm(SYNC, state.rebalance_ms))
        return state._replace(members=tuple(members))

    # Assignments

    def assigned(self, state: State, record: GroupRecord, out: Out) -> State:
        """The leader's assignment is written."""
        given = {id: assignment for id, _, _, _, _, assignment in record.members}
        members = tuple([each._replace(assignment=given.get(each.id, EMPTY)) for each in state.members])
        state = self.answer_parked_syncs(state._replace(members=members), Error.NONE, out)
        return state._replace(phase=Phase.STABLE)

    def assignment_failed(self, state: State, error: Error, out: Out) -> State:
        state = self.answer_parked_syncs(self.unassigned(state), self.write_error(error), out)
        return self.prepare(state, out)

    def answer_parked_syncs(self, state: State, error: Error, out: Out) -> State:
        """From then on their members have to be heard of again."""
        members = []
        for each in state.members:
            if each.sync is not None:
                if each.sync.to != ANSWERED:
                    out.append(self.synced(state, each, each.sync, error))
                each = each._replace(sync=None)
                if not each.waits:
                    out.append(Arm(session(each.id), each.session_ms))
            members.append(each)
        return state._replace(members=tuple(members))

    # Members go

    def remove_member(self, state: State, member: Member, out: Out) -> State:
        """It has left, or its session has ended."""
        return self.after_removal(self.dismissed(state, member, out), out)

    def dismissed(self, state: State, member: Member, out: Out) -> State:
        """Its parked join is answered. Its parked sync is not: brokers forget it."""
        if member.join is not None and member.join.to != ANSWERED:
            out.append(self.join_refusal(member.join.to, Error.UNKNOWN_MEMBER_ID, ""))
        return self.removed(state, member, out)

    def removed(self, state: State, member: Member, out: Out) -> State:
        """Without a word to it."""
        if not member.waits:
            out.append(Disarm(session(member.id)))
        members = tuple([each for each in state.members if each.id != member.id])
        leader = state.leader
        if leader == member.id:
            leader = self.choose_leader(state, members).id if members else None
        if member.owes_sync and self.rules.sync_deadline and not any(each.owes_sync for each in members):
            out.append(Disarm(SYNC))
        return state._replace(members=members, leader=leader)

    def after_removal(self, state: State, out: Out) -> State:
        if state.phase is Phase.STABLE or state.phase is Phase.COMPLETING:
            return self.prepare(state, out)
        return self.complete_if_all_joined(state, out)

    def drop_pending(self, state: State, id: str, out: Out) -> State:
        """An id that was given out and is not used any more."""
        state = state._replace(pending=tuple([each for each in state.pending if each != id]))
        return self.complete_if_all_joined(state, out)

    # Time

    def on_fired(self, state: State, timer: Timer, out: Out) -> State:
        match timer.kind:
            case "session":
                return self.on_session_expired(state, timer.member, out)
            case "pending":
                return self.drop_pending(state, timer.member, out)
            case "sync":
                return self.on_sync_deadline(state, out)
            case _:
                return self.on_rebalance_timeout(state, out)

    def on_session_expired(self, state: State, id: str, out: Out) -> State:
        member = state.member(id)
        assert member is not None, "a session ends with its member"
        return self.remove_member(state, member, out)

    def on_rebalance_timeout(self, state: State, out: Out) -> State:
        return self.another_round(state, out) if self.waits_for_more(state) else self.complete_join(state, out)

    def another_round(self, state: State, out: Out) -> State:
        """Of the initial rebalance. What remains shrinks by the round that is over."""
        delay = min(self.config.initial_delay_ms, state.remaining_ms)
        out.append(Arm(REBALANCE, delay))
        remaining = max(state.remaining_ms - state.delay_ms, 0)
        return state._replace(delay_ms=delay, remaining_ms=remaining, grown=False)

    def on_sync_deadline(self, state: State, out: Out) -> State:
        """Who did not ask for its assignment goes."""
        for each in state.members:
            if each.owes_sync:
                state = self.removed(state, each, out)
        return self.prepare(state, out)

    # Static members

    def replace_static(self, state: State, holder: Member, join: Join, out: Out) -> State:
        """Its process was started again, and has forgotten its id."""
        leader = state.leader
        state = self.fence_off(state, holder, join.fresh, out)
        fresh = state.member(join.fresh)
        assert fresh is not None
        state = state.placed(self.waiting_as_replacement(fresh, join))
        if state.phase is Phase.PREPARING:
            return self.complete_if_all_joined(state, out)
        if self.replacement_starts_round(state):
            return self.prepare(state, out)
        if state.phase is Phase.COMPLETING or not self.rules.replacement_written:
            return self.answer_replacement(state, join.fresh, leader, out)
        return self.append(state, Replacing(self.group_record(state), holder, join.fresh, leader), out)

    def replacement_starts_round(self, state: State) -> bool:
        if state.phase is Phase.COMPLETING:
            return self.rules.replacement_rejoins
        return state.protocol != self.elected_protocol(state)

    def waiting_as_replacement(self, fresh: Member, join: Join) -> Member:
        changed = self.updated(fresh, join)
        if not self.rules.replacement_timeouts:
            changed = changed._replace(rebalance_ms=fresh.rebalance_ms, session_ms=fresh.session_ms)
        return changed._replace(join=Parked(join.request, join.version))

    def fence_off(self, state: State, holder: Member, fresh: str, out: Out) -> State:
        """Whatever the former process waits for is answered; its place in the group gets another id."""
        if holder.join is not None and holder.join.to != ANSWERED:
            out.append(self.join_refusal(holder.join.to, Error.FENCED_INSTANCE_ID, holder.id))
        if holder.sync is not None and holder.sync.to != ANSWERED:
            out.append(self.synced(state, holder, holder.sync, Error.FENCED_INSTANCE_ID))
        if not holder.waits:
            out.append(Disarm(session(holder.id)))
        if holder.new:
            out.append(Arm(session(fresh), self.config.new_member_ms))
        renamed = holder._replace(id=fresh, join=None, sync=None)
        leader = fresh if state.leader == holder.id else state.leader
        return state.placed(renamed, holder.id)._replace(leader=leader)

    def answer_replacement(self, state: State, id: str, former_leader: str | None, out: Out) -> State:
        """In the generation that there is. Up to JoinGroup version 8 a leader is told that its old id leads, so that it
        does not assign; later that it leads, and shall skip that."""
        member = state.member(id)
        if member is None or member.join is None:
            return state
        asked = member.join
        skips = asked.version >= SKIP_SINCE and state.leader == id
        leader = state.leader if asked.version >= SKIP_SINCE else former_leader
        if asked.to != ANSWERED:
            out.append(self.joined(state, member, asked, leader, skips, skips))
        out.append(Arm(session(id), member.session_ms))
        return state.placed(member._replace(join=None, new=False))

    # The log

    def append(self, state: State, write: Write, out: Out) -> State:
        out.append(Append(write.record))
        return state._replace(writes=(*state.writes, write))

    def group_record(self, state: State, assignments: dict[str, object] | None = None) -> GroupRecord:
        """Of the generation that there is, with these assignments in the place of the members' own."""
        return GroupRecord(
            state.generation,
            state.protocol_type or "",
            state.protocol,
            state.leader,
            tuple(
                [
                    (
                        each.id,
                        each.instance,
                        each.session_ms,
                        each.rebalance_ms,
                        each.metadata(state.protocol),
                        each.assignment if assignments is None else assignments.get(each.id, EMPTY),
                    )
                    for each in state.members
                ]
            ),
        )
