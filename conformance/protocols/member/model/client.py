"""A consumer in a conversation: opened with a configuration, with calls, answers, and a clock that events advance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.assignment.model.assignment import Topic, roundrobin
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER
from kipcheck.conformance.protocols.group.model.messages import Arm, Disarm, Fired, Timer
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.model import messages
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.messages import UserEvent
from kipcheck.conformance.protocols.member.model.rules import ASSIGNORS, Assignor, Config, Rules
from kipcheck.conformance.protocols.member.model.state import State

OFFERED: Final[Mapping[str, Assignor]] = {
    **ASSIGNORS,
    ops.INCREMENTAL: Assignor(ops.INCREMENTAL, (COOPERATIVE,), roundrobin),
}
SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 3_000
POLL_MS: Final = 60_000
BACKOFF_MS: Final = 100
"""Timeouts of every consumer in a conversation."""
Action: TypeAlias = ops.Request | UserEvent | ops.Unfit


@final
@dataclass(frozen=True, slots=True)
class ClientState:
    opened: ops.Open | None = None
    """None: there is no consumer."""
    state: State = field(default_factory=State)
    clock: Clock[Timer] = field(default_factory=Clock)


class Client:
    def __init__(self, rules: Rules, make: Callable[[Config], Consumer] = Consumer) -> None:
        self.rules = rules
        self._make = make
        self.consumer = cache(self._consumer)

    def _consumer(self, opened: ops.Open) -> Consumer:
        return self._make(self.config(opened))

    def initial(self) -> ClientState:
        return ClientState()

    def step(self, seat: ClientState, event: ops.Event, /) -> Transition[ClientState, Action]:
        match event:
            case ops.Open():
                return self._opened(seat, event)
            case ops.AnswerReceived(answer):
                return self._run(seat, answer)
            case Elapse(ms):
                return self._elapsed(seat, seat.clock.now_ms + ms)
            case (
                ops.Subscribe()
                | ops.Unsubscribe()
                | ops.Poll()
                | ops.CommitOffsets()
                | ops.Close()
                | ops.Metadata()
                | ops.Disconnected()
            ):
                return self._run(seat, event)
            case _:
                assert_never(event)

    def config(self, event: ops.Open) -> Config:
        return Config(
            self.rules,
            tuple(OFFERED[each] for each in event.assignors),
            event.instance,
            event.rack,
            event.protocol or EAGER,
            tuple(Topic(*each) for each in event.topics),
            session_ms=SESSION_MS,
            heartbeat_ms=HEARTBEAT_MS,
            poll_ms=POLL_MS,
            backoff_ms=BACKOFF_MS,
        )

    def _opened(self, seat: ClientState, event: ops.Open) -> Transition[ClientState, Action]:
        clock: Clock[Timer] = Clock(seat.clock.now_ms)
        try:
            state = self.consumer(event).initial()
        except ValueError as unfit:
            return Transition(ClientState(clock=clock), (ops.Unfit(str(unfit)),))
        return Transition(ClientState(event, state, clock))

    def _elapsed(self, seat: ClientState, until: int) -> Transition[ClientState, Action]:
        actions: list[Action] = []
        while (due := seat.clock.due(until)) is not None:
            timer, clock = due
            seat, done = self._run(replace(seat, clock=clock), Fired(timer))
            actions += done
        return Transition(replace(seat, clock=replace(seat.clock, now_ms=until)), tuple(actions))

    def _run(self, seat: ClientState, event: messages.Event) -> Transition[ClientState, Action]:
        if seat.opened is None:
            return Transition(seat)
        state, done = self.consumer(seat.opened).step(seat.state, event)
        clock, actions = seat.clock, list[Action]()
        for each in done:
            match each:
                case Arm(timer, ms):
                    clock = clock.armed(timer, ms)
                case Disarm(timer):
                    clock = clock.disarmed(timer)
                case _:
                    actions.append(each)
        return Transition(replace(seat, state=state, clock=clock), tuple(actions))
