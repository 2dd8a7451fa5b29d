"""A client that reads and updates feature versions, as KIP-584's draft wants it, or as released.

In the draft a client ignores every answer with a lower epoch than it has seen (584-17). The Java clients take answers
as they come (584-41). The draft does not say how often a client asks: this one asks each minute if it needs a feature.
"""

from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.ops import client as ops
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Outcome, Supported
from kipcheck.conformance.protocols.features.ops.kraft import Level

NONE: Final = "NONE"
REFRESH_S: Final = 60
"""Between two questions of a client that depends on features (584-70)."""


@final
@dataclass(frozen=True, slots=True)
class State:
    needs: tuple[Level, ...] = ()
    epoch: int = ops.NO_EPOCH
    finalized: tuple[Finalized, ...] = ()
    supported: tuple[Supported, ...] = ()
    waited_s: int = 0
    """Since it asked last."""


class FeatureClient:
    def __init__(self, ordered: bool = True) -> None:
        """``ordered``: it ignores answers with a lower epoch."""
        self.ordered = ordered

    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.StartClient(needs):
                return Transition(State(needs), (ops.Asked(True),))
            case ops.BrokerAnswers():
                after = self.answered(state, event)
                return Transition(after, (self.view(after),))
            case ops.Wait(seconds):
                return self.waited(state, seconds)
            case ops.UpdateResults(results, top):
                return Transition(state, (self.futures(results, top),))
            case _:
                assert_never(event)

    def answered(self, state: State, answer: ops.BrokerAnswers) -> State:
        if self.ordered and answer.epoch < state.epoch:
            return state
        return replace(state, epoch=answer.epoch, finalized=answer.finalized, supported=answer.supported)

    def waited(self, state: State, seconds: int) -> Transition[State, ops.Action]:
        """A client that depends on no feature does not ask again (584-58)."""
        if not state.needs:
            return Transition(state, (ops.Asked(False),))
        total = state.waited_s + seconds
        asks = total >= REFRESH_S
        return Transition(replace(state, waited_s=total % REFRESH_S if asks else total), (ops.Asked(asks),))

    def view(self, state: State) -> ops.View:
        epoch = None if state.epoch == ops.NO_EPOCH else state.epoch
        return ops.View(epoch, state.finalized, state.supported, self.uses(state))

    def uses(self, state: State) -> tuple[str, ...]:
        levels = {each.feature: each.high for each in state.finalized}
        return tuple(each.feature for each in state.needs if levels.get(each.feature, 0) >= each.level)

    def futures(self, results: tuple[Outcome, ...], top: str | None) -> ops.Futures:
        """A top-level error fails every future; a top-level success says nothing of single updates (584-53)."""
        if top is not None:
            results = tuple(Outcome(each.feature, top) for each in results)
        return ops.Futures(results, next((each.error for each in results if each.error != NONE), NONE))
