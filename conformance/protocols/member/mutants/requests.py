"""Consumers of classic groups with one planted defect each in how they handle errors, in their duties or requests.

Least cases are in shorthand.
"""

from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.membership import Assigned
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.member.model.consumer import COORDINATOR_ERRORS, Consumer, Reaction
from kipcheck.conformance.protocols.member.model.messages import HEARTBEAT, POLLED, Action, Event
from kipcheck.conformance.protocols.member.model.state import Identity, Phase, State, Step
from kipcheck.conformance.protocols.member.mutants.callbacks import duties, errors, ownership
from kipcheck.conformance.protocols.member.ops import CommitEnded, Disconnected, Unsubscribe

PLACE = 20

PASSING = (group.Error.COORDINATOR_LOAD_IN_PROGRESS, *COORDINATOR_ERRORS)


# Errors


@errors("speaks-as-it-was-told", "open range; subscribe t; poll; joined MEMBER_ID_REQUIRED me=m1; poll")
class ForgetsItsNewId(Consumer):
    """The member id in a MEMBER_ID_REQUIRED response is ignored."""

    def join_failed(self, state: State, answer: group.Joined) -> State:
        return super().join_failed(state, replace(answer, member=""))


@errors("speaks-as-it-was-told", "open range; subscribe t; poll; joined 1; synced UNKNOWN_MEMBER_ID; poll")
class KeepsADeadId(Consumer):
    """UNKNOWN_MEMBER_ID resets only the generation."""

    def reset(self, state: State, keeps_id: bool) -> State:
        return super().reset(state, keeps_id=True)


@errors("keeps-its-id", "open range; subscribe t; poll; joined 1; synced ILLEGAL_GENERATION; poll")
class ForgetsTooMuch(Consumer):
    """ILLEGAL_GENERATION also resets the member id (KAFKA-13419)."""

    def keeps_id(self, error: group.Error) -> bool:
        return False


@errors("speaks-as-it-was-told", "open range; subscribe t; poll; joined 1; synced REBALANCE_IN_PROGRESS; poll")
class StartsAnewAtEachRebalance(Consumer):
    """REBALANCE_IN_PROGRESS in response to SyncGroup resets member id and generation (KAFKA-13891)."""

    def sync_failed(self, state: State, error: group.Error) -> State:
        if error is group.Error.REBALANCE_IN_PROGRESS:
            state = replace(state, identity=Identity())
        return super().sync_failed(state, error)


@errors("raises-what-is-fatal", "open range as=i; subscribe t; poll; joined FENCED_INSTANCE_ID; poll")
class TriesForEver(Consumer):
    """FENCED_INSTANCE_ID is treated as a retriable error."""

    def reaction_to_join(self, error: group.Error) -> Reaction:
        return Reaction.BACK_OFF if error is group.Error.FENCED_INSTANCE_ID else super().reaction_to_join(error)


@errors("raises-what-is-fatal", "open range; subscribe t; poll; joined 1; synced NOT_COORDINATOR; poll")
class GivesUpAtOnce(Consumer):
    """An error that requires another coordinator is raised to the user."""

    def reaction_to_sync(self, error: group.Error) -> Reaction:
        found = super().reaction_to_sync(error)
        return Reaction.RAISE if found is Reaction.SEARCH else found


@ownership("takes-what-fits", "open range; subscribe t; poll; joined 1; synced nothing; poll")
class ReadsNothingAsNone(Consumer):
    """An assignment without bytes is read as one without partitions."""

    def complete(self, state: State, blob: group.Blob) -> Step:
        return super().complete(state, Assigned() if blob == group.EMPTY else blob)


@errors(
    "joins-when-due",
    "open range; subscribe t; poll; joined 1; synced; poll; elapse 3000; beat REBALANCE_IN_PROGRESS; poll",
)
class SleepsThroughRebalances(Consumer):
    """REBALANCE_IN_PROGRESS in response to a heartbeat is ignored."""

    def heartbeat_answered(self, state: State, then: Identity, error: group.Error) -> State:
        return super().heartbeat_answered(
            state, then, group.Error.NONE if error is group.Error.REBALANCE_IN_PROGRESS else error
        )


@errors("joins-when-due", "open range; subscribe t; poll; joined 1; subscribe t,u; synced; poll; poll")
class ForgetsNewTopics(Consumer):
    """A new subscription waits for the next rebalance."""

    def must_join(self, state: State) -> bool:
        return super().must_join(replace(state, told=None))


@errors("joins-only-when-due", "open range; subscribe t; poll; joined 1; synced; poll")
class JoinsForEver(Consumer):
    """A consumer joins again after each assignment."""

    def complete(self, state: State, blob: group.Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(replace(after, rejoin=True), actions)


@errors("joins-only-when-due", "open range; subscribe t; disconnected; poll")
class NeverWaits(Consumer):
    """A request is repeated without back-off after the coordinator was lost."""

    def search(self, state: State) -> State:
        return state


@errors("commit-is-known", "open range; commit t:0=1; disconnected")
class CallsLostDone(Consumer):
    """A commit with a lost response ends as done."""

    def step(self, state: State, event: Event, /) -> Step:
        after, actions = super().step(state, event)
        if not isinstance(event, Disconnected) or state.commit_as is None:
            return Transition(after, actions)
        return Transition(replace(after, commit=()), (*actions, CommitEnded(group.Error.NONE.name)))


@errors("commit-is-known", "open range; commit t:0=1; committed NOT_COORDINATOR")
class CallsPassingFailed(Consumer):
    """A commit fails on a retriable error."""

    def committed(self, state: State, error: group.Error) -> Step:
        return super().committed(state, group.Error.UNKNOWN_SERVER_ERROR if error in PASSING else error)


@errors("commit-ends", "open range; commit t:0=1; disconnected; elapse 200")
class ForgetsCommits(Consumer):
    """A commit with a lost response is not sent again."""

    def disconnected(self, state: State) -> State:
        after = super().disconnected(state)
        return replace(after, commit=()) if state.commit_as is not None else after


# Duties


@duties("syncs", "open range; subscribe t; poll; joined 1")
class SyncsAsLeaderOnly(Consumer):
    """A follower does not send SyncGroup."""

    def send_sync(self, state: State, assignments: tuple[tuple[str, group.Blob], ...]) -> Step:
        after, actions = super().send_sync(state, assignments)
        return Transition(after, actions if assignments else ())


@errors("joins-only-when-due", "open range; subscribe t; poll; unsubscribe; joined 1")
class AnswersALateJoin(Consumer):
    """A JoinGroup response that arrives after the consumer left is followed by SyncGroup."""

    def joined(self, state: State, answer: group.Joined) -> Step:
        return super().joined(replace(state, phase=Phase.PREPARING), answer)


@duties("leads", "open range as=i; subscribe t; poll; joined 1 leader=m1 members=m1/i skip")
class AssignsUnasked(Consumer):
    """A leader assigns although the response says to skip the assignment (KIP-814)."""

    def led(self, state: State, answer: group.Joined) -> Step:
        return super().led(state, replace(answer, skip_assignment=False))


@duties("leads", "open range; subscribe t; poll; joined 1 leader=m1 members=m1")
class ForgetsAMember(Consumer):
    """The leader's SyncGroup lacks the last member."""

    def send_sync(self, state: State, assignments: tuple[tuple[str, group.Blob], ...]) -> Step:
        return super().send_sync(state, assignments[:-1])


@duties("beats", "open range; subscribe t; poll; joined 1; synced t:0; poll; elapse 3000")
class BeatsOnce(Consumer):
    """No heartbeat is sent while the consumer has an assignment."""

    def beat(self, state: State) -> Step:
        return Transition(state) if state.given else super().beat(state)


@duties("leaves", "open range; subscribe t; poll; joined 1; synced; close")
class GoesWithoutAWord(Consumer):
    """No LeaveGroup is ever sent."""

    def sends_leave(self, state: State) -> bool:
        return False


@duties("leaves", "open range as=i; subscribe t; poll; joined 1; close")
class StaticMembersLeave(Consumer):
    """A static member sends LeaveGroup."""

    def sends_leave(self, state: State) -> bool:
        return state.phase is not Phase.UNJOINED and bool(state.identity.member)


@duties("leaves-when-unsubscribed", "open range; subscribe t; poll; joined 1; synced; unsubscribe")
class UnsubscribesInSilence(Consumer):
    """LeaveGroup is sent when the consumer closes, and not when it unsubscribes."""

    def step(self, state: State, event: Event, /) -> Step:
        after, actions = super().step(state, event)
        if not isinstance(event, Unsubscribe):
            return Transition(after, actions)
        return Transition(after, tuple(each for each in actions if not isinstance(each, group.Leave)))


@duties("leaves-unpolled", ...)
class NeedsNoPoll(Consumer):
    """A member that is not polled stays in its group as long as its heartbeats are answered."""

    def fired(self, state: State, timer: group.Timer) -> Step:
        return Transition(state) if timer == POLLED else super().fired(state, timer)


@duties("leaves-unpolled", ...)
class StaticMembersNeedNoPoll(Consumer):
    """A static member that is not polled continues to send heartbeats, since it sends no LeaveGroup."""

    def fired(self, state: State, timer: group.Timer) -> Step:
        static = self.instance is not None
        return Transition(state) if timer == POLLED and static else super().fired(state, timer)


@duties("leaves-unpolled", ...)
class LeavesInSilenceUnpolled(Consumer):
    """A member that is not polled stops its heartbeats, and its coordinator has to wait for the end of its session."""

    def fired(self, state: State, timer: group.Timer) -> Step:
        after, actions = super().fired(state, timer)
        silent = timer == POLLED and state.phase is Phase.STABLE
        return Transition(after, tuple(each for each in actions if not (silent and isinstance(each, group.Leave))))


@duties("beats-in-time", ...)
class BeatsTooOften(Consumer):
    """Heartbeats are sent three times as often as configured."""

    def lasts(self, timer: group.Timer) -> int:
        return super().lasts(timer) // 3 if timer == HEARTBEAT else super().lasts(timer)


# Requests as configured


@duties("names-its-timeouts", "open range; subscribe t; poll")
class JoinsWithTheSessionTimeout(Consumer):
    """The session timeout is the rebalance timeout too, as before KIP-62."""

    def join_of(self, state: State) -> group.Join:
        found = super().join_of(state)
        return replace(found, rebalance_ms=found.session_ms)


@duties("names-its-timeouts", "open range; subscribe t; poll")
class JoinsWithTheDefault(Consumer):
    """The session timeout is the default one, whatever is configured."""

    @property
    def session_ms(self) -> int:
        return self.rules.session_ms


@duties("names-its-instance", "open range as=i; subscribe t; poll; joined 1; elapse 3000")
class BeatsWithoutItsInstance(Consumer):
    """Heartbeats of a static member carry no instance id, so none is ever fenced."""

    def beat(self, state: State) -> Step:
        after, actions = super().beat(state)
        bare = tuple(replace(each, instance=None) if isinstance(each, group.Heartbeat) else each for each in actions)
        return Transition(after, bare)


@duties("names-its-instance", "open range as=i; subscribe t; poll; joined 1; synced; commit t:0=0")
class CommitsWithoutItsInstance(Consumer):
    """Commits of a static member carry no instance id."""

    def send_commit(self, state: State) -> Step:
        after, actions = super().send_commit(state)
        return Transition(
            after, tuple(replace(each, instance=None) if isinstance(each, group.Commit) else each for each in actions)
        )


@duties("syncs-as-chosen", "open range; subscribe t; poll; joined 1")
class SyncsWithoutAName(Consumer):
    """SyncGroup names neither protocol type nor protocol."""

    def send_sync(self, state: State, assignments: tuple[tuple[str, group.Blob], ...]) -> Step:
        after, actions = super().send_sync(state, assignments)
        bare = (
            replace(each, protocol=None, protocol_type=None) if isinstance(each, group.Sync) else each
            for each in actions
        )
        return Transition(after, tuple(bare))


@duties("offers-in-order", "open roundrobin,range; subscribe t; poll")
class OffersTheLastFirst(Consumer):
    """The assignors are offered in the reverse of their order."""

    def join_of(self, state: State) -> group.Join:
        found = super().join_of(state)
        return replace(found, protocols=found.protocols[::-1])


@duties("commits-what-it-was-given", "open range; commit t:0=0")
class CommitsTheNext(Consumer):
    """The offset after the given one is committed."""

    def send_commit(self, state: State) -> Step:
        after, actions = super().send_commit(state)
        return Transition(after, tuple(map(_next, actions)))


def _next(action: Action) -> Action:
    if not isinstance(action, group.Commit):
        return action
    return replace(action, offsets=tuple((*row[:2], row[2] + 1, *row[3:]) for row in action.offsets))
