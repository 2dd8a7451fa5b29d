"""The consumer's side of the classic group protocol, in the releases and in KIP-429's draft, as one pure machine.

It models ConsumerCoordinator and AbstractCoordinator: callbacks run and joins are sent only in ``Poll``, on the user's
thread; answers and timers are handled as they arrive. Offsets are committed only by the user.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.assignment.model import membership
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE as COOPERATIVE_STICKY, STICKY
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.ops import NO_MORE
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.model import messages
from kipcheck.conformance.protocols.member.model.leader_duty import AssignmentFailed, led
from kipcheck.conformance.protocols.member.model.membership import Liveness
from kipcheck.conformance.protocols.member.model.rules import Config
from kipcheck.conformance.protocols.member.model.state import NO_IDENTITY, Asked, Identity, Pause, Phase, State, Step

CONSUMER: Final = "consumer"
"""The protocol type."""


class Reaction(Enum):
    """Reaction to a failed JoinGroup or SyncGroup."""

    AGAIN = "again"
    """The next poll joins again."""
    BACK_OFF = "back-off"
    SEARCH = "search"
    RAISE = "raise"
    """The next poll raises it."""


REJOIN_ERRORS: Final = frozenset({
    group.Error.UNKNOWN_MEMBER_ID, group.Error.ILLEGAL_GENERATION, group.Error.REBALANCE_IN_PROGRESS,
    group.Error.MEMBER_ID_REQUIRED,
})  # fmt: skip
COORDINATOR_ERRORS: Final = frozenset({group.Error.COORDINATOR_NOT_AVAILABLE, group.Error.NOT_COORDINATOR})


class Consumer(Liveness):
    """A consumer. Errors: ValueError if no rebalance protocol is supported by all its assignors (429-20)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.protocol = self.chosen_protocol()

    def initial(self) -> State:
        return State(topics_known=self.config.topics)

    def step(self, state: State, event: messages.Event, /) -> Step:
        after, actions = self._step(state, event)
        return Transition(after, (*actions, *self._timers(state, event, after)))

    def _step(self, state: State, event: messages.Event) -> Step:
        match event:
            case messages.Restart():
                return Transition(self.initial())
            case _ if state.phase is Phase.CLOSED:
                return Transition(state)
            case ops.Subscribe(topics):
                return Transition(replace(state, topics=tuple(sorted(set(topics)))))
            case ops.Unsubscribe():
                after, actions = self.leave(state)
                return Transition(replace(after, topics=()), actions)
            case ops.Poll():
                return self.poll(state)
            case ops.CommitOffsets(offsets):
                return Transition(state) if state.commit else self.send_commit(replace(state, commit=offsets))
            case ops.Close():
                after, actions = self.leave(state)
                return Transition(replace(after, phase=Phase.CLOSED, pause=Pause.NO), actions)
            case ops.Metadata(topics):
                return Transition(replace(state, topics_known=topics))
            case ops.Disconnected():
                return Transition(self.disconnected(state))
            case group.Joined():
                return (
                    self.joined(replace(state, asked=Asked.NOTHING), event)
                    if state.asked is Asked.JOIN
                    else Transition(state)
                )
            case group.Synced():
                return Transition(
                    self.synced(replace(state, asked=Asked.NOTHING), event) if state.asked is Asked.SYNC else state
                )
            case group.Beat():
                return Transition(
                    state if state.beat_as is None else self.heartbeat_answered(state, state.beat_as, event.error)
                )
            case group.Left():
                return Transition(replace(state, leaving=False))
            case group.Committed():
                return Transition(state) if state.commit_as is None else self.committed(state, event.error)
            case group.Fired(timer):
                return self.fired(state, timer)
            case _:
                assert_never(event)

    # The rebalance protocol

    def chosen_protocol(self) -> str:
        """The highest protocol that all assignors support (429-20); in the draft, the configured one (429-17)."""
        if self.rules.draft:
            return self.config.rebalance_protocol
        if not self.rules.incremental:
            return membership.EAGER
        for protocol in (membership.COOPERATIVE, membership.EAGER):
            if all(protocol in each.supports for each in self.config.assignors):
                return protocol
        names = ", ".join(each.name for each in self.config.assignors)
        raise ValueError(f"the assignors {names} have no rebalance protocol in common")

    # Polling

    def poll(self, state: State) -> Step:
        if not state.topics:
            return Transition(state, (ops.Raised(messages.ILLEGAL_STATE),))
        actions: list[messages.Action] = []
        while not state.trouble and state.pause is Pause.NO and state.asked is Asked.NOTHING and self.must_join(state):
            if state.result is not None:
                state, done = self.complete(state, state.result)
            elif not state.prepared:
                state, done = self.prepare(state)
                state = replace(state, prepared=True, leads=False)
            else:
                state, done = self.send_join(state)
            actions += done
        if state.trouble:
            return Transition(replace(state, trouble=""), (*actions, ops.Raised(state.trouble)))
        return Transition(state, (*actions, ops.Reads(self.readable(state))))

    def wants_poll(self, state: State) -> bool:
        """Whether a poll would do more than fetch records."""
        if not state.topics or state.phase is Phase.CLOSED:
            return False
        idle = state.pause is Pause.NO and state.asked is Asked.NOTHING
        return bool(state.trouble) or (idle and self.must_join(state))

    def must_join(self, state: State) -> bool:
        """Whether a join is due, or has to be completed."""
        return (
            state.rejoin
            or state.result is not None
            or (state.told is not None and state.told != state.topics)
            or self.topics_changed(state)
        )

    def topics_changed(self, state: State) -> bool:
        """Whether the topics of the group changed since the assignment; only the leader watches them."""
        return state.watched is not None and state.watched != self.counted(state, (name for name, _ in state.watched))

    def readable(self, state: State) -> membership.Partitions:
        return state.owned

    # Before a join

    def prepare(self, state: State) -> Step:
        """Calls the callbacks before a join, and updates the owned partitions."""
        if self.is_out(state) and self.rules.incremental:
            return self.lose(state) if state.owned else Transition(state)
        if self.protocol == membership.EAGER:
            return Transition(replace(state, owned=()), (ops.Revoked(state.owned),))
        dropped = tuple(each for each in state.owned if each[0] not in state.topics)
        if not dropped:
            return Transition(state)
        kept = tuple(each for each in state.owned if each not in dropped)
        return Transition(replace(state, owned=kept), (ops.Revoked(dropped),))

    def lose(self, state: State) -> Step:
        return Transition(replace(state, owned=()), (ops.Lost(state.owned),))

    def send_join(self, state: State) -> Step:
        state = replace(
            state, phase=Phase.PREPARING, asked=Asked.JOIN, asked_as=state.identity, told=state.topics, rejoin=True
        )
        return Transition(state, (self.join_of(state),))

    def join_of(self, state: State) -> group.Join:
        config = self.config
        return group.Join(
            self.rules.join,
            state.identity.member,
            self.instance,
            CONSUMER,
            tuple((each.name, self.subscription(state, each.name)) for each in config.assignors),
            self.session_ms,
            config.poll_ms,
            protocol_version=self.subscription_version if self.rules.draft else None,
        )

    @property
    def subscription_version(self) -> int:
        if self.rules.draft:
            return membership.V0 if self.protocol == membership.EAGER else membership.V1
        return self.rules.subscription

    def subscription(self, state: State, assignor: str) -> membership.Subscription:
        version = self.subscription_version
        return membership.Subscription(
            state.topics,
            version,
            state.owned if version >= 1 else (),
            state.identity.generation if version >= 2 else group.NO_GENERATION,
            self.config.rack if version >= 3 else None,
            state.given if assignor == STICKY else (),
            state.given_in
            if assignor == STICKY or (assignor == COOPERATIVE_STICKY and self.rules.dates_data)
            else group.NO_GENERATION,
        )

    # Answers to a join

    def joined(self, state: State, answer: group.Joined) -> Step:
        if answer.error is not group.Error.NONE:
            return Transition(self.join_failed(state, answer))
        if state.phase is not Phase.PREPARING:  # The member left since it sent the request.
            return Transition(replace(state, rejoin=True))
        if answer.protocol_type not in (None, CONSUMER):
            return Transition(self.failed(state, Reaction.RAISE, group.Error.INCONSISTENT_GROUP_PROTOCOL.name))
        state = replace(
            state,
            phase=Phase.COMPLETING,
            identity=Identity(answer.member, answer.generation, answer.protocol),
        )
        if answer.leader != answer.member:
            return self.send_sync(state, ())
        return self.led(state, answer)

    def led(self, state: State, answer: group.Joined) -> Step:
        """Assigns partitions as the leader, and sends them in a SyncGroup."""
        try:
            topics, assignments = led(self.config, self.protocol, state.topics_known, answer)
        except AssignmentFailed as trouble:
            return Transition(self.failed(state, Reaction.RAISE, str(trouble)))
        state = replace(state, leads=True, watched=self.counted(state, topics))
        return self.send_sync(state, assignments)

    def counted(self, state: State, topics: Iterable[str]) -> tuple[tuple[str, int], ...]:
        known = {each.name: each.partitions for each in state.topics_known}
        return tuple((name, known.get(name, 0)) for name in sorted(topics))

    def send_sync(self, state: State, assignments: tuple[tuple[str, group.Blob], ...]) -> Step:
        member, generation, protocol = state.identity
        protocol_fields = (CONSUMER, protocol) if self.rules.sync >= 5 else (None, None)
        sync = group.Sync(self.rules.sync, member, self.instance, generation, assignments, *protocol_fields)
        return Transition(replace(state, asked=Asked.SYNC, asked_as=state.identity), (sync,))

    def join_failed(self, state: State, answer: group.Joined) -> State:
        error = answer.error
        if error is group.Error.MEMBER_ID_REQUIRED:
            state = replace(state, identity=Identity(answer.member))
        elif error is group.Error.UNKNOWN_MEMBER_ID and self.unchanged(state, state.asked_as):
            state = self.reset(state, keeps_id=False)
        return self.failed(state, self.reaction_to_join(error), error.name)

    def reaction_to_join(self, error: group.Error) -> Reaction:
        if error in REJOIN_ERRORS - {group.Error.ILLEGAL_GENERATION}:
            return Reaction.AGAIN
        if error is group.Error.COORDINATOR_LOAD_IN_PROGRESS:
            return Reaction.BACK_OFF
        return Reaction.SEARCH if error in COORDINATOR_ERRORS else Reaction.RAISE

    def failed(self, state: State, reaction: Reaction, error: str) -> State:
        phase = state.phase if self.rules.phased else Phase.UNJOINED
        state = replace(state, phase=phase, rejoin=True)
        match reaction:
            case Reaction.AGAIN:
                return state
            case Reaction.BACK_OFF:
                return self.back_off(state)
            case Reaction.SEARCH:
                return self.search(state)
            case Reaction.RAISE:
                return replace(state, trouble=error)

    # Answers to a sync

    def synced(self, state: State, answer: group.Synced) -> State:
        if answer.error is not group.Error.NONE:
            return self.sync_failed(state, answer.error)
        if state.phase is not Phase.COMPLETING or state.identity.generation == group.NO_GENERATION:
            return replace(state, rejoin=True)  # It lost its membership since, or left.
        if answer.protocol_type not in (None, CONSUMER) or answer.protocol not in (None, state.identity.protocol):
            return self.failed(state, Reaction.RAISE, group.Error.INCONSISTENT_GROUP_PROTOCOL.name)
        return replace(state, phase=Phase.STABLE, rejoin=False, result=answer.assignment)

    def sync_failed(self, state: State, error: group.Error) -> State:
        if error is group.Error.REBALANCE_IN_PROGRESS and self.rules.resets_on_27:
            state = self.reset(state, keeps_id=True)
        elif error in (group.Error.UNKNOWN_MEMBER_ID, group.Error.ILLEGAL_GENERATION) and self.unchanged(
            state, state.asked_as
        ):
            state = self.reset(state, self.keeps_id(error))
        return self.failed(state, self.reaction_to_sync(error), error.name)

    def reaction_to_sync(self, error: group.Error) -> Reaction:
        if error in REJOIN_ERRORS - {group.Error.MEMBER_ID_REQUIRED}:
            return Reaction.AGAIN
        return Reaction.SEARCH if error in COORDINATOR_ERRORS else Reaction.RAISE

    # After a sync

    def complete(self, state: State, blob: group.Blob) -> Step:
        """Applies the assignment, and calls the callbacks."""
        if state.phase is not Phase.STABLE:  # It lost its membership before the user polled.
            return Transition(replace(self.reset(state, keeps_id=False), result=None))
        if blob == group.EMPTY or not isinstance(blob, membership.Assigned):  # Every poll fails again.
            return Transition(replace(state, trouble=messages.ILLEGAL_STATE))
        state = replace(state, result=None, prepared=False, watched=state.watched if state.leads else None)
        if self.is_incompatible(blob):
            return self.incompatible(state)
        assigned = tuple(sorted({*blob.partitions}))
        if not self.is_covered(state, assigned):
            return Transition(replace(state, rejoin=True))
        actions: list[messages.Action] = []
        if self.protocol == membership.COOPERATIVE and (revoked := self.given_up(state, assigned)):
            actions.append(ops.Revoked(revoked))
            state = replace(state, rejoin=self.rejoins_after_revoking())
        actions.append(ops.Given(self.new(state, assigned)))
        state = replace(state, owned=assigned, given=assigned, given_in=state.identity.generation)
        return Transition(state, tuple(actions))

    def given_up(self, state: State, assigned: membership.Partitions) -> membership.Partitions:
        return tuple(each for each in state.owned if each not in assigned)

    def new(self, state: State, assigned: membership.Partitions) -> membership.Partitions:
        return tuple(each for each in assigned if each not in state.owned)

    def is_incompatible(self, assigned: membership.Assigned) -> bool:
        return self.rules.draft and assigned.error != 0

    def incompatible(self, state: State) -> Step:
        """The draft's reaction to an assignment with an error: count it, back off, join again (429-03)."""
        state = replace(state, incompatible=state.incompatible + 1, rejoin=True)
        return Transition(self.back_off(state), (ops.Metric(state.incompatible),))

    def is_covered(self, state: State, partitions: membership.Partitions) -> bool:
        """Whether the member still subscribes to all of these partitions."""
        return all(topic in state.topics for topic, _ in partitions)

    def rejoins_after_revoking(self) -> bool:
        return True

    # Commits

    def send_commit(self, state: State) -> Step:
        if state.pause is not Pause.NO:
            return Transition(state)  # The end of the pause sends it.
        if not state.topics:
            identity, instance = NO_IDENTITY, None
        elif state.phase is Phase.STABLE:
            identity, instance = state.identity, self.instance
        else:
            return self.commit_ended(state, self.out_of_group(state))
        member, generation, _ = identity
        offsets = tuple((*each, *NO_MORE) for each in state.commit)
        commit = group.Commit(self.rules.commit, member, instance, generation, offsets)
        return Transition(replace(state, commit_as=identity), (commit,))

    def out_of_group(self, state: State) -> str:
        amid = state.phase in (Phase.PREPARING, Phase.COMPLETING)
        return messages.REBALANCING if amid and self.rules.tells_rebalance else messages.COMMIT_FAILED

    def commit_ended(self, state: State, error: str) -> Step:
        return Transition(replace(state, commit=()), (ops.CommitEnded(error),))

    def committed(self, state: State, error: group.Error) -> Step:
        then, state = state.commit_as or NO_IDENTITY, replace(state, commit_as=None)
        unchanged = self.unchanged(state, then)
        stale = not unchanged and state.phase is Phase.PREPARING
        match error:
            case group.Error.COORDINATOR_LOAD_IN_PROGRESS:
                return Transition(self.back_off(state))
            case group.Error.COORDINATOR_NOT_AVAILABLE | group.Error.NOT_COORDINATOR:
                return Transition(self.search(state))
            case group.Error.REBALANCE_IN_PROGRESS:
                protocol_fields = messages.REBALANCING if self.rules.tells_rebalance else messages.COMMIT_FAILED
                return self.commit_ended(replace(state, rejoin=True), protocol_fields)
            case group.Error.UNKNOWN_MEMBER_ID | group.Error.ILLEGAL_GENERATION:
                if stale:
                    return self.commit_ended(state, messages.REBALANCING)
                return self.commit_ended(self.reset(state, self.keeps_id(error)), messages.COMMIT_FAILED)
            case group.Error.FENCED_INSTANCE_ID if not unchanged:
                return self.commit_ended(state, messages.REBALANCING if stale else messages.COMMIT_FAILED)
        return self.commit_ended(state, error.name)

    # Timers and disconnects

    def fired(self, state: State, timer: group.Timer) -> Step:
        if timer not in self.armed(state):
            return Transition(state)
        match timer.kind:
            case messages.HEARTBEAT.kind:
                return self.beat(state)
            case messages.SESSION.kind:
                return Transition(self.search(state))
            case messages.POLLED.kind:
                return self.send_leave(state)
        state = replace(state, pause=Pause.NO)
        return self.send_commit(state) if state.commit and state.commit_as is None else Transition(state)

    def disconnected(self, state: State) -> State:
        asked = state.asked is not Asked.NOTHING
        state = replace(state, asked=Asked.NOTHING, beat_as=None, leaving=False, commit_as=None)
        return self.search(self.failed(state, Reaction.AGAIN, "") if asked else state)

    # Enabled events

    def enabled(self, state: State, /) -> Iterable[messages.Event]:
        """Calls of the user, timers and disconnects. ``protocols.member.strategies.events`` generates the answers."""
        if state.phase is Phase.CLOSED:
            return
        yield ops.Poll()
        if state.topics:
            yield ops.Unsubscribe()
            if not state.commit:
                yield ops.CommitOffsets(tuple((*each, 1) for each in state.owned))
        yield ops.Close()
        yield ops.Disconnected()
        yield from (group.Fired(each) for each in messages.TIMERS if each in self.armed(state))
