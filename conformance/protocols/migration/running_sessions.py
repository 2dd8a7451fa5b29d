"""A classic coordinator whose members' sessions run on, without effect, while their requests are parked.

It matters only if parked requests are answered although the group stays as it is, which a consumer causes that joins
it in vain. Source: ``GroupMetadataManager.expireClassicGroupMemberHeartbeat`` of the releases from 4.0 on.
"""

from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.state import Member, State, arm_session, disarm_session


class RunningSessions(Coordinator):
    def rest(self, member: Member, out: Out) -> None:
        """Its session runs on."""

    def fence_off(self, state: State, holder: Member, fresh: str, out: Out) -> State:
        """The session of the successor begins, though its request is parked."""
        state = super().fence_off(state, holder, fresh, out)
        out.append(disarm_session(holder.id))
        out.append(arm_session(fresh, holder.session_ms))
        return state

    def taken_out(self, state: State, member: Member, out: Out) -> State:
        out.append(disarm_session(member.id))
        return super().taken_out(state, member, out)

    def on_session_expired(self, state: State, id: str, out: Out) -> State:
        """A parked request keeps a member alive, unless it is new."""
        member = state.member(id)
        if member is not None and member.waits:
            return state
        return super().on_session_expired(state, id, out)
