"""The controller of KIP-584's draft: brokers report the levels of a feature they support, the operator finalizes one.

There is one feature; its level is 0 if it is not finalized. The epoch is the version of the ZooKeeper node that stores
the level. A broker that registers with the number of a live broker replaces it, as in a rolling upgrade.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.ops import controller as ops

INVALID_REQUEST = "INVALID_REQUEST"
"""The update itself is invalid (584-66)."""
FEATURE_UPDATE_FAILED = "FEATURE_UPDATE_FAILED"
"""A broker does not support the level (584-66)."""


@final
@dataclass(frozen=True, slots=True)
class Broker:
    number: int
    low: int | None
    high: int | None

    @property
    def knows(self) -> bool:
        return self.low is not None

    def supports(self, level: int) -> bool:
        return self.low is not None and self.high is not None and self.low <= level <= self.high


@dataclass(frozen=True, slots=True)
class State:
    level: int = 0
    epoch: int = 0
    brokers: tuple[Broker, ...] = ()
    """The live brokers, sorted by number."""

    def without(self, number: int) -> "State":
        return replace(self, brokers=tuple(each for each in self.brokers if each.number != number))

    def joined(self, broker: Broker) -> "State":
        others = (each for each in self.brokers if each.number != broker.number)
        return replace(self, brokers=tuple(sorted((*others, broker), key=lambda each: each.number)))


LEVELS = range(5)
BROKERS = range(3)
RANGES = ((1, 2), (1, 3), (2, 3), (None, None))
ENVIRONMENT_EVENTS: tuple[ops.Event, ...] = (
    *(ops.Update(level, allow) for level in LEVELS for allow in (False, True)),
    *(ops.BrokerUp(broker, *span) for broker in BROKERS for span in RANGES),
    *(ops.BrokerDown(broker) for broker in BROKERS),
    ops.Restart(),
    ops.Describe(),
)


class FeatureController:
    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Update():
                return self.update(state, event)
            case ops.BrokerUp(number, low, high):
                broker = Broker(number, low, high)
                if not self.admits(state, broker):
                    return Transition(state.without(number), (ops.ShutDown(number),))
                return Transition(state.joined(broker))
            case ops.BrokerDown(number):
                return Transition(state.without(number))
            case ops.Restart():
                return Transition(self.restarted(state))
            case ops.Describe():
                return Transition(state, (self.described(state),))
            case _:
                assert_never(event)

    def update(self, state: State, update: ops.Update) -> Transition[State, ops.Action]:
        error = next(self.faults(state, update), None)
        if error is not None:
            return Transition(state, (ops.Rejected(error),))
        after = self.applied(state, update)
        return Transition(after, (ops.Applied(after.epoch),))

    def applied(self, state: State, update: ops.Update) -> State:
        return replace(state, level=max(update.level, 0), epoch=state.epoch + 1)

    def restarted(self, state: State) -> State:
        return state

    def described(self, state: State) -> ops.Told:
        return ops.Told(state.level, state.epoch)

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return (event for event in ENVIRONMENT_EVENTS if self.accepts(state, event))

    def accepts(self, state: State, event: ops.Event) -> bool:
        """The guard of ``step``, as a separate method: generation evaluates it far more often than ``step``."""
        match event:
            case ops.Update():
                return next(self.faults(state, event), None) is None
            case ops.BrokerUp(number, low, high):
                return self.admits(state, Broker(number, low, high))
            case ops.BrokerDown(number):
                return any(each.number == number for each in state.brokers)
            case ops.Restart() | ops.Describe():
                return True
            case _:
                assert_never(event)

    def admits(self, state: State, broker: Broker) -> bool:
        return not state.level or broker.supports(state.level)

    def faults(self, state: State, update: ops.Update) -> Iterator[str]:
        """All errors of an update; it is applied if there are none.

        The draft allows both to accept and to reject the first finalization with the flag (584-69): this controller
        rejects it.
        """
        if update.level < 1:
            if not update.allow_downgrade or not state.level:
                yield INVALID_REQUEST
            return
        if update.level == state.level or (update.level < state.level) != update.allow_downgrade:
            yield INVALID_REQUEST
        if not any(each.knows for each in state.brokers):
            yield INVALID_REQUEST
        elif not all(each.supports(update.level) for each in state.brokers):
            yield FEATURE_UPDATE_FAILED
