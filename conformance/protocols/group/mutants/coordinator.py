"""Coordinators of classic groups with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.state import Log, Member, Parked, State
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter, DraftCoordinatorAdapter

PLACE = 10

Made = TypeVar("Made", bound=type[CoordinatorAdapter] | type[DraftCoordinatorAdapter])


def _check(name: str) -> Callable[[str, str], Callable[[Made], Made]]:
    return lambda invariant, least: mutant(f"group/{name}", f"group/{invariant}", GROUP, None, least)


generations, parked, static, errors, records = map(_check, ("generations", "parked", "static", "errors", "records"))
newest = _check("newest-leads")


# Generations


@generations("generation-grows", "join a; elapse 3000; rejoin a lists=p:y; rejoin a")
class LeapsOver(CoordinatorAdapter):
    """Each join phase raises the generation by two."""

    def bumped(self, generation: int) -> int:
        return generation + 2


@generations("generation-grows", "join a; elapse 3000; rejoin a lists=p:y; sync a; rejoin a")
class CountsToTwo(CoordinatorAdapter):
    """The generation never rises above 2."""

    def bumped(self, generation: int) -> int:
        return min(super().bumped(generation), 2)


@generations("one-leader", "join a; join b; elapse 6000")
class LeadsInSecret(CoordinatorAdapter):
    """Only the leader gets the leader's id."""

    def joined(
        self, state: State, member: Member, asked: Parked, leader: str | None, listing: bool, skip: bool = False
    ) -> messages.Joined:
        return super().joined(state, member, asked, leader if listing else None, listing, skip)


@generations("list-only-to-leader", "join a; join b; elapse 6000")
class ListsToAll(CoordinatorAdapter):
    """Every member gets the list of members."""

    def joined(
        self, state: State, member: Member, asked: Parked, leader: str | None, listing: bool, skip: bool = False
    ) -> messages.Joined:
        return super().joined(state, member, asked, leader, True, skip)


@generations("leader-hears-all", "join a; join b; elapse 6000")
class ListsOneTooFew(CoordinatorAdapter):
    """The leader's list lacks the last member, if there are several."""

    def member_list(self, state: State, version: int) -> tuple[tuple[str, str | None, messages.Blob], ...]:
        return super().member_list(state, version)[: max(1, len(state.members) - 1)]


@generations("leader-hears-all", "join a; elapse 3000; rejoin a lists=p:y")
class KeepsOldMetadata(CoordinatorAdapter):
    """The metadata of a member that joins again is not updated."""

    def updated(self, member: Member, join: messages.Join) -> Member:
        return super().updated(member, join)._replace(protocols=member.protocols)


@generations("common-protocol", "join a lists=q:x,p:x; join b; elapse 6000")
class PleasesTheFirst(CoordinatorAdapter):
    """The protocol is the first member's preferred one."""

    def elected_protocol(self, state: State) -> str:
        return state.members[0].protocols[0][0]


@generations("assignment-from-leader", "join a; join b; elapse 6000; sync b")
class AnyoneAssigns(CoordinatorAdapter):
    """The first SyncGroup sets the assignment, whichever member sends it."""

    def assigns(self, state: State, member: Member) -> bool:
        return True


@generations("assignment-from-leader", "join a; elapse 3000; sync a a=x")
class HandsOutNothing(CoordinatorAdapter):
    """In a stable group SyncGroup is answered with an empty assignment."""

    def synced(self, state: State, member: Member, asked: Parked, error: Error) -> messages.Synced:
        stable = state.phase is messages.Phase.STABLE
        return super().synced(state, member._replace(assignment=messages.EMPTY) if stable else member, asked, error)


@generations("initial-delay", "join a")
class WaitsForNobody(CoordinatorAdapter):
    """The first join phase ends with the first member."""

    def prepare_first(self, state: State, out: Out) -> State:
        return self.complete_join(state._replace(phase=messages.Phase.PREPARING), out)


@generations("join-phase-ends", "join a; join b; elapse 6000; rejoin a lists=p:y")
class WaitsForTheLeaderAlone(CoordinatorAdapter):
    """The join phase ends when the leader has joined again; the others are in the next generation without joining."""

    def prepare(self, state: State, out: Out) -> State:
        state = super().prepare(state, out)
        leader = state.member(state.leader or "")
        hasty = (
            state.phase is messages.Phase.PREPARING
            and not state.initial
            and leader is not None
            and leader.join is not None
        )
        return self.next_generation(state, out) if hasty else state


# Parked requests


@parked("answered-once", "join a as i; elapse 3000; sync a; join a as i")
class AnswersAgain(CoordinatorAdapter):
    """An answered SyncGroup still counts as parked."""

    def answer_parked_syncs(self, state: State, error: Error, out: Out) -> State:
        super().answer_parked_syncs(state, error, out)
        return state


@parked("answered-once", "beat a")
class RefusesHeartbeats(CoordinatorAdapter):
    """Heartbeats have no answer of their own: the coordinator raises an exception."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] == "heartbeat":
            return {"status": "rejected", "class": "IllegalStateException", "message": "no heartbeat"}
        return super().answer(op)


@parked("answers-at-once", "join a v4; rejoin a; beat a")
class ParksHeartbeats(CoordinatorAdapter):
    """During a join phase heartbeats get no answer."""

    def heartbeat(self, state: State, beat: messages.Heartbeat, out: Out) -> State:
        return state if self.must_rejoin(state) else super().heartbeat(state, beat, out)


@parked("parked-answered", "join a session=30000 rebalance=10000; elapse 3000; join b rebalance=10000; elapse 10000")
class SleepsThroughTheDeadline(CoordinatorAdapter):
    """The join phase does not end at its deadline while a member has not joined."""

    def on_rebalance_timeout(self, state: State, out: Out) -> State:
        return super().on_rebalance_timeout(state, out) if state.initial or self.all_joined(state) else state


@parked("superseded-let-go", "join a v4; rejoin a; rejoin a")
class AnswersTheFormer(CoordinatorAdapter):
    """A JoinGroup that a newer one replaces is answered REBALANCE_IN_PROGRESS."""

    def supersede_join(self, member: Member, former: Parked, out: Out) -> None:
        out.append(self.join_refusal(former.to, Error.REBALANCE_IN_PROGRESS, member.id))


@parked("unload-answers-all", "join a; join b; elapse 6000; sync b; unload")
class MovesInSilence(CoordinatorAdapter):
    """When the group moves away, parked SyncGroups are never answered."""

    def unload(self, state: State, out: Out) -> State:
        return super().unload(state._replace(members=tuple(each._replace(sync=None) for each in state.members)), out)


@parked("sessions-end", "join a; elapse 3000; elapse 10000; beat a")
class NeverLetsGo(CoordinatorAdapter):
    """A silent member is never removed."""

    def on_session_expired(self, state: State, id: str, out: Out) -> State:
        return state


@parked("sessions-kept", "join a; elapse 3000; sync a; elapse 5000; beat a; elapse 5000; beat a")
class DeafToHeartbeats(CoordinatorAdapter):
    """A heartbeat is answered, but does not extend the session of its member."""

    def refreshed_by_heartbeat(self, state: State, member: Member) -> bool:
        return False


# Ids


@static("one-id-per-instance", "join a as i; join b as i; elapse 6000")
class TakesTwins(CoordinatorAdapter):
    """A join with a known instance id adds another member."""

    def replace_static(self, state: State, holder: Member, join: messages.Join, out: Out) -> State:
        return self.add_member(state, join, join.fresh, out)


@static("fenced-never-wins", "join a as i; elapse 3000; sync a; join b as i; commit a as i 3")
class CommitsForTheInstance(CoordinatorAdapter):
    """The member id of a commit with an instance id is not checked."""

    def commit_fault(self, state: State, commit: messages.Commit) -> Error | None:
        holder = state.static(commit.instance or "")
        return super().commit_fault(state, commit if holder is None else replace(commit, member=holder.id))


@static("fenced-let-go", "join a as i; join b as i")
class LeavesTheFormerWaiting(CoordinatorAdapter):
    """Parked requests of the previous process of an instance are never answered."""

    def fence_off(self, state: State, holder: Member, fresh: str, out: Out) -> State:
        return super().fence_off(state, holder._replace(join=None, sync=None), fresh, out)


@static(
    "parked-answered",
    "join a as i rebalance=10000; elapse 3000; sync a; join a as i rebalance=4000; join b rebalance=4000; elapse 4000",
)
class KeepsFormerTimeouts(CoordinatorAdapter):
    """A member that joins again keeps the timeouts of its first JoinGroup, also as a new process of its instance."""

    def timeouts(self, member: Member, join: messages.Join) -> tuple[int, int]:
        return member.session_ms, member.rebalance_ms


@static("fresh-ids", "join a v4; join b v4")
class GivesIdsTwice(CoordinatorAdapter):
    """While a new member id is unused, every member without an id gets it."""

    def give_id(self, state: State, join: messages.Join, out: Out) -> State:
        return super().give_id(state, replace(join, fresh=(*state.pending, join.fresh)[0]), out)


@static("ids-before-members", "join a v4")
class AsksForIdsTooLate(CoordinatorAdapter):
    """Members have to join with an id from JoinGroup version 5 on instead of 4."""

    def needs_id_first(self, join: messages.Join) -> bool:
        return super().needs_id_first(join) and join.version != 4


@static("replaced-at-once", "join a as i; elapse 3000; sync a; join a as i")
class DisturbedByRestarts(CoordinatorAdapter):
    """A static member that rejoins a stable group makes all members join again."""

    def replacement_starts_round(self, state: State) -> bool:
        return True


@parked("removed-let-go", "join a; join b; elapse 6000; sync b; leave b")
class ForgetsTheParkedSync(CoordinatorAdapter):
    """The parked SyncGroup of a member that leaves is never answered, as in all releases."""

    def dismissed(self, state: State, member: Member, out: Out) -> State:
        return super().dismissed(state, member._replace(sync=None), out)


# Errors


@errors("answers-join", "join a session=6000 v4")
class WantsLongerSessions(CoordinatorAdapter):
    """The shortest allowed session timeout is refused."""

    def session_allowed(self, ms: int) -> bool:
        return super().session_allowed(ms) and ms != self.config.min_session_ms


@errors("answers-sync", "join a; elapse 3000; join b; sync a")
class HandsOutTheOld(CoordinatorAdapter):
    """During a join phase SyncGroup is answered with the previous assignment."""

    def sync_fault(self, state: State, sync: messages.Sync) -> Error | None:
        fault = super().sync_fault(state, sync)
        return None if fault is Error.REBALANCE_IN_PROGRESS else fault


@errors("beats-before-assignment", "join a; elapse 3000; beat a")
class BusyUntilStable(CoordinatorAdapter):
    """While the assignment is pending, a heartbeat is answered REBALANCE_IN_PROGRESS."""

    def must_rejoin(self, state: State) -> bool:
        return state.phase is not messages.Phase.STABLE


@errors("answers-leave", "join a as i; leave a /i")
class WantsMemberIds(CoordinatorAdapter):
    """A member cannot leave by its instance id alone."""

    def leave_fault(self, state: State, id: str, instance: str | None) -> Error | None:
        return super().leave_fault(state, id, instance) if id else Error.UNKNOWN_MEMBER_ID


@errors("answers-offsets", "join a; elapse 3000; commit a 0")
class CommitsTooEarly(CoordinatorAdapter):
    """A commit is accepted before the group has an assignment."""

    def commit_fault(self, state: State, commit: messages.Commit) -> Error | None:
        fault = super().commit_fault(state, commit)
        return None if fault is Error.REBALANCE_IN_PROGRESS else fault


@errors("answers-groups", "join a; elapse 3000; sync a; delete")
class DeletesTheLiving(CoordinatorAdapter):
    """A group is deleted although it has members."""

    def delete_fault(self, state: State) -> Error | None:
        return None if state.phase is messages.Phase.STABLE else super().delete_fault(state)


@errors("stale-never-wins", "join a; elapse 3000; beat a behind=1")
class TakesOlderGenerations(CoordinatorAdapter):
    """Only future generations are refused, not older ones."""

    def stale(self, state: State, generation: int) -> Error | None:
        return super().stale(state, max(generation, state.generation))


@errors("refused-changes-nothing", "join a; elapse 3000; sync a; describe; rejoin a as i; describe")
class DisturbedByStrangers(CoordinatorAdapter):
    """A refused JoinGroup makes all members join again."""

    def after_refused_join(self, state: State, join: messages.Join, error: Error, out: Out) -> State:
        return self.prepare(state, out) if state.phase is messages.Phase.STABLE else state


@errors("refused-disturbs-nobody", "join a; elapse 3000; sync a; commit a behind=1; beat a")
class TakesWhatItRefuses(CoordinatorAdapter):
    """A member is removed when one of its requests is refused."""

    def refuse(self, state: State, request: messages.Request, error: Error, out: Out) -> State:
        state = super().refuse(state, request, error, out)
        member = (
            state.member(request.member)
            if isinstance(request, messages.Heartbeat | messages.Sync | messages.Commit)
            else None
        )
        return state if member is None else self.after_removal(self.dismissed(state, member, out), out)


@errors("size-limit", "join a; join b; join c; join d; join e; elapse 15000")
class AdmitsOneMore(CoordinatorAdapter):
    """One member more than group.max.size is admitted."""

    def admits(self, state: State, id: str) -> bool:
        return super().admits(state, id) or len(state.members) == self.config.max_size


# The log


@records("commits-kept", "commit a id= 5 behind=none; move; fetch")
class LosesOffsets(CoordinatorAdapter):
    """A loaded group lacks its offsets."""

    def recalled(self, log: Log) -> State:
        return super().recalled(log)._replace(offsets=())


@records("outlives-moves", "join a; elapse 3000; sync a a=x; describe; move; describe")
class LosesAssignments(CoordinatorAdapter):
    """A loaded group lacks the assignments of its members."""

    def recalled_member(
        self, record: messages.GroupRecord, member: tuple[str, str | None, int, int, messages.Blob, messages.Blob]
    ) -> Member:
        return super().recalled_member(record, member)._replace(assignment=messages.EMPTY)


@records("goes-on-after-moves", "join a; elapse 3000; sync a; move; beat a")
class BeginsAnew(CoordinatorAdapter):
    """Loading the group makes its members join again."""

    def loaded(self, state: State, out: Out) -> State:
        state = super().loaded(state, out)
        return self.prepare(state, out) if state.phase is messages.Phase.STABLE else state


@records("failed-writes-count-nothing", "join a; elapse 3000; fail NOT_ENOUGH_REPLICAS; sync a")
class HandsOutUnwritten(CoordinatorAdapter):
    """An assignment that could not be written is handed out nevertheless."""

    def assignment_failed(self, state: State, error: Error, out: Out) -> State:
        return self.answer_parked_syncs(state, Error.NONE, out)._replace(phase=messages.Phase.STABLE)


# KIP-429's draft


@newest("newest-leads", "join a v4; rejoin a pv=0; join b v4; rejoin b pv=1; elapse 6000")
class FirstComeFirstServed(DraftCoordinatorAdapter):
    """The leader is chosen without regard to protocol versions."""

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        return candidates[0]


@newest("newest-leads", "join a v4; rejoin a pv=0; join b v4; rejoin b pv=1; elapse 6000")
class LeadsForLife(DraftCoordinatorAdapter):
    """A leader that joins again stays leader, even if a member has a higher version."""

    def keeps_leader(self, state: State, leader: Member) -> bool:
        return leader.join is not None


@newest("first-of-newest-leads", "join a; elapse 3000; join b; join c; leave a v2")
class LastComeFirstServed(DraftCoordinatorAdapter):
    """Of several members with the highest version the last one leads."""

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        return super().choose_leader(state, candidates[::-1])
