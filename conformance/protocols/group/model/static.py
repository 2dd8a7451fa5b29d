"""Static members of a classic group (KIP-345): a restarted process takes over its former membership."""

from kipcheck.conformance.protocols.group.model.answers import JOIN_TYPE_SINCE
from kipcheck.conformance.protocols.group.model.messages import Error, Join, Joined, Phase
from kipcheck.conformance.protocols.group.model.rounds import Out, Rounds
from kipcheck.conformance.protocols.group.model.state import Member, Replacing, State, arm_session, disarm_session

SKIP_SINCE = 9
"""JoinGroup (KIP-814)."""


class StaticMembers(Rounds):
    def replace_static(self, state: State, holder: Member, join: Join, out: Out) -> State:
        """A join without a member id, with the instance of ``holder``: a restarted process."""
        former_leader = state.leader
        state = self.fence_off(state, holder, join.fresh, out)
        state = state.placed(self.updated(state.known(join.fresh), join))
        if state.phase is Phase.PREPARING:
            return self.complete_if_all_joined(state, out)
        if self.replacement_starts_round(state):
            return self.prepare(state, out)
        if not self.rules.replacement_written:
            return self.answer_replacement(state, join.fresh, former_leader, holder.session_ms, out)
        return self.append(state, Replacing(self.group_record(state), holder, join.fresh, former_leader), out)

    def fence_off(self, state: State, holder: Member, fresh: str, out: Out) -> State:
        """Fences the parked requests of the former process, and gives the membership a new id. A new member that waits
        may do so for one more session in Scala, in Java without a limit."""
        if holder.join is not None:
            out.append(self.join_refusal(holder.join.to, Error.FENCED_INSTANCE_ID, holder.id))
        if holder.sync is not None:
            out.append(self.synced(state, holder, holder.sync, Error.FENCED_INSTANCE_ID))
        if not holder.waits:
            out.append(disarm_session(holder.id))
        new = holder.new and self.rules.new_sessions_end and not self.rules.java
        if new:
            out.append(arm_session(fresh, holder.session_ms))
        leader = fresh if state.leader == holder.id else state.leader
        return state.placed(holder._replace(id=fresh, join=None, sync=None, new=new), holder.id)._replace(leader=leader)

    def answer_replacement(self, state: State, id: str, former_leader: str | None, session_ms: int, out: Out) -> State:
        """Answers in the current generation. Up to JoinGroup version 8 a leader gets its former id as leader id, so
        that it does not assign; later it gets its new id, with the flag to skip the assignment. Its first session has
        the former timeout."""
        member = state.member(id)
        if member is None or member.join is None:
            return state
        asked = member.join
        skipping = asked.version >= SKIP_SINCE
        leads = skipping and state.leader == id
        out.append(self.joined(state, member, asked, state.leader if skipping else former_leader, leads, leads))
        out.append(arm_session(id, session_ms))
        return state.placed(member._replace(join=None))

    def replacement_failed(self, state: State, write: Replacing, error: Error, out: Out) -> State:
        """Restores the former id; in Scala with the protocols of the new process."""
        member = state.member(write.after)
        if member is None:
            return state
        if member.join is not None:
            kind = state.protocol_type if member.join.version >= JOIN_TYPE_SINCE else None
            fields = (state.generation, kind, state.protocol, write.leader or "")
            out.append(Joined(member.join.to, self.write_error(error), *fields))
        elif not member.waits:
            out.append(disarm_session(member.id))
        if member.sync is not None:
            out.append(self.synced(state, member, member.sync, Error.FENCED_INSTANCE_ID))
        return self.restored(state, member, write.before, out)

    def restored(self, state: State, member: Member, before: Member, out: Out) -> State:
        out.append(arm_session(before.id, before.session_ms))
        protocols = before.protocols if self.rules.java else member.protocols
        leader = before.id if state.leader == member.id else state.leader
        holder = before._replace(protocols=protocols, assignment=member.assignment, join=None, sync=None)
        state = state.placed(holder, member.id)._replace(leader=leader)
        return self.complete_if_all_joined(state, out)
