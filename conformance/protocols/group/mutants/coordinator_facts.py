"""Coordinators of classic groups with one planted defect each, written independently of the invariants.

They come from Kafka's decision tables and from defects of releases, after the invariants were complete: a test that the
invariants also find defects they were not written for. Least cases are in shorthand.
"""

from collections.abc import Callable
from typing import TypeVar

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.protocols.declare.mutant import Least, mutant
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.state import Log, Member, Offsets, State
from kipcheck.conformance.protocols.group.ops import GROUP
from kipcheck.conformance.protocols.group.target import CoordinatorAdapter

PLACE = 20

Made = TypeVar("Made", bound=type[CoordinatorAdapter])


def group_mutant(check: str, invariant: str, least: Least) -> Callable[[Made], Made]:
    return mutant(f"group/{check}", f"group/{invariant}", GROUP, None, least)


# Join phases and their ends


@group_mutant(
    "parked", "assignments-in-time", "join a rebalance=4000; join b rebalance=4000; elapse 4000; sync b; elapse 4000"
)
class WaitsForEverySync(CoordinatorAdapter):
    """A member that never sends SyncGroup is not removed at the deadline (KAFKA-12890)."""

    def on_sync_deadline(self, state: State, out: Out) -> State:
        return state._replace(owing=())


@group_mutant(
    "parked", "ends-when-all-joined", "join a; join a v4; elapse 3000; join a; rejoin a; elapse 7000; elapse 1"
)
class WaitsForVoidIds(CoordinatorAdapter):
    """When an unused member id expires, the end of the join phase is not checked (KAFKA-9752)."""

    def on_pending_expired(self, state: State, id: str, out: Out) -> State:
        return state._replace(pending=tuple(each for each in state.pending if each != id))


@group_mutant(
    "parked",
    "parked-answered",
    "join a rebalance=4000; join b rebalance=4000; elapse 3000; join c rebalance=4000; elapse 1000",
)
class NeverRunsOut(CoordinatorAdapter):
    """Every join extends the initial rebalance, without a limit."""

    def another_round(self, state: State, out: Out) -> State:
        return super().another_round(state, out)._replace(remaining_ms=state.remaining_ms)


@group_mutant("generations", "most-votes", "join a lists=p:x,q:x; elapse 3000")
class CountsTheLastVote(CoordinatorAdapter):
    """Each member votes for the last protocol in its list."""

    def vote(self, member: Member, candidates: frozenset[str]) -> str:
        return [name for name, _ in member.protocols if name in candidates][-1]


@group_mutant("generations", "rejoins", "join a; join b; elapse 6000; sync a; join a id=b")
class DisturbedByRetries(CoordinatorAdapter):
    """A follower of a stable group that joins again without a change starts a rebalance."""

    def answered_at_once(self, state: State, member: Member, join: messages.Join) -> bool:
        return state.phase is not messages.Phase.STABLE and super().answered_at_once(state, member, join)


@group_mutant("generations", "generation-grows", "join c; elapse 3000; sync c; join a id=c")
class DeafToItsLeader(CoordinatorAdapter):
    """The leader of a stable group that joins again gets the current generation."""

    def answered_at_once(self, state: State, member: Member, join: messages.Join) -> bool:
        stable = state.phase in (messages.Phase.STABLE, messages.Phase.COMPLETING)
        return stable and self.unchanged(member, join)


@group_mutant("generations", "rejoins", "join b lists=p:x,q:x; elapse 3000; rejoin b lists=q:x,p:x")
class ComparesSets(CoordinatorAdapter):
    """Protocols in another order count as unchanged."""

    def unchanged(self, member: Member, join: messages.Join) -> bool:
        return {*member.protocols} == {*join.protocols}


# Static members


@group_mutant(
    "static", "static-stay", "join a as j rebalance=4000; elapse 3000; join a as i rebalance=4000; elapse 4000"
)
class DropsAbsentInstances(CoordinatorAdapter):
    """Static members that have not joined again at the deadline are removed like dynamic ones."""

    def is_absent(self, member: Member) -> bool:
        return member.join is None


@group_mutant("static", "fenced-let-go", "join a as i; join a as i")
class LeavesTheGhostWaiting(CoordinatorAdapter):
    """The parked JoinGroup of the previous process of an instance is never answered."""

    def fence_off(self, state: State, holder: Member, fresh: str, out: Out) -> State:
        return super().fence_off(state, holder._replace(join=None), fresh, out)


@group_mutant("errors", "like-its-release", "join a as i; elapse 3000; join a as i")
class ReplacesAmidTheRound(CoordinatorAdapter):
    """A static member that rejoins while the assignment is pending starts no rebalance (KAFKA-9801)."""

    def replacement_starts_round(self, state: State) -> bool:
        return state.phase is not messages.Phase.COMPLETING and super().replacement_starts_round(state)


@group_mutant("static", "answers-leave", "join a as i; leave a a/i")
class LeavesForAnother(CoordinatorAdapter):
    """An instance can leave with any member id."""

    def leave_fault(self, state: State, id: str, instance: str | None) -> Error | None:
        return super().leave_fault(state, "" if instance is not None else id, instance)


# Sync and heartbeat


@group_mutant("errors", "answers-sync", "join d v4; join a id=d; sync a id=d")
class AnswersWhileJoining(CoordinatorAdapter):
    """During a join phase SyncGroup is answered with the previous assignment."""

    def sync_fault(self, state: State, sync: messages.Sync) -> Error | None:
        fault = super().sync_fault(state, sync)
        return None if fault is Error.REBALANCE_IN_PROGRESS else fault


@group_mutant("static", "answers-sync", "join a; elapse 3000; sync a type=connect protocol=p v5")
class TrustsTheProtocol(CoordinatorAdapter):
    """The protocol in SyncGroup is not compared with the chosen one."""

    def names_the_protocol(self, state: State, sync: messages.Sync) -> bool:
        return True


@group_mutant(
    "parked",
    "sessions-kept",
    "join a session=30000; elapse 3000; sync a; elapse 10000; beat a; elapse 20000; beat a",
)
class AnswersAndForgets(CoordinatorAdapter):
    """A heartbeat is answered, but does not extend the session."""

    def refreshed_by_heartbeat(self, state: State, member: Member) -> bool:
        return False


@mutant(
    "group/parked", "group/sessions-kept", GROUP, None, ...,
    edition=f"apache@{named('last-before-4')}",
)  # fmt: skip
class HurriesOldMembers(CoordinatorAdapter):
    """A member whose JoinGroup has version 0, without a rebalance timeout, has no time to join again (KAFKA-8653)."""

    def patience_ms(self, join: messages.Join) -> int:
        return 0 if join.version == 0 else join.patience_ms


@group_mutant("errors", "answers-heartbeat", "join a v4; rejoin a; beat a")
class KeepsTheRoundSecret(CoordinatorAdapter):
    """During a join phase heartbeats are answered without an error."""

    def must_rejoin(self, state: State) -> bool:
        return False


@group_mutant("errors", "answers-heartbeat", "join a; elapse 3000; beat a behind=1")
class BeatsInAnyGeneration(CoordinatorAdapter):
    """The generation of a heartbeat is not checked."""

    def heartbeat_fault(self, state: State, beat: messages.Heartbeat) -> Error | None:
        return self.fenced(state, beat.member, beat.instance)


# Offsets, deletion, limits


@group_mutant("errors", "answers-offsets", "join a; elapse 3000; commit a 0")
class CommitsBetweenGenerations(CoordinatorAdapter):
    """A commit is accepted while the assignment is pending."""

    def commit_fault(self, state: State, commit: messages.Commit) -> Error | None:
        fault = super().commit_fault(state, commit)
        return None if fault is Error.REBALANCE_IN_PROGRESS else fault


@group_mutant("errors", "answers-offsets", "join a; commit a id= 0 behind=1")
class TakesAnybodysCommit(CoordinatorAdapter):
    """A commit without member and generation is accepted although the group has members."""

    def commit_fault(self, state: State, commit: messages.Commit) -> Error | None:
        return None if commit.generation < 0 and not commit.member else super().commit_fault(state, commit)


@group_mutant("records", "commits-kept", "commit a 0 t:1:0 behind=1; fetch")
class FetchesOne(CoordinatorAdapter):
    """OffsetFetch returns only the first of the committed offsets."""

    def fetched(self, state: State, fetch: messages.Fetch) -> Offsets:
        return super().fetched(state, fetch)[:1]


@group_mutant("records", "commits-kept-whole", "commit a id= t:0:1:3: behind=none; fetch")
class ReturnsNoLeaderEpoch(CoordinatorAdapter):
    """OffsetFetch returns no leader epoch."""

    def fetched(self, state: State, fetch: messages.Fetch) -> Offsets:
        return tuple((*row[:3], -1, row[4]) for row in super().fetched(state, fetch))


@group_mutant("records", "commits-kept-whole", "commit a id= t:0:2:-1:m behind=none; move; fetch")
class LoadsNoMetadata(CoordinatorAdapter):
    """A loaded group lacks the metadata of its offsets."""

    def recalled(self, log: Log) -> State:
        bare = tuple((*row[:4], "") for row in log.offsets)
        return super().recalled(log._replace(offsets=bare))


@group_mutant("errors", "answers-groups", "join a; delete")
class DeletesUnderMembers(CoordinatorAdapter):
    """A group with members is deleted."""

    def delete_fault(self, state: State) -> Error | None:
        fault = super().delete_fault(state)
        return None if fault is Error.NON_EMPTY_GROUP else fault


@group_mutant("errors", "answers-join", "join a; join a; join a; join a; join a")
class OneTooMany(CoordinatorAdapter):
    """One member more than group.max.size is admitted."""

    def admits(self, state: State, id: str) -> bool:
        first = state.members[0].id if state.members else None
        return super().admits(state._replace(members=tuple(each for each in state.members if each.id != first)), id)


# Records


@group_mutant("records", "outlives-moves", "join a; elapse 3000; sync a a=x; describe; move; describe d v0")
class RecallsNoAssignments(CoordinatorAdapter):
    """Assignments are not restored from the log."""

    def recalled_member(
        self, record: messages.GroupRecord, member: tuple[str, str | None, int, int, messages.Blob, messages.Blob]
    ) -> Member:
        return super().recalled_member(record, (*member[:5], messages.EMPTY))


@group_mutant("generations", "generation-grows", "join a as i; elapse 3000; sync a; move; join a as i")
class RecallsTheGenerationBefore(CoordinatorAdapter):
    """A loaded group continues with the previous generation."""

    def recalled(self, log: Log) -> State:
        after = super().recalled(log)
        return after._replace(generation=max(after.generation - 1, 0))


@group_mutant("records", "failed-writes-count-nothing", "join a; elapse 3000; fail NOT_ENOUGH_REPLICAS; sync a")
class AssignsUnwritten(CoordinatorAdapter):
    """A failed write of the assignment is ignored."""

    def assignment_failed(self, state: State, error: Error, out: Out) -> State:
        return self.answer_parked_syncs(state._replace(phase=messages.Phase.STABLE), Error.NONE, out)


@group_mutant("records", "commits-kept", "join a; elapse 3000; sync a; commit a 0; leave a; delete; fetch")
class DeletesTheGroupAlone(CoordinatorAdapter):
    """The offsets of a deleted group are kept."""

    def delete(self, state: State, delete: messages.Delete, out: Out) -> State:
        return super().delete(state, delete, out)._replace(offsets=state.offsets)
