"""A consumer's heartbeats and timers, the reset of its membership, and leaving the group."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.member.model import messages
from kipcheck.conformance.protocols.member.model.rules import Config
from kipcheck.conformance.protocols.member.model.state import NO_IDENTITY, Identity, Pause, Phase, State, Step
from kipcheck.conformance.protocols.member.ops import Lost, Poll, Revoked


class Liveness:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.rules = config.rules

    @property
    def instance(self) -> str | None:
        return self.config.instance if self.rules.static else None

    @property
    def session_ms(self) -> int:
        return self.rules.session_ms if self.config.session_ms is None else self.config.session_ms

    # Out of the group

    def is_out(self, state: State) -> bool:
        """Whether the member lost its membership, so that its partitions may have other owners."""
        return state.identity.generation == group.NO_GENERATION or not state.identity.member

    def reset(self, state: State, keeps_id: bool) -> State:
        return replace(
            state,
            phase=Phase.UNJOINED,
            identity=Identity(state.identity.member) if keeps_id else NO_IDENTITY,
            rejoin=True,
            prepared=state.prepared and not self.rules.prepares_again,
        )

    def keeps_id(self, error: group.Error) -> bool:
        return error is group.Error.ILLEGAL_GENERATION and self.rules.keeps_id

    def unchanged(self, state: State, then: Identity) -> bool:
        """Whether an error concerns the member's current identity."""
        return not self.rules.compares or then == state.identity

    def leave(self, state: State) -> Step:
        """Leaves the group, because the user unsubscribes or closes."""
        actions: tuple[messages.Action, ...] = ()
        if state.owned and self.rules.incremental:
            amid = state.phase in (Phase.PREPARING, Phase.COMPLETING)
            actions = (Lost(state.owned) if amid or self.is_out(state) else Revoked(state.owned),)
        after, left = self.send_leave(replace(state, owned=()))
        return Transition(after, (*actions, *left))

    def send_leave(self, state: State) -> Step:
        member = state.identity.member
        sends = self.sends_leave(state)
        actions = (group.Leave(self.rules.leave, ((member, None),)),) if sends else ()
        return Transition(replace(self.reset(state, keeps_id=False), leaving=state.leaving or sends), actions)

    def sends_leave(self, state: State) -> bool:
        """Whether a leaving member sends LeaveGroup. A static member does not, since it may return."""
        known = state.phase is not Phase.UNJOINED and bool(state.identity.member)
        return known and self.instance is None and state.pause is not Pause.SEARCH

    # Heartbeats

    def is_beating(self, state: State) -> bool:
        return state.phase is Phase.STABLE or (state.phase is Phase.COMPLETING and self.rules.phased)

    def beat(self, state: State) -> Step:
        if state.beat_as is not None or state.pause is Pause.SEARCH:
            return Transition(state)
        member, generation, _ = state.identity
        heartbeat = group.Heartbeat(self.rules.heartbeat, member, self.instance, generation)
        return Transition(replace(state, beat_as=state.identity), (heartbeat,))

    def heartbeat_answered(self, state: State, then: Identity, error: group.Error) -> State:
        state = replace(state, beat_as=None)
        match error:
            case group.Error.REBALANCE_IN_PROGRESS:
                news = state.phase is Phase.STABLE or not self.rules.phased
                return replace(state, rejoin=state.rejoin or news)
            case group.Error.UNKNOWN_MEMBER_ID | group.Error.ILLEGAL_GENERATION:
                return self.reset(state, self.keeps_id(error)) if self.unchanged(state, then) else state
            case group.Error.FENCED_INSTANCE_ID:
                return self.fenced(state) if self.unchanged(state, then) else state
            case group.Error.COORDINATOR_NOT_AVAILABLE | group.Error.NOT_COORDINATOR:
                return self.search(state)
        return state

    def fenced(self, state: State) -> State:
        """Another process has its instance id: the next poll raises the error."""
        state = self.reset(state, keeps_id=False) if self.rules.compares else replace(state, phase=Phase.UNJOINED)
        return replace(state, trouble=group.Error.FENCED_INSTANCE_ID.name)

    # Time

    def back_off(self, state: State) -> State:
        return replace(state, pause=Pause.BACK_OFF if state.pause is Pause.NO else state.pause)

    def search(self, state: State) -> State:
        return replace(state, pause=Pause.SEARCH)

    def armed(self, state: State) -> frozenset[group.Timer]:
        beating = (messages.HEARTBEAT, messages.SESSION, messages.POLLED) if self.is_beating(state) else ()
        return frozenset(beating if state.pause is Pause.NO else (*beating, messages.RETRY))

    def _timers(self, before: State, event: messages.Event, after: State) -> Iterator[messages.Action]:
        had, has = self.armed(before), self.armed(after)
        gone = event.timer if isinstance(event, group.Fired) else None
        for timer in messages.TIMERS:
            if timer in has and (timer not in had or timer == gone or self.is_refreshed(timer, before, event, after)):
                yield group.Arm(timer, self.lasts(timer))
            elif timer in had - has and timer != gone:
                yield group.Disarm(timer)

    def is_refreshed(self, timer: group.Timer, before: State, event: messages.Event, after: State) -> bool:
        """Whether an armed timer restarts."""
        if timer == messages.SESSION:
            alive = isinstance(event, group.Beat) and event.error in (
                group.Error.NONE,
                group.Error.REBALANCE_IN_PROGRESS,
            )
            return (alive and before.beat_as is not None) or event == group.Fired(messages.RETRY)
        if timer == messages.POLLED:
            return isinstance(event, Poll)
        return timer == messages.RETRY and before.pause is not after.pause

    def lasts(self, timer: group.Timer) -> int:
        """Duration of a timer in milliseconds."""
        config = self.config
        match timer.kind:
            case messages.HEARTBEAT.kind:
                return config.heartbeat_ms
            case messages.SESSION.kind:
                return self.session_ms
            case messages.POLLED.kind:
                return config.poll_ms
        return config.backoff_ms
